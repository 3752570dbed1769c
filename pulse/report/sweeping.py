"""`sweep`: every width in turn, again and again, and the figures that come of it."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pulse.check import random_inputs
from pulse.engine.feeds import Feeds
from pulse.engine.timing import pinned
from pulse.errors import PulseError
from pulse.graph.load import Source
from pulse.model import PulsedModel
from pulse.report import figures
from pulse.report.bench import POOL_FRAMES, Bench
from pulse.report.families import Insight, insight
from pulse.report.machine import machine
from pulse.report.noise import Reference, Watch, verdict
from pulse.report.recommend import frontier, recommend
from pulse.report.schedule import Schedule, schedule
from pulse.report.statistics import median
from pulse.report.widths import models

Progress = Callable[[float, float], None]
Benches = dict[tuple[str, int], Bench]


def sweep(
    source: Source,
    pulses: Sequence[int] | None = None,
    *,
    engines: Sequence[str] | None = None,
    weights: str = "f32",
    frame_ms: float | None = None,
    signal: Mapping[str, np.ndarray] | None = None,
    budget_ms: float | None = None,
    cpu_budget: float | None = None,
    quick: bool = False,
    inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] | None = None,
    length_multiple_of: int | None = None,
    hints: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measures what every pulse width costs in latency and in CPU, and recommends one.

    All widths are measured in interleaved rounds on one core: back to back, and (where `frame_ms` is known) in real
    time, one pulse every `frame_ms * pulse`, asleep in between. Five widths take under a minute.

    Args:
        source: a full-signal model, or a pulsed one.
        pulses: widths in source frames, by default 1, 2, 4, 8 and 16 times the granularity.
        engines: names; the first is the one that widths are recommended for. By default the one that streams use.
        weights: what the native engine stores large weights in, "f32" or "bf16".
        frame_ms: milliseconds per source frame; without it loads and delays are None.
        signal: an array per input, by default noise.
        budget_ms: largest latency allowed, in ms.
        cpu_budget: largest load allowed, in percent of one core.
        quick: a tenth of the time, and less certain.
        inputs, outputs, length_multiple_of, hints: as for `pulse.convert`.
        progress: told the seconds done, and those in all.

    Returns:
        What `pulse sweep --json` prints. After a KeyboardInterrupt: what was measured, with `"interrupted": True`.

    Raises:
        PulseError: a model that cannot stream, no width or engine that can be had, a signal that does not fit, `usage`
            for a budget that needs `frame_ms`.
        KeyboardInterrupt: before anything was measured.
    """
    if frame_ms is None and not (budget_ms is None and cpu_budget is None):
        raise PulseError(
            "usage",
            node="budget",
            required="the duration of a frame, to tell latency and load",
            found="none",
            remedy="give --frame-ms, or --rate (and --hop)",
        )
    frame_ms = None if frame_ms is None else float(frame_ms)
    began = time.monotonic()
    options = {"inputs": inputs, "outputs": outputs, "length_multiple_of": length_multiple_of, "hints": hints}
    by_width, skipped = models(source, pulses, frame_ms, options)
    first = next(iter(by_width.values()))
    data = random_inputs(first.inputs, _pool(by_width), np.random.default_rng(0)) if signal is None else signal
    Feeds(first.inputs).add(data)  # refuses what no stream would take
    watch, told = Watch(), dict[tuple[str, int], Insight | None]()
    with pinned(), _no_collector():
        core = _core()
        benches = _benches(by_width, engines, weights, data, skipped)
        periods = None if frame_ms is None else [frame_ms * bench.pulse for bench in benches.values()]
        plan = schedule(periods, len(benches), len(by_width), quick)
        interrupted = False
        try:
            _measure(list(benches.values()), plan, periods, watch, progress)
            for key, bench in benches.items():
                told[key] = insight(bench, plan.insight_s)
        except KeyboardInterrupt:
            interrupted = True
    benches = {key: bench for key, bench in benches.items() if _measured(bench, frame_ms)}
    if not benches:
        raise KeyboardInterrupt
    found = _figures(benches, told, watch, frame_ms, budget_ms, cpu_budget)
    return {
        "model": Path(source).name if isinstance(source, (str, os.PathLike)) else first.info.source_name,
        "cpu": machine()["cpu"],
        "isa": machine()["isa"],
        "weights": weights,
        "frame_ms": frame_ms,
        "symbol": first.symbol,
        "granularity": first.granularity,
        **found,
        "skipped": skipped,
        "interrupted": interrupted,
        "quick": quick,
        "signal": "noise" if signal is None else "given",
        "seconds": time.monotonic() - began,
        "machine": machine() | {"core": core},
    }


