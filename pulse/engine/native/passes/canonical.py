"""Products with constant weights in two forms: Linear over the last axis, Conv over a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pulse.engine.native.net import Net
from pulse.graph.ir import Node

NATIVE = "native"


def canonical(net: Net) -> None:
    """Promises: every MatMul and Einsum with one constant operand is a `native.Linear`, every Conv and ConvTranspose
    with constant weights a `native.Conv` or `native.ConvTranspose`, where their forms allow.

    Linear: x[..., G, k] -> y[..., G, m], or x[..., k] -> y[..., m] where weight (G, m, k) has G = 1. Conv: weight as in
    ONNX, `pads` as (before, after) pairs per axis. Both have bias (one per output feature, or None), act, alpha, slope.
    """
    done: list[Node] = []
    for node in net.nodes:
        rule = _RULES.get(node.op) if not node.domain else None
        done.extend(rule(net, node) if rule else [node])
    net.nodes = done


def _matmul(net: Net, node: Node) -> list[Node]:
    a, b = node.inputs
    ranks = len(net.shape(a)), len(net.shape(b))
    if b in net.constants and min(ranks) >= 2:
        weight = net.constants[b]
        if int(np.prod(weight.shape[:-2])) == 1:
            return [linear(node, a, node.outputs[0], weight.reshape(weight.shape[-2:]).T[None])]
        if len(weight.shape) <= ranks[0]:
            names = "abcdefghij"[: ranks[0] - 2]
            own = names[len(names) - weight.ndim + 2 :]
            return _einsum_of(net, node, f"{names}mk,{own}kn->{names}mn", a, b)
    elif a in net.constants and min(ranks) >= 2:
        weight = net.constants[a]
        names = "abcdefghij"[: ranks[1] - 2]
        if weight.ndim <= ranks[1]:
            own = names[len(names) - weight.ndim + 2 :] if weight.ndim > 2 else ""
            return _einsum_of(net, node, f"{own}mk,{names}kn->{names}mn", a, b)
    return [node]


def _einsum(net: Net, node: Node) -> list[Node]:
    equation = node.attrs["equation"].replace(" ", "")
    if len(node.inputs) != 2 or "." in equation or "->" not in equation:
        return [node]
    return _einsum_of(net, node, equation, *node.inputs)


def _einsum_of(net: Net, node: Node, equation: str, a: str, b: str) -> list[Node]:
    """x to (..., groups, k), Linear, and back."""
    operands, result = equation.split("->")
    first, second = operands.split(",")
    if a in net.constants:
        first, second, a, b = second, first, b, a
    if b not in net.constants or any(len(set(t)) != len(t) for t in (first, second, result)):
        return [node]
    groups = [c for c in first if c in second and c in result]
    inner = [c for c in first if c in second and c not in result]
    rows = [c for c in second if c not in first]
    columns = [c for c in first if c not in second]
    if set(columns + groups + rows) != set(result) or not inner:
        return [node]
    size = {c: d for text, name in ((first, a), (second, b)) for c, d in zip(text, net.shape(name), strict=True)}

    def count(letters: list[str]) -> int:
        return int(np.prod([size[c] for c in letters]))

    weight = np.transpose(net.constants[b], [second.index(c) for c in groups + rows + inner])
    weight = weight.reshape(count(groups), count(rows), count(inner))
    made: list[Node] = []

    def view(op: str, x: str, shape: tuple[int, ...], attrs: dict[str, Any], name: str) -> str:
        net.types[name] = (net.types[x][0], shape)
        made.append(Node(op, [x], [name], attrs, f"{node.name}.{op}"))
        return name

    def transposed(x: str, letters: str, order: list[str], name: str) -> str:
        if list(letters) == order:
            return x
        return view("Transpose", x, tuple(size[c] for c in order), {"perm": [letters.index(c) for c in order]}, name)

    base = node.outputs[0]
    x = transposed(a, first, columns + groups + inner, f"{base}.x")
    lead = tuple(size[c] for c in columns)
    wide = (count(groups),) if count(groups) > 1 else ()
    if net.shape(x) != (*lead, *wide, count(inner)):
        x = view("Reshape", x, (*lead, *wide, count(inner)), {}, f"{base}.x.flat")
    flat = (*lead, *wide, count(rows))
    full = tuple(size[c] for c in columns + groups + rows)
    straight = columns + groups + rows == list(result)
    y = base if straight and flat == full else f"{base}.flat"
    net.types[y] = (net.types[a][0], flat)
    made.append(linear(node, x, y, weight))
    if flat != full:
        y = view("Reshape", y, full, {}, base if straight else f"{base}.full")
    if not straight:
        order = columns + groups + rows
        perm = [order.index(c) for c in result]
        view("Transpose", y, tuple(size[c] for c in result), {"perm": perm}, base)
    return made


def linear(node: Node, x: str, y: str, weight: np.ndarray, bias: np.ndarray | None = None) -> Node:
    return Node("Linear", [x], [y], product_attrs(weight, bias), node.name, NATIVE)


def product_attrs(weight: np.ndarray, bias: np.ndarray | None) -> dict[str, Any]:
    return {"weight": weight, "bias": bias, "act": "none", "alpha": 0.0, "slope": None}


def _conv(net: Net, node: Node) -> list[Node]:
    weight = net.constants.get(node.inputs[1])
    bias = net.constants.get(node.input(2))
    if weight is None or (node.input(2) and bias is None):
        return [node]
    axes = weight.ndim - 2
    strides, dilations = node.attrs.get("strides") or [1] * axes, node.attrs.get("dilations") or [1] * axes
    pads = _pads(net, node, weight, strides, dilations)
    if pads is None:
        return [node]
    attrs = product_attrs(weight, bias) | {
        "strides": list(strides),
        "dilations": list(dilations),
        "pads": pads,
        "group": node.attrs.get("group", 1),
    }
    return [Node(node.op, node.inputs[:1], node.outputs, attrs, node.name, NATIVE)]


def _pads(
    net: Net, node: Node, weight: np.ndarray, strides: list[int], dilations: list[int]
) -> list[tuple[int, int]] | None:
    """(before, after) per axis; for ConvTranspose what is cropped from the full result."""
    axes = weight.ndim - 2
    flat = node.attrs.get("pads") or [0] * (2 * axes)
    auto = node.attrs.get("auto_pad", "NOTSET")
    ins, outs = net.shape(node.inputs[0])[2:], net.shape(node.outputs[0])[2:]
    extents = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilations, strict=True)]
    if node.op == "ConvTranspose":
        if auto not in ("NOTSET", "") or node.attrs.get("output_shape"):
            return None
        # what lies behind the full result (output_padding) is a negative crop
        return [(flat[i], (ins[i] - 1) * strides[i] + extents[i] - flat[i] - outs[i]) for i in range(axes)]
    if auto in ("NOTSET", "", "VALID"):
        return [(0, 0) if auto == "VALID" else (flat[i], flat[i + axes]) for i in range(axes)]
    pads = []
    for i in range(axes):
        total = max((outs[i] - 1) * strides[i] + extents[i] - ins[i], 0)
        small = total // 2
        pads.append((small, total - small) if auto == "SAME_UPPER" else (total - small, small))
    return pads


_RULES: dict[str, Callable[[Net, Node], list[Node]]] = {
    "MatMul": _matmul,
    "Einsum": _einsum,
    "Conv": _conv,
    "ConvTranspose": _conv,
}
