"""Sums with the output of a depthwise convolution, folded into it."""

from __future__ import annotations

import numpy as np

from pulse.engine.native.net import Net
from pulse.engine.native.passes.affine import take_name
from pulse.engine.native.passes.canonical import NATIVE
from pulse.engine.native.passes.views import up_to_maker
from pulse.graph.ir import Node
from pulse.streaming.functions import DOMAIN

ROOM = 4096  # floats in which kernels/ops/depthwise.cpp lays out bands
WIDEST = 16  # lanes of the widest instruction set


def fold_residual(net: Net) -> None:
    """Promises: where a depthwise convolution without activation is read by an Add alone, the sum is part of it. What
    it convolves, read again, is one more in the weight of the newest tap; anything else is its second input."""
    for node in list(net.nodes):
        if node.op != "Add" or node.domain or any(i in net.constants for i in node.inputs):
            continue
        if net.shape(node.inputs[0]) != net.shape(node.inputs[1]):
            continue
        for side in (0, 1):
            found = up_to_maker(net, node.inputs[side], net.makers(), net.uses())
            if found and _open(net, found[0]) and _fold(net, node, side, *found):
                break


def _open(net: Net, node: Node) -> bool:
    return depthwise(net, node) and len(node.inputs) == 1 and bool(node.attrs["act"] == "none")


def depthwise(net: Net, node: Node) -> bool:
    """A convolution with one filter per channel, short enough for the step that lays out bands in a row."""
    if node.domain != NATIVE or node.op != "Conv":
        return False
    weight = node.attrs["weight"]
    return bool(node.attrs["group"] == net.shape(node.inputs[0])[1] == len(weight)) and _short(node)


def _short(node: Node) -> bool:
    """Two vectors of strided bands and the taps fit in the step's room, whichever axis turns out to be the bands."""
    kernel = node.attrs["weight"].shape[2:]
    reach = [
        (k - 1) * d + 1 + 2 * WIDEST * s
        for k, d, s in zip(kernel, node.attrs["dilations"], node.attrs["strides"], strict=True)
    ]
    return bool(max(kernel) * (max(reach) + max(max(p) for p in node.attrs["pads"])) < ROOM)


def _fold(net: Net, node: Node, side: int, conv: Node, path: list[Node]) -> bool:
    other = node.inputs[1 - side]
    if path or not _newest_tap(net, conv, other):
        if any(v.op != "Transpose" for v in path) or _depends(net, other, conv.outputs[0]):
            return False
        for view in reversed(path):
            name = f"{other}.as.{view.inputs[0]}"
            net.types[name] = net.types[view.inputs[0]]
            back = Node("Transpose", [other], [name], {"perm": [int(p) for p in np.argsort(view.attrs["perm"])]}, name)
            net.nodes.insert(net.nodes.index(node), back)
            other = name
        conv.inputs.append(other)
        # The convolution, and the views of it, now come after what is added.
        for moved in (conv, *path):
            net.nodes.remove(moved)
            net.nodes.insert(net.nodes.index(node), moved)
    net.nodes.remove(node)
    take_name(net, node.outputs[0], node.inputs[side])
    return True


def _newest_tap(net: Net, conv: Node, other: str) -> bool:
    """Adds 1 to the weight of the tap that reads `other` as it is, if there is one."""
    history = net.makers().get(conv.inputs[0])
    if history is None or history.domain != DOMAIN or history.op != "History" or history.inputs[0] != other:
        return False
    axis, frames = history.attrs["axis"] - 2, history.attrs["frames"]
    attrs, weight = conv.attrs, conv.attrs["weight"]
    if any(s != 1 for s in attrs["strides"]) or frames % attrs["dilations"][axis]:
        return False
    tap = [p[0] // d for p, d in zip(attrs["pads"], attrs["dilations"], strict=True)]
    tap[axis] = frames // attrs["dilations"][axis]
    exact = all(p[0] % d == 0 for p, d in zip(attrs["pads"], attrs["dilations"], strict=True))
    if not exact or any(t >= k for t, k in zip(tap, weight.shape[2:], strict=True)):
        return False
    attrs["weight"] = weight.copy()
    attrs["weight"][(slice(None), 0, *tap)] += 1
    return True


def _depends(net: Net, name: str, on: str) -> bool:
    """Whether a value is computed from another."""
    makers, todo, seen = net.makers(), [name], set()
    while todo:
        value = todo.pop()
        if value == on:
            return True
        if value in seen or value not in makers:
            continue
        seen.add(value)
        todo.extend(i for i in makers[value].inputs if i)
    return False
