"""Activations into the store of the product they follow."""

from __future__ import annotations

import numpy as np

from pulse.engine.native.net import Net
from pulse.engine.native.passes.affine import take_name
from pulse.engine.native.passes.canonical import NATIVE
from pulse.engine.native.passes.views import carry_up, feature_axes, per_feature, up_to_maker

_SIMPLE = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh"}


def fuse_activations(net: Net) -> None:
    """Promises: no Relu, Sigmoid, Tanh, LeakyRelu, or PRelu with a constant slope per feature, follows a product that
    has no activation and whose output it alone reads, through Reshape and Transpose."""
    for node in list(net.nodes):
        if node.domain or node.op not in (*_SIMPLE, "LeakyRelu", "PRelu"):
            continue
        found = up_to_maker(net, node.inputs[0], net.makers(), net.uses())
        if found is None:
            continue
        product, path = found
        if product.domain != NATIVE or product.attrs.get("act") != "none":
            continue
        if node.op == "PRelu":
            slope = net.constants.get(node.inputs[1])
            if slope is None:
                continue
            full = slope.reshape((1,) * (len(net.shape(node.inputs[0])) - slope.ndim) + slope.shape)
            axes = feature_axes(net, product)
            vector = per_feature(carry_up(net, full, path), net.shape(product.outputs[0]), axes)
            if vector is None:
                continue
            product.attrs["act"], product.attrs["slope"] = "prelu", vector.astype(np.float32)
        elif node.op == "LeakyRelu":
            product.attrs["act"], product.attrs["alpha"] = "leaky", float(node.attrs.get("alpha", 0.01))
        else:
            product.attrs["act"] = _SIMPLE[node.op]
        net.nodes.remove(node)
        take_name(net, node.outputs[0], node.inputs[0])
