"""Pad along the signal shifts indices: frames ahead are known beforehand, frames after are what masking makes."""

from __future__ import annotations

import numpy as np

from pulse.errors import PulseError
from pulse.graph.expr import Expr
from pulse.graph.ir import Node
from pulse.graph.limits import frames, numbers
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
    own = (frames(int(before[fact.axis]), "padding"), after[fact.axis])
    if own[1].constant:
        frames(int(own[1]), "padding")
    if own[0] or own[1] != 0:
        value = _along_stream(ctx, node, value, own, inputs[2] if len(inputs) > 2 else None)
    others = [0 if a == fact.axis else int(p) for a, p in enumerate(before)]
    others += [0 if a == fact.axis else int(p) for a, p in enumerate(after)]
    if not any(others):
        return [value]
    pads = Value(Const.of(np.array(others, np.int64)), f"{node.inputs[1]}.rest")
    rest = [value, pads, inputs[2] if len(inputs) > 2 else None]
    run = Node("Pad", [*node.inputs[:2], node.input(2)], node.outputs, node.attrs, node.name)
    return ctx.per_frame(run, rest, fact.axis)


def _pads(ctx: Context, node: Node, inputs: Inputs, rank: int) -> tuple[list[Expr], list[Expr]]:
    """(before, after) for every axis; what is padded after the signal may depend on its length (up to a multiple)."""
    pads = inputs[1]
    if pads is None or not isinstance(pads.fact, Const):
        raise ctx.depends(node.label)
    flat = [p if isinstance(p, Expr) else Expr.of(int(p)) for p in pads.fact.value.reshape(-1)]
    axes = const_ints(ctx, node, inputs[3], "axes") if len(inputs) > 3 else None
    before, after = [Expr.of(0)] * rank, [Expr.of(0)] * rank
    chosen = list(range(rank)) if axes is None else [normal_axis(a, rank) for a in axes]
    if len(flat) != 2 * len(chosen):
        raise ctx.misfit(node, f"{len(flat)} pads for {len(chosen)} axes")
    for i, axis in enumerate(chosen):
        before[axis], after[axis] = flat[i], flat[i + len(chosen)]
    return before, after


def _along_stream(ctx: Context, node: Node, value: Value, pads: tuple[int, Expr], fill: Value | None) -> Value:
    fact = stream_of(value)
    before, after = pads
    mode = node.attrs.get("mode", "constant")
    if mode in ("edge", "reflect") and after.constant and min(before, int(after)) >= 0:
        return pad_from_signal(ctx, node, value, (before, int(after)), mode)
    if mode != "constant":
        raise PulseError(
            "pad-mode",
            node=node.label,
            required="padding of the signal's axis with a constant, its edge frame or its reflection",
            found=f"mode `{mode}`, pads {before} and {after}",
            remedy="pad with zeros in the model, or leave this output out with --outputs",
        )
    constant = np.zeros((), np_type(fact.dtype))
    if fill is not None:
        if not isinstance(fill.fact, Const):
            raise ctx.depends(node.label)
        constant = fill.fact.value.reshape(-1)[0]
    if after.slope:
        raise ctx.depends(node.label)
    length = (fact.length + before).clamp() + after
    length = length if after.constant and int(after) >= 0 else length.clamp()
    grows = bool((after.at(after.trials()) > 0).any())
    name = ctx.masked(value, constant, start=before > 0, end=grows)
    delay = fact.delay - before
    prefix = None
    if delay < 0:
        if before >= 0:
            lead = np.full(numbers(fact.block(min(before, -delay)), "padding"), constant, np_type(fact.dtype))
            prefix = np.concatenate([lead, fact.frames(0, max(-fact.delay, 0))], axis=fact.axis)
        else:
            prefix = fact.frames(-before, -fact.delay)
    return Value(fact.on(delay=delay, length=length, prefix=prefix, affine=None), name)
