"""Where a pulse's time goes: one row per native step, joined with its product, its kernel and the limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from pulse.engine.isa import cpu_name
from pulse.engine.native.compile import Compiled, NativeModel, compiled
from pulse.engine.native.engine import NativeEngine
from pulse.engine.native.limit import Roof, limit_us
from pulse.engine.native.net import build
from pulse.engine.native.plan import Step
from pulse.engine.pick import Kernel, Picked, Picks, cycles, kernels
from pulse.engine.timing import pinned
from pulse.errors import PulseError

if TYPE_CHECKING:
    from pulse.model import PulsedModel

ROUNDS = 9, 360  # the least and the most
ROUND_US = 500.0  # how long a round runs the pulse: shorter than other programs hold it up, so that few rounds see one
TRIED = 8  # kernels tried per product: by the rule no other comes near
Told = Callable[[int, int], None]


@dataclass(frozen=True)
class Forced:
    """Picks one kernel for one product, and for all others as `base` does."""

    base: Picks | None
    key: tuple[object, ...]
    kernel: Kernel

    def _own(self, m: int, k: int, layout: str, act: str) -> bool:
        return (m, k, layout, act) == self.key[:2] + self.key[3:]

    def panel(self, m: int, k: int, widths: Iterable[int], *, layout: str = "frame", act: str = "none") -> int | None:
        if self._own(m, k, layout, act):
            return self.kernel.panel
        return self.base.panel(m, k, widths, layout=layout, act=act) if self.base else None

    def find(
        self, m: int, k: int, n: int, *, layout: str = "frame", act: str = "none", panel: int | None = None
    ) -> Picked | None:
        if self._own(m, k, layout, act) and n == self.key[2]:
            return _Choice(self.kernel.name, "tried")
        return self.base.find(m, k, n, layout=layout, act=act, panel=panel) if self.base else None


@dataclass(frozen=True)
class _Choice:
    kernel: str
    by: str


def profile(
    model: PulsedModel, pulse: int, *, weights: str = "f32", try_kernels: bool = False, told: Told | None = None
) -> dict[str, Any]:
    """The table of one pulse of `pulse` source frames, with the keys of `pulse profile --json`; times in microseconds.

    Args:
        weights: what large weights are stored in, "f32" or "bf16"; the limit counts the bytes that they take.
        try_kernels: also run each product by its likeliest other kernels, in place, and give the regret: by how much
            the one in use is slower than the best. Float32 weights only, whose kernels there is a choice of.
        told: called with what is done and what there is to do, while kernels are tried.

    Raises:
        PulseError: `engine-unsupported` names what has no native form, `usage` for kernels to try on bf16 weights.
    """
    if try_kernels and weights != "f32":
        raise PulseError(
            "usage",
            node="--try-kernels",
            required="float32 weights, whose kernels are picked one by one",
            found=f"weights {weights}",
            remedy="leave out --try-kernels or --weights",
        )
    native_model = compiled(model, weights)
    with pinned():
        bench = _Bench(native_model, pulse)
        total, inside, times = bench.measure()
        steps = bench.made.plan.steps
        roof = Roof.of(native_model.isa, sum(int(s.facts.get("bytes", 0)) for s in steps))
        rows = [_row(step, us, sum(times), roof) for step, us in zip(steps, times, strict=True)]
        if try_kernels:
            _regrets(native_model, pulse, steps, rows, told)
        net = build(model.proto, model.info, pulse)
        limit = limit_us(net, native_model.isa, weights)
    return {
        "model": model.info.source_name,
        "pulse": pulse,
        "cpu": cpu_name(),
        "isa": native_model.isa,
        "weights": weights,
        "total_us": total,
        "python_us": max(total - inside, 0.0),
        "limit_us": limit,
        "steps": rows,
    }


class _Bench:
    """A stream of its own on random input."""

    def __init__(self, model: NativeModel, pulse: int) -> None:
        self.made: Compiled = model.at(pulse)
        engine = NativeEngine(model)
        random = np.random.default_rng(0)
        self.inputs, self.outputs = engine.blank(pulse)
        for array in self.inputs.values():
            array[...] = random.standard_normal(array.shape)
        self.runner, _ = engine.bind(self.inputs, self.outputs)
        self.runner.run_on(self.inputs, self.outputs, 0)

    def measure(self) -> tuple[float, float, list[float]]:
        """Microseconds of a whole `step` call, of its native part, and of every step. What Python takes is small beside
        the noise of either: it is told from the least of both."""
        pulse_us = max(self.runner.time(0, 3) / 1e3, 0.1)
        count = max(1, int(ROUND_US / pulse_us))
        rounds = min(max(int(ROUNDS[1] * ROUND_US / (count * pulse_us)), ROUNDS[0]), ROUNDS[1])
        calls, inside, parts = [], [], []
        for _ in range(rounds):
            start = time.perf_counter_ns()
            for _ in range(count):
                self.runner.step(self.inputs, self.outputs, 0)
            calls.append((time.perf_counter_ns() - start) / 1e3 / count)
            inside.append(self.runner.time(0, count) / 1e3)
            parts += [self.runner.profile(0) for _ in range(-(-count // 4))]
        return (
            median(calls),
            median(calls) - (min(calls) - min(inside)),
            (np.median(np.array(parts), axis=0) / 1e3).tolist(),
        )

    def time_of(self, index: int) -> float:
        """Microseconds of one step."""
        parts = [self.runner.profile(0)[index] for _ in range(60)]
        return float(np.median(parts)) / 1e3


def _row(step: Step, us: float, total: float, roof: Roof) -> dict[str, Any]:
    facts = step.facts
    macs, size = int(facts.get("macs", 0)), int(facts.get("bytes", 0))
    row: dict[str, Any] = {"name": step.node, "op": step.kind, "us": us, "share": us / total if total else 0.0}
    row |= {key: facts.get(key) for key in ("m", "k", "n", "count", "kernel", "picked_by")}
    row["gflops"] = 2 * macs / us / 1e3 if macs and us else None
    reads = size * (int(facts.get("count", 1)) if step.kind in ("gru", "lstm", "rnn") else 1)
    row["limit_share"] = roof.ns(macs, reads) / 1e3 / us if macs and us else None
    row["regret"] = None
    return row


def _regrets(model: NativeModel, pulse: int, steps: list[Step], rows: list[dict[str, Any]], told: Told | None) -> None:
    """Fills in the regret of every product, and the best kernel where it is another."""
    tries = [(index, step, kernel) for index, step in enumerate(steps) for kernel in _likely(step, model.isa)]
    best: dict[int, tuple[float, str]] = {}
    for done, (index, step, kernel) in enumerate(tries):
        if told:
            told(done, len(tries))
        try:
            took = _Bench(model.with_picker(Forced(model.picker, product_key(step), kernel)), pulse).time_of(index)
        except AssertionError:  # a kernel that cannot take these strides
            continue
        if index not in best or took < best[index][0]:
            best[index] = (took, kernel.name)
    own = _Bench(model, pulse)
    for index, (took, name) in best.items():
        mine = own.time_of(index)
        rows[index]["regret"] = max(mine / took - 1, 0.0) if name != rows[index]["kernel"] else 0.0
        rows[index]["best"] = name if took < mine else rows[index]["kernel"]


def product_key(step: Step) -> tuple[object, ...]:
    """What tells a product's picks apart."""
    facts = step.facts
    return facts["m"], facts["k"], facts["n"], facts["layout"], facts["act"]


def _likely(step: Step, isa: str) -> list[Kernel]:
    """Kernels worth trying for a product step, by the rule."""
    if step.kind != "product":
        return []
    facts = step.facts
    fitting = [kernel for kernel in kernels(isa) if step.facts["takes"](kernel)]
    return sorted(fitting, key=lambda kernel: cycles(kernel, facts["m"], facts["k"], facts["n"]))[:TRIED]
