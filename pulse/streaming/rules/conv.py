"""Conv: on a spatial stream axis a sliding window; with the signal as the batch, frame by frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.facts import Stream, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.framewise import refuse_mixing, stream_of
from pulse.streaming.window import Window, read_spatial, slide

# where the weights are, and where the zero points of the data, per op
_WEIGHTS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}


@rule("Conv", "ConvInteger", "QLinearConv")
def conv(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    value = inputs[0]
    assert value is not None
    weights = inputs[_WEIGHTS[node.op]]
    if not isinstance(value.fact, Stream) or weights is None or isinstance(weights.fact, Stream):
        raise refuse_mixing(node, "no-rule", "a convolution whose weights are a stream")
    fact = stream_of(value)
    if fact.axis == 0:
        return ctx.per_frame(node, inputs, 0)
    if fact.axis == 1:
        raise refuse_mixing(node, "reduce-over-stream", "the channel sum of a convolution")
    kernel = [int(d) for d in weights.fact.dims[2:]]  # type: ignore[union-attr]
    if len(kernel) != len(fact.shape) - 2:
        raise ctx.misfit(node, f"input of rank {len(fact.shape)}, weights of rank {len(kernel) + 2}")
    spatial = read_spatial(ctx, node, fact, kernel)
    i = fact.axis - 2
    attrs: dict[str, Any] = {**spatial.attrs(i), "group": node.attrs.get("group", 1)}
    before, after = spatial.pads[i]
    extent, stride = spatial.extent(i), spatial.strides[i]
    length = ((fact.length + before + after - extent) // stride + 1).clamp()
    plain = Node(node.op, node.inputs, node.outputs, attrs, node.name)
    (dtype, shape), *_ = ctx.shapes(plain, inputs)

    def run(block: str) -> str:
        names = [block, *(ctx.use(v) for v in inputs[1:])]
        return ctx.emit.node(node.op, names, attrs, node.outputs, label=node.name)[0]

    def compute(block: np.ndarray) -> np.ndarray:
        rest = [None if v is None else v.fact.value for v in inputs[1:]]  # type: ignore[union-attr]
        return ctx.evaluate(plain, [block, *rest])[0]

    cut = tuple(0 if a == fact.axis else d for a, d in enumerate(shape))
    window = Window(extent, stride, before, length)
    return [slide(ctx, value, window, _zero(node, inputs), run, compute, cut, dtype)]


def _zero(node: Node, inputs: Inputs) -> int:
    """What padding reads as: the zero point of quantised data."""
    point = inputs[2] if node.op != "Conv" and len(inputs) > 2 else None
    return 0 if point is None else int(point.fact.value.reshape(-1)[0])  # type: ignore[union-attr]
