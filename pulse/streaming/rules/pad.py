"""Pad along the signal shifts indices: frames ahead are known beforehand, frames after are what masking makes."""

from __future__ import annotations

import numpy as np

from pulse.errors import PulseError
from pulse.graph.expr import Expr
from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.emit import np_type
from pulse.streaming.facts import Const, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.framewise import const_ints, normal_axis, stream_of
from pulse.streaming.rules.pad_from_signal import pad_from_signal


@rule("Pad")
def pad(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    value = inputs[0]
    fact = stream_of(value)
    assert value is not None
    rank = len(fact.shape)
    before, after = _pads(ctx, node, inputs, rank)
    own = (before[fact.axis], after[fact.axis])
    if any(own):
        value = _along_stream(ctx, node, value, own, inputs[2] if len(inputs) > 2 else None)
    others = [0 if a == fact.axis else p for a, p in enumerate(before)]
    others += [0 if a == fact.axis else p for a, p in enumerate(after)]
    if not any(others):
        return [value]
    pads = Value(Const.of(np.array(others, np.int64)), f"{node.inputs[1]}.rest")
    rest = [value, pads, inputs[2] if len(inputs) > 2 else None]
    run = Node("Pad", [*node.inputs[:2], node.input(2)], node.outputs, node.attrs, node.name)
    return ctx.per_frame(run, rest, fact.axis)


def _pads(ctx: Context, node: Node, inputs: Inputs, rank: int) -> tuple[list[int], list[int]]:
    """(before, after) for every axis."""
    flat = const_ints(ctx, node, inputs[1], "pads") or []
    axes = const_ints(ctx, node, inputs[3], "axes") if len(inputs) > 3 else None
    before, after = [0] * rank, [0] * rank
    chosen = list(range(rank)) if axes is None else [normal_axis(a, rank) for a in axes]
    if len(flat) != 2 * len(chosen):
        raise ctx.misfit(node, f"{len(flat)} pads for {len(chosen)} axes")
    for i, axis in enumerate(chosen):
        before[axis], after[axis] = flat[i], flat[i + len(chosen)]
    return before, after


def _along_stream(ctx: Context, node: Node, value: Value, pads: tuple[int, int], fill: Value | None) -> Value:
    fact = stream_of(value)
    before, after = pads
    mode = node.attrs.get("mode", "constant")
    if mode in ("edge", "reflect") and min(pads) >= 0:
        return pad_from_signal(ctx, node, value, pads, mode)
    if mode != "constant":
        raise PulseError(
            "pad-mode",
            node=node.label,
            required="padding of the signal's axis with a constant, its edge frame or its reflection",
            found=f"mode `{mode}`, pads {pads}",
            remedy="pad with zeros in the model, or leave this output out with --outputs",
        )
    constant = np.zeros((), np_type(fact.dtype))
    if fill is not None:
        if not isinstance(fill.fact, Const):
            raise ctx.depends(node.label)
        constant = fill.fact.value.reshape(-1)[0]
    length = shifted(shifted(fact.length, before), after)
    name = ctx.masked(value, constant, start=before > 0, end=after > 0)
    delay = fact.delay - before
    prefix = None
    if delay < 0:
        if before >= 0:
            lead = np.full(fact.block(min(before, -delay)), constant, np_type(fact.dtype))
            prefix = np.concatenate([lead, fact.frames(0, max(-fact.delay, 0))], axis=fact.axis)
        else:
            prefix = fact.frames(-before, -fact.delay)
    return Value(fact.on(delay=delay, length=length, prefix=prefix, affine=None), name)


def shifted(length: Expr, frames: int) -> Expr:
    """A length after padding (positive) or cutting (negative) frames."""
    return length + frames if frames >= 0 else (length + frames).clamp()
