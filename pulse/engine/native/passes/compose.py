"""Two linear layers with nothing between them as one, where that is less work."""

from __future__ import annotations

from math import prod

import numpy as np

from pulse.engine.native.net import Net
from pulse.engine.native.passes.affine import take_name
from pulse.engine.native.passes.canonical import NATIVE
from pulse.graph.ir import Node


def compose(net: Net) -> None:
    """Promises: no convolution without activation is followed by a 1x1 convolution alone that could be merged into it
    with fewer multiply-adds; likewise for two Linear layers."""
    for second in list(net.nodes):
        uses, makers = net.uses(), net.makers()
        x = second.inputs[0] if second.inputs else ""
        first = makers.get(x)
        if first is None or x in net.results or len(uses[x]) != 1:
            continue
        if not (_plain(first) and second.domain == NATIVE and first.op == second.op):
            continue
        merged = (
            _conv(first, second) if first.op == "Conv" else _linear(first, second) if first.op == "Linear" else None
        )
        if merged is None:
            continue
        first.attrs["weight"], first.attrs["bias"] = merged
        first.attrs["group"] = 1
        for key in ("act", "alpha", "slope"):
            first.attrs[key] = second.attrs[key]
        net.nodes.remove(second)
        net.types[x] = net.types[second.outputs[0]]
        take_name(net, second.outputs[0], x)


def _plain(node: Node) -> bool:
    return node.domain == NATIVE and node.attrs.get("act") == "none" and len(node.inputs) == 1


def _conv(first: Node, second: Node) -> tuple[np.ndarray, np.ndarray | None] | None:
    a, b = first.attrs["weight"].astype(np.float64), second.attrs["weight"].astype(np.float64)
    pointwise = prod(b.shape[2:]) == 1 and all(s == 1 for s in second.attrs["strides"])
    if not pointwise or second.attrs["group"] != 1 or any(any(p) for p in second.attrs["pads"]):
        return None
    group, made, taps = first.attrs["group"], a.shape[0], prod(a.shape[1:])
    dense = len(b) * a.shape[1] * group * prod(a.shape[2:])
    if dense >= made * taps + len(b) * made:
        return None
    mix = b.reshape(len(b), made)
    per = made // group
    parts = [
        np.tensordot(mix[:, g * per : (g + 1) * per], a[g * per : (g + 1) * per], axes=(1, 0)) for g in range(group)
    ]
    return np.concatenate(parts, axis=1).astype(np.float32), _bias(mix, first, second)


def _linear(first: Node, second: Node) -> tuple[np.ndarray, np.ndarray | None] | None:
    a, b = first.attrs["weight"].astype(np.float64), second.attrs["weight"].astype(np.float64)
    if len(a) != 1 or len(b) != 1 or b[0].shape[0] * a[0].shape[1] >= a[0].size + b[0].size:
        return None
    return (b[0] @ a[0])[None].astype(np.float32), _bias(b[0], first, second)


def _bias(mix: np.ndarray, first: Node, second: Node) -> np.ndarray | None:
    before: np.ndarray | None = first.attrs["bias"]
    after: np.ndarray | None = second.attrs["bias"]
    if before is None:
        return after
    total = mix @ before.astype(np.float64)
    return np.asarray(total if after is None else total + after, np.float32)
