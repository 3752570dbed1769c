"""What the native engine tells about a pulse: the time of each of its steps, and the kernels of its products."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from onnx import ModelProto

from pulse.engine.native.compile import compiled
from pulse.engine.native.engine import NativeEngine
from pulse.report.families import (
    CALL,
    CONVOLUTION,
    ELEMENTWISE,
    FAMILIES,
    LINEAR,
    MOST_PULSES,
    MOVEMENT,
    NORMALISATION,
    RECURRENT,
    Insight,
)
from pulse.report.statistics import median

if TYPE_CHECKING:
    from pulse.engine.native.plan import Step
    from pulse.report.bench import Bench

_KINDS = {
    "depthwise": CONVOLUTION,
    "pool": CONVOLUTION,
    "gru": RECURRENT,
    "lstm": RECURRENT,
    "rnn": RECURRENT,
    "running_sum": RECURRENT,
    "normalise": NORMALISATION,
    "reduce": NORMALISATION,
    "copy": MOVEMENT,
    "gather": MOVEMENT,
}


def native_insight(bench: Bench, seconds: float) -> Insight:
    """Shares of the steps in a pulse. The input projection of a recurrence is a product like any other: linear."""
    model = compiled(bench.model, bench.weights)
    steps = model.at(bench.pulse).plan.steps
    runner, _ = NativeEngine(model).bind(bench.inputs, bench.outputs)
    runner.run_on(bench.inputs, bench.outputs, 0)
    runs: list[list[float]] = []
    whole: list[float] = []
    end = time.perf_counter() + 2 * seconds
    while len(runs) < 5 or (len(runs) < MOST_PULSES and time.perf_counter() < end):
        whole.append(bench.step())
        runs.append([ns / 1e3 for ns in runner.profile(0)])
    spent = [median([run[index] for run in runs]) for index in range(len(steps))]
    return told(steps, spent, median(whole), _ops(bench.model.proto))


def told(steps: list[Step], spent: list[float], step_us: float, ops: dict[str, str]) -> Insight:
    """Families, kernels and times from the microseconds of each step, and of a whole call; `ops` by name of node."""
    whole = max(step_us, sum(spent))
    families: dict[str, float] = {}
    kernels: dict[str, str] = {}
    product_us: dict[str, float] = {}
    for step, us in zip(steps, spent, strict=True):
        name = _family(step, ops)
        families[name] = families.get(name, 0.0) + us / whole
        if "kernel" in step.facts:
            product = step.node if step.node not in kernels else f"{step.node} ({step.kind})"
            kernels[product] = str(step.facts["kernel"])
            product_us[product] = us
    families[CALL] = max(1 - sum(families.values()), 0.0)
    return Insight({name: families[name] for name in FAMILIES if name in families}, kernels, product_us)


def _family(step: Step, ops: dict[str, str]) -> str:
    if step.kind == "product":
        return CONVOLUTION if "Conv" in ops.get(step.node, step.node) else LINEAR
    return _KINDS.get(step.kind, ELEMENTWISE)


def _ops(proto: ModelProto) -> dict[str, str]:
    """Operator types by what a step is called after: the name of a node, or its first output."""
    return {name: node.op_type for node in proto.graph.node for name in (node.output[0], node.name)}
