"""Concat: streams joined on another axis; along the signal, constants before or after it."""

from __future__ import annotations

from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.facts import Stream, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.elementwise import two_axes
from pulse.streaming.rules.framewise import normal_axis, refuse_mixing, stream_of


@rule("Concat")
def concat(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    streams = [stream_of(v) for v in inputs if v is not None and isinstance(v.fact, Stream)]
    axes = sorted({s.axis for s in streams})
    if len(axes) > 1:
        raise two_axes(node, axes)
    axis = normal_axis(node.attrs["axis"], len(streams[0].shape))
    if axis == axes[0]:
        raise refuse_mixing(node, "concat-over-stream", "Concat")
    if len(streams) < sum(v is not None for v in inputs):
        raise ctx.misfit(node, "a constant of fixed length beside the signal")
    return ctx.per_frame(node, inputs, axes[0])