def _figures(
    benches: Benches,
    told: Mapping[tuple[str, int], Insight | None],
    watch: Watch,
    frame_ms: float | None,
    budget_ms: float | None,
    cpu_budget: float | None,
) -> dict[str, Any]:
    """The part of the JSON that is computed from the measurements."""
    rows = [figures.row(bench, frame_ms, told.get(key)) for key, bench in benches.items()]
    figures.add_distributions(rows, benches)
    engines = list(dict.fromkeys(row["engine"] for row in rows))
    own = [row for row in rows if row["engine"] == engines[0]]
    for engine in engines:
        kept = frontier([row for row in rows if row["engine"] == engine])
        for row in rows:
            if row["engine"] == engine:
                row["on_frontier"] = row in kept
    several = len(engines) > 1
    rounds = {
        (f"{engine}, P = {pulse}" if several else f"P = {pulse}"): (
            [median(times) for times in bench.hot_us if times],
            [median(times) for times in bench.paced_us if times],
        )
        for (engine, pulse), bench in benches.items()
    }
    noise = verdict(watch, rounds)
    noisy = bool(noise["noisy"])
    return {
        "engine": engines[0],
        "engines": engines,
        "noisy": noisy,
        "noise": noise,
        "budget_ms": budget_ms,
        "cpu_budget": cpu_budget,
        "recommended": recommend(own, budget_ms, cpu_budget, noisy) | {"engine": engines[0]},
        "widths": own,
        "compared": [row for row in rows if row["engine"] != engines[0]],
        "kernel_changes": figures.kernel_changes(own),
    }


def _benches(
    by_width: Mapping[int, PulsedModel],
    engines: Sequence[str] | None,
    weights: str,
    signal: Mapping[str, np.ndarray],
    skipped: list[dict[str, Any]],
) -> Benches:
    """A bench per engine and width; what an engine cannot run is added to `skipped`."""
    made: Benches = {}
    failures: list[PulseError] = []
    for name in dict.fromkeys(engines) if engines else (None,):
        for width, model in by_width.items():
            try:
                bench = Bench(model, width, name, signal, weights)
            except PulseError as error:
                if error.code != "engine-unsupported":
                    raise
                failures.append(error)
                skipped.append({"pulse": width, "code": error.code, "why": f"{name}: {error.found}", "legal": []})
            else:
                made[bench.stream.engine, width] = bench
    if not made:
        raise failures[0]
    return made


def _measure(
    benches: list[Bench], plan: Schedule, periods: Sequence[float] | None, watch: Watch, progress: Progress | None
) -> None:
    """All rounds. The order turns from round to round, so that no width always follows the same one."""
    reference = Reference()
    began, spare = time.monotonic(), plan.spare_s
    for turn in range(plan.rounds):
        watch.start_round()
        for place in range(len(benches)):
            index = (place + turn) % len(benches)
            spare = _visit(benches[index], plan, reference, watch, spare)
            if periods is not None:
                benches[index].run_paced(plan.paced[index], periods[index])
            if progress is not None:
                progress(time.monotonic() - began, plan.seconds + plan.spare_s - spare)


def _visit(bench: Bench, plan: Schedule, reference: Reference, watch: Watch, spare: float) -> float:
    """A visit back to back. Constant work that is slow before or after it means that others are at work: then it is
    made again, as long as there are `spare` seconds. Returns those left."""
    while True:
        began = time.monotonic()
        before = reference.probe()
        visit = bench.run_hot(plan.hot_s, plan.hot_pulses)
        after = reference.probe()
        if spare <= 0 or reference.steady(before, after):
            break
        spare -= time.monotonic() - began
        watch.repeated += 1
    bench.hot_us.append(visit.times)
    watch.computed(visit.wall_ns, visit.cpu_ns)
    watch.saw(before)
    watch.saw(after)
    return spare


def _measured(bench: Bench, frame_ms: float | None) -> bool:
    return bool(bench.hot) and (frame_ms is None or bool(bench.paced))


def _pool(by_width: Mapping[int, PulsedModel]) -> int:
    """Source frames of noise: enough for a few pulses of the widest."""
    grain = next(iter(by_width.values())).granularity
    return -(-max(POOL_FRAMES, 2 * max(by_width)) // grain) * grain


def _core() -> int | None:
    """The one core we are on, None where the system does not tell."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


@contextlib.contextmanager
def _no_collector() -> Iterator[None]:
    """Python's cyclic garbage collector waits until the end."""
    was = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
