"""Ops that move or select axes: Transpose, Squeeze, Unsqueeze, Gather, Split and the like on axes other than time."""

from __future__ import annotations

import numpy as np

from pulse.errors import PulseError
from pulse.graph.expr import Expr
from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.facts import Const, Stream, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.framewise import axes_of, normal_axis, refuse_mixing, stream_of
from pulse.streaming.rules.ramp import clamped
from pulse.streaming.rules.unfold import unfold


@rule("Transpose")
def transpose(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    perm = node.attrs.get("perm") or list(range(len(fact.shape)))[::-1]
    return ctx.per_frame(node, inputs, perm.index(fact.axis))


@rule("Unsqueeze")
def unsqueeze(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    rank = len(fact.shape) + len(axes_of(ctx, node, inputs, 0) or [])
    axes = axes_of(ctx, node, inputs, rank) or []
    kept = [a for a in range(rank) if a not in axes]
    return ctx.per_frame(node, inputs, kept[fact.axis])


@rule("Squeeze")
def squeeze(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    axes = axes_of(ctx, node, inputs, len(fact.shape))
    if axes is None:
        # A pulse of one frame must keep its stream axis: name the axes of size 1.
        axes = [i for i, d in enumerate(fact.shape) if d == 1]
    if fact.axis in axes:
        raise ctx.depends(node.label)
    axis = fact.axis - sum(a < fact.axis for a in axes)
    return _with_axes(ctx, node, inputs[0], axes, axis)


def _with_axes(ctx: Context, node: Node, value: Value | None, axes: list[int], axis: int) -> list[Value]:
    run = Node(node.op, [node.inputs[0], "axes"], node.outputs, {}, node.name)
    return ctx.per_frame(run, [value, Value(Const.of(np.array(axes, np.int64)), "axes")], axis)


@rule("Gather")
def gather(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """Constant indices on another axis, or a constant table looked up by a stream of indices."""
    data, indices = inputs[0], inputs[1]
    assert data is not None
    assert indices is not None
    rank = len(data.fact.dims)  # type: ignore[union-attr]
    axis = normal_axis(node.attrs.get("axis", 0), rank)
    if isinstance(data.fact, Stream) and not isinstance(indices.fact, Stream):
        if data.fact.axis == axis:
            raise _frames_taken(node, data.fact, indices)
        shift = len(indices.fact.dims) - 1 if axis < data.fact.axis else 0  # type: ignore[union-attr]
        return ctx.per_frame(node, inputs, data.fact.axis + shift)
    picked = stream_of(indices)
    if isinstance(data.fact, Stream):
        if data.fact.axis == axis and picked.affine is not None:
            return [unfold(ctx, node, data, picked)]
        raise refuse_mixing(node, "gather-over-stream", "Gather by positions which are themselves a stream")
    rows = int(data.fact.dims[axis])  # type: ignore[union-attr]
    safe = Value(picked, clamped(ctx, ctx.use(indices), -rows, rows - 1, picked.dtype))
    return ctx.per_frame(node, [data, safe], axis + picked.axis)


def _frames_taken(node: Node, fact: Stream, indices: Value) -> PulseError:
    """Frames at fixed places: the first ones, or the last ones."""
    constant = indices.fact.value.reshape(-1) if isinstance(indices.fact, Const) else np.zeros(0)
    last = any(i < 0 if not isinstance(i, Expr) or i.constant else True for i in constant)
    return PulseError(
        "from-the-end" if last else "first-frames-only",
        node=node.label,
        required="frames that follow the signal",
        found=f"frames at fixed places of a signal of {fact.length} frames",
        remedy="single frames of a signal are no stream: leave this output out with --outputs",
    )


@rule("GatherElements")
def gather_elements(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    facts = [v.fact for v in inputs if v is not None and isinstance(v.fact, Stream)]
    axis = normal_axis(node.attrs.get("axis", 0), len(facts[0].shape))
    if len(facts) < 2 or facts[0].axis != facts[1].axis or axis == facts[0].axis:
        raise refuse_mixing(node, "gather-over-stream", node.op)
    return ctx.per_frame(node, inputs, facts[0].axis)


@rule("Split")
def split(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    if normal_axis(node.attrs.get("axis", 0), len(fact.shape)) == fact.axis:
        raise PulseError(
            "first-frames-only",
            node=node.label,
            required="Split on an axis other than the signal's",
            found="the signal cut into parts",
            remedy="parts of the signal are no streams: leave these outputs out with --outputs",
        )
    return ctx.per_frame(node, inputs, fact.axis)
