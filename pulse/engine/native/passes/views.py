"""Walking over nodes that only look at a tensor differently, and carrying constants the other way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pulse.engine.native.net import Net
from pulse.graph.ir import Node

VIEWS = ("Reshape", "Transpose")


def is_view(node: Node) -> bool:
    return node.op in VIEWS and not node.domain


def up_to_maker(
    net: Net, name: str, makers: dict[str, Node], uses: dict[str, list[Node]]
) -> tuple[Node, list[Node]] | None:
    """The node that makes a value, looking through views, and these views from the maker downwards.

    None if the value, or one on the way, is a result or is read elsewhere too.
    """
    path: list[Node] = []
    while True:
        if name in net.results or len(uses.get(name, ())) != 1 or name not in makers:
            return None
        node = makers[name]
        if not is_view(node):
            return node, path[::-1]
        path.append(node)
        name = node.inputs[0]


def carry_up(net: Net, array: np.ndarray, path: Sequence[Node]) -> np.ndarray:
    """An array that broadcasts to the last view's output, as one of the shape of the first view's input."""
    if path:
        array = np.broadcast_to(array, net.shape(path[-1].outputs[0]))
    for view in reversed(path):
        if view.op == "Reshape":
            array = array.reshape(net.shape(view.inputs[0]))
        else:
            array = np.transpose(array, np.argsort(view.attrs["perm"]))
    return array


def per_feature(array: np.ndarray, shape: Sequence[int], axes: Sequence[int]) -> np.ndarray | None:
    """The values along some axes of an array that broadcasts to `shape`; None if they vary along others."""
    full = np.broadcast_to(array, shape)
    index = tuple(slice(None) if a in axes else slice(0, 1) for a in range(len(shape)))
    values = full[index]
    if not (full == values).all():
        return None
    return np.ascontiguousarray(values.reshape(-1))


def feature_axes(net: Net, node: Node) -> tuple[int, ...]:
    """Axes of a product's output along which its weights vary."""
    rank = len(net.shape(node.outputs[0]))
    if node.op in ("Conv", "ConvTranspose"):
        return (1,)
    return (rank - 2, rank - 1) if node.attrs["weight"].shape[0] > 1 else (rank - 1,)
