"""Pooling over one or two axes."""

from __future__ import annotations

from pulse.engine.native.lower.context import Context, Unsupported, ref
from pulse.engine.native.plan import Field
from pulse.graph.ir import Node


def pool(ctx: Context, node: Node) -> None:
    """MaxPool, AveragePool"""
    x, y = (
        ctx.view(node.inputs[0]),
        ctx.out(node.outputs[0], (0, 2, 1) if len(ctx.net.shape(node.inputs[0])) == 3 else None),
    )
    axes = len(x.shape) - 2
    if axes > 2 or any(node.outputs[1:]):
        raise Unsupported("pooling over three axes, or with indices")
    kernel = list(node.attrs["kernel_shape"])
    strides = list(node.attrs.get("strides") or [1] * axes)
    dilations = list(node.attrs.get("dilations") or [1] * axes)
    if node.attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        pads = [_same(node, i, x.shape[2 + i], y.shape[2 + i], kernel, strides, dilations) for i in range(axes)]
    else:
        pads = list(node.attrs.get("pads") or [0] * (2 * axes))
    mean = node.op == "AveragePool"
    whole = mean and bool(node.attrs.get("count_include_pad"))
    if whole and node.attrs.get("ceil_mode"):
        raise Unsupported("a mean over padding with ceil_mode")
    if axes == 1:
        x, y = x.insert(3), y.insert(3)
        kernel, strides, dilations, pads = [*kernel, 1], [*strides, 1], [*dilations, 1], [pads[0], 0]
    args: dict[str, Field] = {
        "x": ref(x), "y": ref(y), "max": int(not mean), "whole": int(whole),
        "batch": x.shape[0], "xb": x.strides[0], "yb": y.strides[0], "channels": x.shape[1],
        "xc": x.strides[1], "yc": y.strides[1],
        "tin": x.shape[2], "tout": y.shape[2], "xt": x.strides[2], "yt": y.strides[2],
        "kt": kernel[0], "st": strides[0], "dt": dilations[0], "pt": pads[0],
        "fin": x.shape[3], "fout": y.shape[3], "xf": x.strides[3], "yf": y.strides[3],
        "kf": kernel[1], "sf": strides[1], "df": dilations[1], "pf": pads[1],
    }  # fmt: skip
    ctx.step("pool", args)


def _same(node: Node, i: int, size: int, made: int, kernel: list[int], strides: list[int], dilations: list[int]) -> int:
    """Padding before axis i for SAME."""
    total = max((made - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - size, 0)
    return total // 2 if node.attrs["auto_pad"] == "SAME_UPPER" else total - total // 2
