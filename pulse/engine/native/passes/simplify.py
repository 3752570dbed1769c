"""Fewer kinds of nodes: what only changes a shape is Reshape, what does nothing is gone."""

from __future__ import annotations

import numpy as np

from pulse.engine.native.net import Net
from pulse.graph.ir import Node

_RESHAPES = ("Squeeze", "Unsqueeze", "Flatten", "Reshape")
_NOTHING = ("Identity", "Dropout")


def simplify(net: Net) -> None:
    """Promises: no Identity, Dropout, Squeeze, Unsqueeze or Flatten is left, nor a Reshape, Transpose, Cast, Expand or
    Concat that changes nothing; every Reshape has one input and takes its shape from the type of its output; attributes
    of Transpose are complete. Results keep their names by a Reshape where nothing else makes them."""
    for node in list(net.nodes):
        if node.domain:
            continue
        if node.op in _RESHAPES:
            node.op, node.inputs, node.attrs = "Reshape", node.inputs[:1], {}
        elif node.op == "Transpose":
            rank = len(net.shape(node.inputs[0]))
            node.attrs = {"perm": list(node.attrs.get("perm") or range(rank)[::-1])}
        if _idle(net, node):
            x, y = node.inputs[0], node.outputs[0]
            if y in net.results or x in net.constants:
                node.op, node.inputs, node.attrs = "Reshape", [x], {}
            else:
                net.nodes.remove(node)
                net.rename(y, x)


def _idle(net: Net, node: Node) -> bool:
    x, y = node.inputs[0] if node.inputs else "", node.outputs[0]
    if not x or net.types[x] != net.types.get(y):
        return False
    if node.op in _NOTHING:
        return True
    if node.op == "Transpose":
        return bool(np.all(np.diff([p for p in node.attrs["perm"] if net.shape(x)[p] != 1]) > 0))
    return node.op in ("Reshape", "Cast", "Expand") or (node.op == "Concat" and len(node.inputs) == 1)
