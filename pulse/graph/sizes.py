"""Whether a node's operands fit each other, where ONNX's own shape inference does not look: runtimes differ in what
they make of such nodes, up to reading memory that is not theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Shapes = Sequence[Shape | None]
Check = Callable[[Mapping[str, Any], Shapes, Shapes, Sequence[np.ndarray | None]], None]


def check_sizes(
    op: str, attrs: Mapping[str, Any], inputs: Shapes, outputs: Shapes, data: Sequence[np.ndarray | None]
) -> None:
    """Raises ValueError where the operands of a standard operator do not fit. `data`: inputs that are known."""
    check = _CHECKS.get(op)
    if check is not None:
        check(attrs, inputs, outputs, data)


def _need(holds: bool, what: str, *shapes: Shape | None) -> None:
    if not holds:
        raise ValueError(f"{what}: {', '.join(str(list(s)) for s in shapes if s is not None)}")


def _at(shapes: Shapes, index: int) -> Shape | None:
    return shapes[index] if index < len(shapes) else None


def _conv(weights: int, bias: int | None, transposed: bool = False) -> Check:
    def check(attrs: Mapping[str, Any], inputs: Shapes, outputs: Shapes, data: Sequence[np.ndarray | None]) -> None:
        x, w = _at(inputs, 0), _at(inputs, weights)
        if x is None or w is None:
            return
        group = attrs.get("group", 1)
        _need(len(x) == len(w) >= 3 and group >= 1, "data and weights of one rank, at least 3", x, w)
        taken, made = (w[0], w[1] * group) if transposed else (w[1] * group, w[0])
        _need(x[1] == taken and w[0] % group == 0, f"channels that fit the weights in {group} groups", x, w)
        kernel = attrs.get("kernel_shape")
        _need(kernel is None or tuple(kernel) == w[2:], f"weights of kernel {kernel}", w)
        b = None if bias is None else _at(inputs, bias)
        _need(b is None or b == (made,), f"a bias for {made} channels", b)

    return check


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _recurrent(op: str) -> Check:
    def check(attrs: Mapping[str, Any], inputs: Shapes, outputs: Shapes, data: Sequence[np.ndarray | None]) -> None:
        x, w, r = (_at(inputs, i) for i in range(3))
        if x is None or w is None or r is None:
            raise ValueError("a recurrence without data or weights")
        _need(len(x) == len(w) == len(r) == 3 and 0 not in (*x, *w, *r), "data and weights of rank 3", x, w, r)
        ways = 2 if attrs.get("direction") == "bidirectional" else 1
        hidden = r[2]
        batch = x[0] if attrs.get("layout") else x[1]
        rows = GATES[op] * hidden
        _need(attrs.get("hidden_size", hidden) == hidden, f"hidden_size {attrs.get('hidden_size')} in the weights", r)
        _need(w == (ways, rows, x[2]) and r == (ways, rows, hidden), f"weights for {ways} ways of {rows} rows", x, w, r)
        state = (batch, ways, hidden) if attrs.get("layout") else (ways, batch, hidden)
        wanted = [(3, (ways, 2 * rows)), (4, (batch,)), (5, state)]
        wanted += [(6, state), (7, (ways, 3 * hidden))] if op == "LSTM" else []
        for index, shape in wanted:
            given = _at(inputs, index)
            _need(given is None or given == shape, f"input {index} of shape {list(shape)}", given)
        activations = attrs.get("activations") or []
        each = {"RNN": 1, "GRU": 2, "LSTM": 3}[op]
        _need(len(activations) in (0, ways * each), f"{ways * each} activations, not {activations}")

    return check


def _per_channel(*indices: int) -> Check:
    def check(attrs: Mapping[str, Any], inputs: Shapes, outputs: Shapes, data: Sequence[np.ndarray | None]) -> None:
        x = _at(inputs, 0)
        if x is None:
            return
        _need(len(x) >= 2, "data with a channel axis", x)
        for index in indices:
            given = _at(inputs, index)
            _need(given is None or given == (x[1],), f"one number for each of {x[1]} channels", given)

    return check


def _layer_norm(attrs: Mapping[str, Any], inputs: Shapes, outputs: Shapes, data: Sequence[np.ndarray | None]) -> None:
    x = _at(inputs, 0)
    if x is None:
        return
    axis = attrs.get("axis", -1)
    _need(-len(x) <= axis < len(x), f"axis {axis} of the data", x)
    for index in (1, 2):
        given = _at(inputs, index)
        _need(given is None or _broadcast(given, x[axis:]), "a scale and a bias that fit the last axes", given, x)


def _prelu(attrs: Mapping[str, Any], inputs: Shapes, outputs: Shapes, data: Sequence[np.ndarray | None]) -> None:
    x, slope = _at(inputs, 0), _at(inputs, 1)
    _need(x is None or slope is None or _broadcast(slope, x), "a slope that broadcasts to the data", slope, x)


def _broadcast(shape: Shape, target: Shape) -> bool:
    """Whether a shape broadcasts to another without changing it."""
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def _gemm(attrs: Mapping[str, Any], inputs: Shapes, outputs: Shapes, data: Sequence[np.ndarray | None]) -> None:
    a, b, c = _at(inputs, 0), _at(inputs, 1), _at(inputs, 2)
    if a is None or b is None:
        return
    _need(len(a) == len(b) == 2, "matrices", a, b)
    k = a[0 if attrs.get("transA") else 1]
    _need(k == b[1 if attrs.get("transB") else 0], "matrices that fit each other", a, b)
    made = _at(outputs, 0)
    _need(c is None or made is None or _broadcast(c, made), "an addend that fits the product", c, made)


def _same_count(attrs: Mapping[str, Any], inputs: Shapes, outputs: Shapes, data: Sequence[np.ndarray | None]) -> None:
    x, made = _at(inputs, 0), _at(outputs, 0)
    if x is not None and made is not None:
        _need(prod(x) == prod(made), "as many numbers after as before", x, made)


def _quantised(attrs: Mapping[str, Any], inputs: Shapes, outputs: Shapes, data: Sequence[np.ndarray | None]) -> None:
    x, scale, zero = (_at(inputs, i) for i in range(3))
    if x is None or scale is None:
        return
    _need(zero is None or zero == scale, "a zero point for each scale", scale, zero)
    if attrs.get("block_size", 0) or prod(scale) == 1:
        return
    axis = attrs.get("axis", 1)
    _need(-len(x) <= axis < len(x) and scale == (x[axis],), f"scales for axis {axis}", x, scale)


def _top_k(attrs: Mapping[str, Any], inputs: Shapes, outputs: Shapes, data: Sequence[np.ndarray | None]) -> None:
    x, made, axis = _at(inputs, 0), _at(outputs, 0), attrs.get("axis", -1)
    if x is not None and made is not None:
        _need(made[axis] <= x[axis], f"no more than there is on axis {axis}", x, made)


def _einsum(attrs: Mapping[str, Any], inputs: Shapes, outputs: Shapes, data: Sequence[np.ndarray | None]) -> None:
    terms = attrs.get("equation", "").replace(" ", "").partition("->")[0].split(",")
    if any("." in term for term in terms):
        return
    sizes: dict[str, int] = {}
    _need(len(terms) == len(inputs), f"{len(terms)} operands")
    for term, shape in zip(terms, inputs, strict=True):
        _need(shape is None or len(term) == len(shape), f"a term `{term}` for each axis", shape)
        for letter, size in zip(term, shape or (), strict=False):
            _need(sizes.setdefault(letter, size) == size, f"one size of `{letter}`", shape)


def _cumsum(attrs: Mapping[str, Any], inputs: Shapes, outputs: Shapes, data: Sequence[np.ndarray | None]) -> None:
    x, axis = _at(inputs, 0), data[1] if len(data) > 1 else None
    if x is not None and axis is not None:
        _need(axis.size == 1 and -len(x) <= int(axis.reshape(-1)[0]) < len(x), f"axis {axis} of the data", x)


def _stft(attrs: Mapping[str, Any], inputs: Shapes, outputs: Shapes, data: Sequence[np.ndarray | None]) -> None:
    window, length = _at(inputs, 2), data[3] if len(data) > 3 else None
    if window is not None and length is not None:
        _need(window == (int(length.reshape(-1)[0]),), "a window as long as a frame", window)


_CHECKS: dict[str, Check] = {
    "Conv": _conv(1, 2),
    "ConvInteger": _conv(1, None),
    "QLinearConv": _conv(3, 8),
    "ConvTranspose": _conv(1, 2, transposed=True),
    **{op: _recurrent(op) for op in GATES},
    "BatchNormalization": _per_channel(1, 2, 3, 4),
    "InstanceNormalization": _per_channel(1, 2),
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _layer_norm,
    "PRelu": _prelu,
    "Gemm": _gemm,
    "Reshape": _same_count,
    "Flatten": _same_count,
    "DepthToSpace": _same_count,
    "SpaceToDepth": _same_count,
    "QuantizeLinear": _quantised,
    "DequantizeLinear": _quantised,
    "TopK": _top_k,
    "CumSum": _cumsum,
    "Einsum": _einsum,
    "STFT": _stft,
}
