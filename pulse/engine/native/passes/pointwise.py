"""Convolutions that only scale each channel."""

from __future__ import annotations

import numpy as np

from pulse.engine.native.net import Net
from pulse.engine.native.passes.residual import depthwise
from pulse.graph.ir import Node

_ACTS = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}


def unroll_pointwise(net: Net) -> None:
    """Promises: no convolution with one filter of a single tap per channel is left: it is Mul and Add, which join the
    elementwise operations around them."""
    done: list[Node] = []
    for node in net.nodes:
        done.extend(_unrolled(net, node) if _scales(net, node) else [node])
    net.nodes = done


def _scales(net: Net, node: Node) -> bool:
    if not depthwise(net, node) or len(node.inputs) > 1 or node.attrs["act"] not in ("none", *_ACTS):
        return False
    attrs = node.attrs
    return attrs["weight"].size == len(attrs["weight"]) and max(attrs["strides"]) == 1 and not np.any(attrs["pads"])


def _unrolled(net: Net, node: Node) -> list[Node]:
    attrs, x, y = node.attrs, node.inputs[0], node.outputs[0]
    column = (-1, *[1] * (attrs["weight"].ndim - 2))
    parts: list[tuple[str, list[str]]] = [("Mul", [net.add_constant(f"{y}.scale", attrs["weight"].reshape(column))])]
    if attrs["bias"] is not None:
        parts.append(("Add", [net.add_constant(f"{y}.shift", attrs["bias"].reshape(column))]))
    if attrs["act"] != "none":
        parts.append((_ACTS[attrs["act"]], []))
    made = []
    for number, (op, more) in enumerate(parts):
        result = y if number == len(parts) - 1 else f"{y}.{op}"
        net.types[result] = net.types[y]
        made.append(Node(op, [x, *more], [result], {}, f"{node.name}.{op}"))
        x = result
    return made
