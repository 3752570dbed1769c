"""Scales and shifts after a product, folded into its weights and bias."""

from __future__ import annotations

import numpy as np

from pulse.engine.native.net import Net
from pulse.engine.native.passes.canonical import NATIVE
from pulse.engine.native.passes.views import carry_up, feature_axes, per_feature, up_to_maker
from pulse.graph.ir import Node

_BINARY = ("Add", "Sub", "Mul", "Div")


def fold_affine(net: Net) -> None:
    """Promises: no BatchNormalization, and no Add, Sub, Mul or Div with a constant, follows a product it could be
    folded into: one whose output it alone reads (through Reshape and Transpose), with one constant per output feature.

    A BatchNormalization that cannot be folded becomes Mul and Add.
    """
    for node in list(net.nodes):
        if node.domain:
            continue
        if node.op == "BatchNormalization":
            if all(i in net.constants for i in node.inputs[1:5]) and not _fold(net, node, *_norm(net, node)):
                _split(net, node)
        elif node.op in _BINARY:
            constant = next((i for i in node.inputs if i in net.constants), "")
            if constant and net.constants[constant].dtype == np.float32:
                pair = _binary(node, net.constants[constant], node.inputs.index(constant))
                if pair:
                    _fold(net, node, *pair, read=1 - node.inputs.index(constant))


def _norm(net: Net, node: Node) -> tuple[np.ndarray, np.ndarray]:
    scale, shift, mean, var = (net.constants[i].astype(np.float64) for i in node.inputs[1:5])
    factor = scale / np.sqrt(var + node.attrs.get("epsilon", 1e-5))
    column = (-1, *[1] * (len(net.shape(node.inputs[0])) - 2))
    return factor.reshape(column), (shift - mean * factor).reshape(column)


def _binary(node: Node, value: np.ndarray, index: int) -> tuple[np.ndarray, np.ndarray] | None:
    """(scale, shift) of the other operand, in double precision."""
    value = value.astype(np.float64)
    one, zero = np.ones(()), np.zeros(())
    if node.op == "Add":
        return one, value
    if node.op == "Sub":
        return (one, -value) if index == 1 else (-one, value)
    if node.op == "Mul":
        return value, zero
    return (1 / value, zero) if index == 1 and value.all() else None


def _fold(net: Net, node: Node, scale: np.ndarray, shift: np.ndarray, read: int = 0) -> bool:
    found = up_to_maker(net, node.inputs[read], net.makers(), net.uses())
    if found is None or net.shape(node.inputs[read]) != net.shape(node.outputs[0]):
        return False
    product, path = found
    if (
        product.domain != NATIVE
        or "weight" not in product.attrs
        or product.attrs["act"] != "none"
        or len(product.inputs) > 1
    ):
        return False
    shape, axes = net.shape(product.outputs[0]), feature_axes(net, product)
    rank = len(net.shape(node.outputs[0]))
    vectors = []
    for value in (scale, shift):
        full = value.reshape((1,) * (rank - value.ndim) + value.shape)
        vector = per_feature(carry_up(net, full, path), shape, axes)
        if vector is None:
            return False
        vectors.append(vector)
    apply(product, *vectors)
    net.nodes.remove(node)
    take_name(net, node.outputs[0], node.inputs[read])
    return True


def apply(product: Node, scale: np.ndarray, shift: np.ndarray) -> None:
    """Scales and shifts a product's outputs, one value per feature."""
    weight, bias = product.attrs["weight"], product.attrs["bias"]
    if product.op == "Linear":
        factor = scale.reshape(weight.shape[0], -1, 1)
    elif product.op == "Conv":
        factor = scale.reshape(-1, *[1] * (weight.ndim - 1))
    else:  # ConvTranspose: (in, out / group, ...), the inputs in blocks per group
        group = product.attrs["group"]
        factor = np.repeat(scale.reshape(group, -1), weight.shape[0] // group, axis=0)
        factor = factor.reshape(*weight.shape[:2], *[1] * (weight.ndim - 2))
    product.attrs["weight"] = (weight * factor).astype(np.float32)
    start = np.zeros(len(scale)) if bias is None else bias.astype(np.float64)
    total = start * scale + shift
    product.attrs["bias"] = total.astype(np.float32) if total.any() else None


def take_name(net: Net, old: str, new: str) -> None:
    """`old` is now what `new` is; a result keeps its name."""
    if old not in net.results:
        net.rename(old, new)
        return
    maker = net.makers()[new]
    maker.outputs[maker.outputs.index(new)] = old
    net.rename(new, old)


def _split(net: Net, node: Node) -> None:
    scale, shift = (v.astype(np.float32) for v in _norm(net, node))
    x, y = node.inputs[0], node.outputs[0]
    middle = f"{y}.scaled"
    net.types[middle] = net.types[y]
    mul = Node("Mul", [x, net.add_constant(f"{y}.scale", scale)], [middle], {}, f"{node.name}.Mul")
    add = Node("Add", [middle, net.add_constant(f"{y}.shift", shift)], [y], {}, f"{node.name}.Add")
    at = net.nodes.index(node)
    net.nodes[at : at + 1] = [mul, add]
