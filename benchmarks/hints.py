"""What hints gain: tunes a model, times its products again, and runs the whole model by hints and by the table's picks.

    python benchmarks/hints.py MODEL [--pulses 1,2,4,8]

Regret is over the best kernel of the second timing, chosen on odd rounds and read off even ones, for products of at
least 300 ns; the mean is weighted by the time each takes in a pulse. Whole models run in turns on one core, each as
several programs, of which the fastest counts, for where a program's memory lies is worth several percent. The table's
picks run twice over: the ratio of these two shows what noise is left.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from pulse.costmodel import tune
from pulse.costmodel.dataset import Dataset, read_dataset
from pulse.costmodel.gather import gather
from pulse.costmodel.hints import Hints
from pulse.costmodel.pick import Picker, find_table, picker
from pulse.costmodel.products import Listed, merged, products
from pulse.costmodel.regret import regret_of

import pulse
from pulse.engine.isa import current
from pulse.engine.native.compile import NativeModel
from pulse.engine.native.engine import NativeEngine
from pulse.engine.timing import pinned

CALLS, ROUNDS, PROGRAMS = 40, 40, 4


def timed(listed: dict[int, list[Listed]], isa: str) -> Dataset:
    """Every kernel on every product, as `pulse tune` times them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "timed.txt"
        gather(merged(listed.values()), path, [isa], tune.SETTINGS, lambda *_: True)
        return read_dataset(path)


def regrets(hints: Hints, again: Dataset, listed: list[Listed]) -> list[tuple[float, float, str]]:
    """Per product of one width: regret, nanoseconds a pulse, and what it is."""
    samples = {sample.product: sample for sample in again.samples}
    found = []
    for item in listed:
        sample = samples[item.product]
        chosen = again.kernels[hints.isa].index(hints.kernel(item.product) or "")
        regret = regret_of(sample, chosen)
        if regret is not None:
            found.append((regret.ratio, regret.chosen_ns * item.count, str(item.product)))
    return found


def whole(model: pulse.PulsedModel, pickers: dict[str, Picker]) -> dict[str, float]:
    """Microseconds per pulse: the median over rounds in which all take turns, of the fastest program each."""
    engines = {
        (name, number): NativeEngine(NativeModel(model.proto, model.info, p.isa, picker=p))
        for number in range(PROGRAMS)
        for name, p in pickers.items()
    }
    draw = np.random.default_rng(0)
    width = int(model.pulse)
    feeds = {}
    for port in model.inputs:
        shape = [port.frames(width) if axis == port.axis else int(d) for axis, d in enumerate(port.shape)]
        feeds[port.name] = draw.standard_normal(shape).astype(np.float32)
    took: dict[tuple[str, int], list[float]] = {key: [] for key in engines}
    with pinned():
        for turn in range(ROUNDS):
            for key in sorted(engines, reverse=bool(turn % 2)):
                start = time.perf_counter()
                for _ in range(CALLS):
                    engines[key].run(feeds)
                took[key].append((time.perf_counter() - start) / CALLS * 1e6)
    return {name: min(median(took[name, number]) for number in range(PROGRAMS)) for name in pickers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--pulses", default="1,2,4,8")
    args = parser.parse_args()
    isa = current()
    models = {int(width): pulse.convert(args.model, pulse=int(width), hints="none") for width in args.pulses.split(",")}
    listed = {width: products(model, width) for width, model in models.items()}
    start = time.monotonic()
    hints = tune.hints_from(timed(listed, isa), isa, listed)
    print(f"tuned in {time.monotonic() - start:.1f} s")
    again = timed(listed, isa)
    table, by = find_table(isa)
    for width, model in models.items():
        found = regrets(hints, again, listed[width])
        weighted = sum(ratio * ns for ratio, ns, _ in found) / sum(ns for _, ns, _ in found)
        worst = max(found)
        pickers = {"hints": Picker(isa, table, by, hints)}
        pickers |= {name: picker(hints="none", isa=isa) for name in ("table", "table again")}
        us = whole(model, pickers)
        print(
            f"pulse {width}: regret with hints {weighted:.3f}, worst {worst[0]:.3f} ({worst[2]}); whole model "
            f"{us['hints']:.1f} us by hints, {us['table']:.1f} by {by}: ratio {us['hints'] / us['table']:.3f}, "
            f"table again over table {us['table again'] / us['table']:.3f}"
        )


if __name__ == "__main__":
    main()
