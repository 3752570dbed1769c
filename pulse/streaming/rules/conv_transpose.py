"""ConvTranspose along the signal: each pulse's full result, its tail added to the head of the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from pulse.graph.ir import Node
from pulse.graph.limits import frames
from pulse.streaming.context import Context
from pulse.streaming.emit import np_type
from pulse.streaming.facts import Const, Stream, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.framewise import refuse_mixing, stream_of
from pulse.streaming.window import Spatial, read_steps


@rule("ConvTranspose")
def conv_transpose(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """Output frame `i*stride + t - before` gets input frame `i` by kernel tap `t`; bias is added once, after."""
    value, weights = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    fact = stream_of(value)
    assert value is not None
    if weights is None or isinstance(weights.fact, Stream):
        raise refuse_mixing(node, "no-rule", "a transposed convolution whose weights are a stream")
    if fact.axis == 0:
        return ctx.per_frame(node, inputs, 0)
    if fact.axis == 1:
        raise refuse_mixing(node, "reduce-over-stream", "the channel sum of a convolution")
    kernel = [int(d) for d in weights.fact.dims[2:]]  # type: ignore[union-attr]
    if len(kernel) != len(fact.shape) - 2:
        raise ctx.misfit(node, f"input of rank {len(fact.shape)}, weights of rank {len(kernel) + 2}")
    i = fact.axis - 2
    spatial, extra = _geometry(ctx, node, fact, kernel)
    extent, stride = spatial.extent(i), spatial.strides[i]
    before, after = spatial.pads[i]
    length = ((fact.length - 1) * stride + extent - before - after + extra[i]).clamp()

    attrs: dict[str, Any] = {**spatial.attrs(i), "group": node.attrs.get("group", 1)}
    attrs["output_padding"] = [0 if k == i else e for k, e in enumerate(extra)]
    plain = Node("ConvTranspose", node.inputs[:2], node.outputs, attrs, node.name)
    (dtype, shape), *_ = ctx.shapes(plain, [value, weights])
    cut = tuple(0 if a == fact.axis else d for a, d in enumerate(shape))
    tail = extent - stride

    late = length - (fact.length * stride - before)
    end = bool((late.at(length.trials()) > 0).any())
    block = ctx.masked(value, 0, start=tail > before, end=end)
    full = ctx.emit.node(
        "ConvTranspose", [block, ctx.use(weights)], attrs, [f"{node.outputs[0]}.full"], label=node.name
    )
    delay = fact.delay * stride + before
    known = None
    if fact.delay < 0:
        constant = weights.fact.value  # type: ignore[union-attr]
        known = ctx.evaluate(plain, [fact.frames(0, -fact.delay), constant])[0]
    name = full[0]
    out = Stream(dtype, cut, fact.axis, fact.rate * stride, delay, length)
    if tail > 0:
        name = _overlap_add(ctx, name, out, tail, known)
    elif tail < 0:
        name = _extend(ctx, name, out, -tail)
    name = _add_bias(ctx, name, bias, fact, out, node)
    if delay < 0:
        assert known is not None
        out = out.on(prefix=_prefix(known, out, before, -fact.delay * stride, bias))
    return [Value(out, name)]


def _geometry(ctx: Context, node: Node, fact: Stream, kernel: list[int]) -> tuple[Spatial, list[int]]:
    """Explicit pads and output padding; `output_shape` and SAME are made explicit on the other axes."""
    n = len(kernel)
    strides, dilations, pads = read_steps(node, kernel, n)
    extra = list(node.attrs.get("output_padding") or [0] * n)
    for k in extra:
        frames(k, "padding")
    wanted = node.attrs.get("output_shape")
    auto = node.attrs.get("auto_pad", "NOTSET")
    if wanted or auto in ("SAME_UPPER", "SAME_LOWER"):
        for k in range(n):
            full = (kernel[k] - 1) * dilations[k] + 1 + extra[k]
            if k + 2 == fact.axis:
                if wanted:
                    raise ctx.depends(node.label)
                total = full - strides[k]
            else:
                size = fact.shape[k + 2]
                target = wanted[-n:][k] if wanted else size * strides[k]
                total = (size - 1) * strides[k] + full - target
            total = max(total, 0)
            small, large = total // 2, total - total // 2
            pads[k] = (large, small) if auto == "SAME_LOWER" else (small, large)
    elif auto == "VALID":
        pads = [(0, 0)] * n
    elif auto != "NOTSET":
        raise ctx.misfit(node, f"auto_pad `{auto}`")
    return Spatial(kernel, strides, dilations, pads), extra


def _overlap_add(ctx: Context, full: str, out: Stream, tail: int, known: np.ndarray | None) -> str:
    state = ctx.emit.open_state(f"{full}.tail", out.block(tail), out.dtype)
    initial = None
    if known is not None:
        initial = np.take(known, np.arange(known.shape[out.axis] - tail, known.shape[out.axis]), axis=out.axis)
    attrs = {"axis": out.axis, "frames": tail}
    names = [f"{full}.sum", f"{state.input}.out"]
    y, kept = ctx.emit.call("OverlapAdd", [full, ctx.emit.current(state, initial)], attrs, names)
    ctx.emit.finish(state, kept)
    return y


def _extend(ctx: Context, full: str, out: Stream, frames: int) -> str:
    """A kernel shorter than the stride leaves frames that no input reaches."""
    pads = np.zeros(2 * len(out.shape), np.int64)
    pads[len(out.shape) + out.axis] = frames
    return ctx.emit.node("Pad", [full, ctx.emit.const(pads)], outputs=[f"{full}.extended"])[0]


def _add_bias(ctx: Context, name: str, bias: Value | None, fact: Stream, out: Stream, node: Node) -> str:
    if bias is None:
        return name
    shape = np.array([1, -1] + [1] * (len(out.shape) - 2), np.int64)
    if isinstance(bias.fact, Const):
        addend = ctx.emit.const(bias.fact.value.reshape(shape), bias.name)
    else:
        addend = ctx.emit.node("Reshape", [ctx.use(bias), ctx.emit.const(shape)], outputs=[f"{bias.name}.column"])[0]
    return ctx.emit.node("Add", [name, addend], outputs=node.outputs)[0]


def _prefix(known: np.ndarray, out: Stream, before: int, ready: int, bias: Value | None) -> np.ndarray:
    """Frames which the input's prefix alone decides."""
    missing = ready - known.shape[out.axis]
    if missing > 0:
        pads = [(0, missing if a == out.axis else 0) for a in range(known.ndim)]
        known = np.pad(known, pads)
    prefix = np.take(known, np.arange(before, ready), axis=out.axis).astype(np_type(out.dtype))
    if bias is not None and isinstance(bias.fact, Const):
        prefix = prefix + bias.fact.value.reshape([1, -1] + [1] * (known.ndim - 2))
    return prefix
