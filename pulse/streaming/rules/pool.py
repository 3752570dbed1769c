"""Max, average and Lp pooling along the signal: sliding windows whose padding counts for nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pulse.graph.expr import Expr
from pulse.graph.ir import Node
from pulse.graph.limits import numbers
from pulse.streaming.context import Context
from pulse.streaming.emit import np_type
from pulse.streaming.facts import Const, Poison, Stream, Uniform, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.framewise import refuse_mixing, stream_of
from pulse.streaming.window import Spatial, Window, read_spatial, slide


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    if fact.axis > 1:
        raise refuse_mixing(node, "reduce-over-stream", node.op)
    return ctx.per_frame(node, inputs, fact.axis)


@rule("MaxPool", "LpPool")
def max_pool(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    if fact.axis < 2:
        return ctx.per_frame(node, inputs, fact.axis)
    kind = np_type(fact.dtype)
    lowest = -np.inf if np.issubdtype(kind, np.floating) else np.iinfo(kind).min
    spatial = read_spatial(ctx, node, fact, node.attrs["kernel_shape"])
    kept = {k: v for k, v in node.attrs.items() if k in ("p", "storage_order")}
    ceil = bool(node.attrs.get("ceil_mode"))
    window = _window(spatial, fact.axis - 2, fact.length, ceil)
    level = _levelled(spatial, fact) if ceil else spatial
    value = _pool(ctx, node, inputs[0], level, window, lowest if node.op == "MaxPool" else 0, kept)
    indices = [Value(Poison(refuse_mixing(node, "no-rule", "indices of maxima")))] * (len(node.outputs) - 1)
    return [value, *indices]


@rule("AveragePool")
def average_pool(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """The sum over a window divided by how many of its frames count: one pool over the data, one over ones."""
    value = inputs[0]
    fact = stream_of(value)
    assert value is not None
    if fact.axis < 2:
        return ctx.per_frame(node, inputs, fact.axis)
    spatial = read_spatial(ctx, node, fact, node.attrs["kernel_shape"])
    ceil, counted = bool(node.attrs.get("ceil_mode")), bool(node.attrs.get("count_include_pad"))
    i = fact.axis - 2
    window = _window(spatial, i, fact.length, ceil)
    whole = window.before == 0 and not window.reads_past_end(fact.length)
    level = _levelled(spatial, fact) if ceil else spatial
    if (whole or counted) and not (counted and ceil):
        return [_pool(ctx, node, value, level, window, 0, {"count_include_pad": int(counted)})]
    counts = _counted(ctx, value, spatial, i, counted)
    if counted:
        # Padding counts, what hangs over it does not: pad first, then count what is there.
        before, after = zip(*spatial.pads, strict=True)
        value = _padded(ctx, node, value, [0, 0, *before, 0, 0, *after])
        rest = [(0, own[1] - pad[1]) for own, pad in zip(level.pads, spatial.pads, strict=True)]
        level = Spatial(spatial.kernel, spatial.strides, spatial.dilations, rest)
        window = replace(window, before=0)
    attrs = {"count_include_pad": 1}
    share = Node(node.op, node.inputs, [f"{node.outputs[0]}.share"], node.attrs, "")
    pooled = [_pool(ctx, n, v, level, window, 0, attrs) for n, v in ((node, value), (share, counts))]
    mean = Node("Div", ["total", "share"], node.outputs, {}, f"{node.name}.mean")
    return ctx.per_frame(mean, pooled, fact.axis)


def _padded(ctx: Context, node: Node, value: Value, pads: list[int]) -> Value:
    from pulse.streaming.rules.pad import pad

    run = Node("Pad", [node.inputs[0], "pads"], [f"{node.inputs[0]}.padded"], {}, f"{node.name}.pad")
    return pad(ctx, run, [value, Value(Const.of(np.array(pads, np.int64)), "pads")])[0]


def _counted(ctx: Context, value: Value, spatial: Spatial, i: int, padding: bool) -> Value:
    """Ones wherever a frame counts, as a stream of its own."""
    fact = stream_of(value)
    sizes = [1, 1, *fact.shape[2:]]
    length = fact.length
    if padding:
        for k, (before, after) in enumerate(spatial.pads):
            if k == i:
                length = length + before + after
            else:
                sizes[k + 2] += before + after
    sizes[fact.axis] = 1
    ones = np.ones(numbers(sizes, "a frame"), np_type(fact.dtype))
    return ctx.materialise(Value(Uniform(fact.dtype, tuple(sizes), fact.axis, length, ones), "ones"))


def _window(spatial: Spatial, i: int, length: Expr, ceil: bool) -> Window:
    before, after = spatial.pads[i]
    extent, stride = spatial.extent(i), spatial.strides[i]
    span = length + before + after - extent
    if ceil:
        # A last window may hang over the end, but must start before it.
        count = -((-span) // stride) + 1
        most = (length + before - 1) // stride + 1
        count = count - (count - most).clamp()
    else:
        count = span // stride + 1
    return Window(extent, stride, before, count.clamp())


def _levelled(spatial: Spatial, fact: Stream) -> Spatial:
    """ceil_mode by padding: last windows that hang over the end find padding there."""
    pads = []
    for k, (before, after) in enumerate(spatial.pads):
        if k + 2 != fact.axis:
            size = Expr.of(fact.shape[k + 2])
            reach = (int(_window(spatial, k, size, True).length) - 1) * spatial.strides[k] + spatial.extent(k)
            after = max(after, reach - before - int(size))
        pads.append((before, after))
    return Spatial(spatial.kernel, spatial.strides, spatial.dilations, pads)


def _pool(
    ctx: Context, node: Node, value: Value | None, spatial: Spatial, window: Window, fill: Any, kept: dict[str, Any]
) -> Value:
    """One pool without ceil_mode; `window` is that along the signal."""
    fact = stream_of(value)
    assert value is not None
    attrs = {**spatial.attrs(fact.axis - 2), **kept}
    if all(d == 1 for d in spatial.dilations):
        attrs.pop("dilations")
    plain = Node(node.op, node.inputs[:1], node.outputs[:1], attrs, node.name)
    (dtype, shape), *_ = ctx.shapes(plain, [value])
    cut = tuple(0 if a == fact.axis else d for a, d in enumerate(shape))

    def run(block: str) -> str:
        return ctx.emit.node(node.op, [block], attrs, node.outputs[:1], label=node.name)[0]

    def compute(block: np.ndarray) -> np.ndarray:
        return ctx.evaluate(plain, [block])[0]

    return slide(ctx, value, window, fill, run, compute, cut, dtype)
