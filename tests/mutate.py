"""Seeded mutations of model files and pulsed artefacts, and what comes of them.

`python tests/mutate.py --count 20000` runs that many in worker processes and prints what came of them; a mutant is
named by its number alone, so that `--only 4711` runs it again. Every outcome must be a success or a `PulseError`: no
other exception, no hang (5 s of CPU), no crash, no memory beyond the limit.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import resource
import signal
import subprocess
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from mutants import Base, bases, mutant_of

MEMORY = 1536 << 20  # bytes of address space that a mutant may add to the worker's own
SECONDS = 5  # of CPU per mutant
ENGINES = (None, "onnxruntime", None, "onnxruntime", "reference")  # None is the default
MOST_PULSES = 1000  # a longer tail is no hang, but takes its time
PATIENCE = 90  # seconds without a word from a worker: a deadlock, which takes no CPU


def mutant(number: int, known: list[Base]) -> tuple[Base, bytes]:
    """The mutant of that number: small nets and artefacts by turns, now and then one of the large models."""
    rng = np.random.default_rng(number)
    chosen = known[rng.choice(len(known), p=_weights(known))]
    return chosen, mutant_of(chosen.data, rng)


def _weights(known: list[Base]) -> np.ndarray:
    weights = np.array([b.weight for b in known], float)
    return weights / weights.sum()


def attempt(base: Base, data: bytes, number: int) -> str:
    """What comes of a mutant: "ok", or the code of the PulseError. Anything else is raised."""
    import pulse
    from pulse.diagnostics import CODES
    from pulse.inspect import inspect

    rng = np.random.default_rng(number)
    engine = ENGINES[number % len(ENGINES)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if base.pulsed:
                model = pulse.load(data)
            else:
                if number % 4 == 0:
                    inspect(data)
                model = pulse.convert(data, int(rng.choice([1, 4])) if number % 2 else "dynamic")
                if number % 8 == 0:
                    model = pulse.load(model.proto.SerializeToString())
            _drive(model, engine, rng)
        except pulse.PulseError as error:
            refusal = error
        else:
            return "ok"
    if refusal.code not in CODES or not (refusal.required and refusal.found and refusal.remedy):
        raise AssertionError(f"no whole diagnostic: {refusal!r}")
    return refusal.code


def _drive(model, engine: str | None, rng: np.random.Generator) -> None:  # type: ignore[no-untyped-def]
    """A few frames in two pushes, then the tail."""
    from pulse.check import random_inputs

    stream = model.stream(engine=engine)
    step = int(np.lcm(model.granularity, model.info.length_multiple))
    width = model.granularity * 4096 if model.pulse == "dynamic" else model.pulse
    tail = max(o.delay / o.rate + int(o.length.at(step)) / o.rate - step for o in model.outputs)
    if step > 10_000 or tail > MOST_PULSES * width:
        return
    for frames in (step * -(-5 // step), step):
        stream.push(random_inputs(model.inputs, frames, rng))
    stream.flush()


# ---- workers


def work(start: int, stop: int, stride: int) -> None:
    """Runs mutants, saying each number before and what came of it after."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    faulthandler.enable()
    known = list(bases())
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    for number in range(start, stop, stride):
        base, data = mutant(number, known)
        print("try", number, flush=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # its signal ends the process
        try:
            outcome = attempt(base, data, number)
        except Exception as error:  # what this file looks for
            where = traceback.extract_tb(error.__traceback__)
            own = [f for f in where if "/pulse/" in f.filename] or where
            outcome = f"!{type(error).__name__} {Path(own[-1].filename).name}:{own[-1].lineno} {str(error)[:100]!r}"
        signal.setitimer(signal.ITIMER_PROF, 0)
        print("got", number, outcome, flush=True)


@dataclass
class Found:
    """What came of a run: how often each outcome, and the failures as (number, base, what)."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str, str]] = field(default_factory=list)


def run(start: int, stop: int, workers: int = 1) -> Found:
    """All mutants of a range. A worker that dies is replaced; its mutant is a failure."""
    found = Found()
    known = list(bases())
    for number, what in _outcomes(start, stop, workers):
        if what.startswith("!"):
            found.failures.append((number, mutant(number, known)[0].name, what[1:]))
            found.outcomes["failed"] += 1
        else:
            found.outcomes[what] += 1
    return found


def _outcomes(start: int, stop: int, workers: int) -> Iterator[tuple[int, str]]:
    """(number, outcome) from all workers; the outcome of a mutant that ended its worker starts with "!" too."""
    said: Queue[tuple[int, str]] = Queue()
    tasks = {i: _spawn(i, start + i, stop, workers, said) for i in range(workers)}
    current: dict[int, int] = {}
    last: dict[int, int] = {}
    while tasks:
        try:
            worker, line = said.get(timeout=PATIENCE)
        except Empty:
            for task in tasks.values():
                task.kill()  # which is said as their end
            continue
        kind, _, rest = line.partition(" ")
        number, _, what = rest.partition(" ")
        if kind == "try":
            current[worker] = last[worker] = int(number)
        elif kind == "got":
            del current[worker]
            yield int(number), what
        elif kind == "end":
            status = tasks.pop(worker).wait()
            if status and worker not in last:
                raise RuntimeError(f"a worker ended with status {status} before its first mutant")
            if status:
                reached = last[worker]
                yield reached, f"!{_why(status)}" + ("" if current.pop(worker, None) else ", after it was done")
                if reached + workers < stop:
                    tasks[worker] = _spawn(worker, reached + workers, stop, workers, said)


def _why(status: int) -> str:
    if status == -signal.SIGPROF:
        return f"hang: more than {SECONDS} s of CPU"
    if status == -signal.SIGKILL:
        return f"hang: not a word for {PATIENCE} s"
    return f"crash: {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def _spawn(worker: int, start: int, stop: int, stride: int, said: Queue[tuple[int, str]]) -> subprocess.Popen[str]:
    """A worker whose lines, and "end" after them, go to the queue."""
    root = str(Path(__file__).parents[1])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, __file__, "--work", str(start), str(stop), str(stride)]
    errors = None if os.environ.get("PULSE_MUTATE_STDERR") else subprocess.DEVNULL
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    task = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)

    def listen() -> None:
        assert task.stdout is not None
        for line in task.stdout:
            said.put((worker, line.rstrip("\n")))
        said.put((worker, "end"))

    Thread(target=listen, daemon=True).start()
    return task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this mutant in this process")
    parser.add_argument("--save", help="with --only: write the mutant to this file")
    parser.add_argument("--work", type=int, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(*options.work)
        return
    if options.only is not None:
        base, data = mutant(options.only, list(bases()))
        print(base.name, len(data), "bytes")
        if options.save:
            Path(options.save).write_bytes(data)
        print(attempt(base, data, options.only))
        return
    found = run(options.start, options.start + options.count, options.workers)
    for outcome, times in found.outcomes.most_common():
        print(f"{times:7} {outcome}")
    for number, name, what in sorted(found.failures, key=lambda f: f[2]):
        print(f"mutant {number} of {name}: {what}")
    sys.exit(bool(found.failures))


if __name__ == "__main__":
    main()
