"""Fourier transforms as products with their matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pulse.engine.native.net import Net
from pulse.graph.ir import Node

if TYPE_CHECKING:
    from pulse.engine.native.passes.decompose import Maker


def stft(make: Maker, net: Net, node: Node) -> list[Node] | None:
    """STFT of a real signal: a convolution with the windowed waves as filters."""
    signal, shape = node.inputs[0], net.shape(node.inputs[0])
    step, window, length = (net.constants.get(node.input(i)) if node.input(i) else None for i in (1, 2, 3))
    real = len(shape) == 2 or (len(shape) == 3 and shape[2] == 1)
    if step is None or not real or (window is None and node.input(2)):
        return None
    n = int(length.reshape(-1)[0]) if length is not None else 0 if window is None else len(window)
    if not n or (window is not None and len(window) != n):
        return None
    bins = n // 2 + 1 if node.attrs.get("onesided", 1) else n
    waves = _waves(n, bins) * (1.0 if window is None else window.astype(np.float64)[:, None])
    weight = np.ascontiguousarray(waves.transpose(2, 0, 1).reshape(2 * bins, 1, n).astype(np.float32))
    line = make("Reshape", [signal, make.constant(np.array([shape[0], 1, -1], np.int64))])
    y = make("Conv", [line, make.constant(weight)], {"strides": [int(step.reshape(-1)[0])], "kernel_shape": [n]})
    y = make("Reshape", [y, make.constant(np.array([shape[0], 2, bins, -1], np.int64))])
    return make.done(make("Transpose", [y], {"perm": [0, 3, 2, 1]}))


def dft(make: Maker, net: Net, node: Node) -> list[Node] | None:
    """DFT over a constant axis of full length."""
    x, shape = node.inputs[0], net.shape(node.inputs[0])
    given = node.attrs.get("axis", 1)
    if node.input(2):
        if node.inputs[2] not in net.constants:
            return None
        given = int(net.constants[node.inputs[2]].reshape(-1)[0])
    elif net.opset >= 20:
        given = -2
    axis, parts = given % len(shape), shape[-1]
    length = net.constants.get(node.input(1)) if node.input(1) else np.array(shape[axis])
    if axis == len(shape) - 1 or length is None or int(length.reshape(-1)[0]) != shape[axis]:
        return None
    n, bins = shape[axis], net.shape(node.outputs[0])[axis]
    waves = _waves(n, bins)  # (bins, n, re and im of the wave)
    if node.attrs.get("inverse"):
        waves = waves * np.array([1.0, -1.0]) / n
    matrix = np.empty((n, parts, bins, 2))
    matrix[:, 0] = waves.transpose(1, 0, 2)
    if parts == 2:  # i times the wave
        matrix[:, 1, :, 0], matrix[:, 1, :, 1] = -matrix[:, 0, :, 1], matrix[:, 0, :, 0]
    order = [*(i for i in range(len(shape)) if i not in (axis, len(shape) - 1)), axis, len(shape) - 1]
    y = make("Transpose", [x], {"perm": order})
    lead = [shape[i] for i in order[:-2]]
    y = make("Reshape", [y, make.constant(np.array([*lead, n * parts], np.int64))])
    y = make("MatMul", [y, make.constant(matrix.reshape(n * parts, bins * 2).astype(np.float32))])
    y = make("Reshape", [y, make.constant(np.array([*lead, bins, 2], np.int64))])
    return make.done(make("Transpose", [y], {"perm": [int(i) for i in np.argsort(order)]}))


def _waves(n: int, bins: int) -> np.ndarray:
    """exp(-2 pi i k t / n) as (bins, n, 2)."""
    angle = -2 * np.pi * (np.outer(np.arange(bins), np.arange(n)) % n) / n
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
