"""Convolutions with one filter per channel."""

from __future__ import annotations

import numpy as np

from pulse.engine.native.lower.context import Context, ref
from pulse.engine.native.lower.product import ACTS, conv, padded
from pulse.engine.native.memory import View
from pulse.engine.native.passes.residual import ROOM
from pulse.engine.native.passes.residual import depthwise as is_depthwise
from pulse.engine.native.plan import Field, Ref
from pulse.graph.ir import Node


def convolution(ctx: Context, node: Node) -> None:
    """native.Conv of either kind."""
    if is_depthwise(ctx.net, node) and _single_step(node):
        _depthwise(ctx, node)
    else:
        conv(ctx, node)
        if len(node.inputs) > 1:
            raise AssertionError(f"{node.label} has an addend")


def _single_step(node: Node) -> bool:
    return len(node.attrs["weight"].shape) <= 4


def _depthwise(ctx: Context, node: Node) -> None:
    attrs = node.attrs
    weight = attrs["weight"][:, 0]
    x = ctx.view(node.inputs[0])
    order = (0, 2, 1) if len(x.shape) == 3 else None
    add = ctx.view(node.inputs[1]) if len(node.inputs) > 1 else None
    y = ctx.out(node.outputs[0], order)
    pads, strides, dilations = attrs["pads"], attrs["strides"], attrs["dilations"]
    if len(x.shape) == 3:  # as one band
        x, y, weight = x.insert(3), y.insert(3), weight[..., None]
        add = None if add is None else add.insert(3)
        pads, strides, dilations = [*pads, (0, 0)], [*strides, 1], [*dilations, 1]
        if x.strides[1] != 1 and x.strides[2] == 1:  # frames are contiguous: let them be the bands
            x, y = x.transpose((0, 1, 3, 2)), y.transpose((0, 1, 3, 2))
            add = None if add is None else add.transpose((0, 1, 3, 2))
            weight = weight.transpose(0, 2, 1)
            pads, strides, dilations = pads[::-1], strides[::-1], dilations[::-1]
    if any(pads[0]):
        x = padded(ctx, x, [pads[0], (0, 0)])
    lanes = int(not (x.strides[1] == y.strides[1] == 1))
    if lanes and y.strides[3] != 1 and y.shape[3] > 1:
        made = ctx.fresh(y.shape)
        emit(ctx, node, x, made, add, weight[:, None], pads, strides, dilations, 1)
        ctx.copy(made, y)
        return
    emit(ctx, node, x, y, add, weight[:, None], pads, strides, dilations, lanes)


def emit(
    ctx: Context, node: Node, x: View, y: View, add: View | None, weight: np.ndarray,
    pads: list[tuple[int, int]], strides: list[int], dilations: list[int], lanes: int,
) -> None:  # fmt: skip
    """The step for weights (channels, up, kt, kf); x and y have channels, frames and bands as axes 1 to 3."""
    for one in range(x.shape[0] if x.shape[0] > 1 else 0):
        added = None if add is None else add.slice(0, one, 1)
        parts = x.slice(0, one, 1), y.slice(0, one, 1), added
        emit(ctx, node, *parts, weight, pads, strides, dilations, lanes)
    if x.shape[0] > 1:
        return
    attrs = node.attrs
    channels, up, kt, kf = weight.shape
    bands, step = y.shape[3] // up, strides[1]
    reach = (kf - 1) * dilations[1] + 1
    most = ROOM // kt - reach - max(pads[1][0], 0) - 2 * ctx.lanes * step
    if lanes and (bands - 1) * step > most:  # a stretch at a time
        count = max(most // step, 1)
        for start in range(0, bands, count):
            size = min(count, bands - start)
            first = start * step - pads[1][0]
            low, high = max(first, 0), min(first + (size - 1) * step + reach, x.shape[3])
            part, made = x.slice(3, low, high - low), y.slice(3, start * up, size * up)
            added = None if add is None else add.slice(3, start, size)
            emit(ctx, node, part, made, added, weight, [pads[0], (low - first, 0)], strides, dilations, lanes)
        return
    dc, dt, df = (0, 0, 0) if add is None else add.strides[1:]
    if lanes == 0 and add is not None and add.strides[1] != 1:
        other = ctx.fresh(add.shape, (0, 2, 3, 1))
        ctx.copy(add, other)
        add, (dc, dt, df) = other, other.strides[1:]
    packed = weight[:, 0].transpose(1, 2, 0) if lanes == 0 else weight
    args: dict[str, Field] = {
        "y": ref(y),
        "x": Ref(x.buffer, x.offset - pads[0][0] * x.strides[2]),
        "w": Ref(ctx.weights.put(packed)),
        "bias": None if attrs["bias"] is None else Ref(ctx.weights.put(attrs["bias"])),
        "add": None if add is None else ref(add),
        "slope": None if attrs["slope"] is None else Ref(ctx.weights.put(attrs["slope"])),
        "act": ACTS.index(attrs["act"]), "alpha": float(attrs["alpha"]), "lanes": lanes, "channels": channels,
        "xc": x.strides[1], "yc": y.strides[1], "dc": dc,
        "frames": y.shape[2], "xt": x.strides[2] * strides[0], "yt": y.strides[2], "dt": dt,
        "fin": x.shape[3], "fout": bands, "xf": x.strides[3], "yf": y.strides[3], "df": df,
        "kt": kt, "xk": x.strides[2] * dilations[0], "kf": kf, "step": step, "dilation": dilations[1],
        "pad": pads[1][0], "up": up,
    }  # fmt: skip
    ctx.step("depthwise", args, macs=weight.size * y.shape[2] * bands, bytes=4 * weight.size)
