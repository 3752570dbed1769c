"""Folding: nodes whose inputs are all known are computed, also where they hold lengths as expressions.

What exporters emit around shapes (Shape, Gather, Slice, Concat, Cast, ...) runs on numpy arrays, with `Expr` objects as
elements where a number depends on the signal. Everything else numeric is left to onnx.reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from pulse.graph.expr import Expr, NotAffine
from pulse.graph.infer import evaluate
from pulse.graph.ir import Node

Array = np.ndarray
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def fold(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int], opset: int) -> list[tuple[Array, int]]:
    """Outputs of a node with known inputs, as (array, ONNX type).

    Raises NotAffine where the result is no expression in the length, and LookupError where no symbolic form is known.
    """
    symbolic = any(a is not None and a.dtype == object for a in inputs)
    if node.op == "Constant":
        return [_constant(node)]
    if node.op == "Cast" and symbolic:
        return [(_cast(inputs, dtypes[0], node.attrs["to"]), node.attrs["to"])]
    if symbolic:
        if node.op not in _SYMBOLIC:
            raise LookupError(node.op)
        result = np.asarray(_SYMBOLIC[node.op](node, inputs, dtypes))
        return [(result, TensorProto.BOOL if result.dtype == bool else _type_of(node, dtypes))]
    if node.op in _PLAIN:
        result = np.asarray(_PLAIN[node.op](node, inputs, dtypes))
        return [(result, helper.np_dtype_to_tensor_dtype(result.dtype))]
    arrays = evaluate(node, inputs, opset)
    return [(a, helper.np_dtype_to_tensor_dtype(a.dtype)) for a in arrays]


def _type_of(node: Node, dtypes: Sequence[int]) -> int:
    return dtypes[1] if node.op == "Where" else dtypes[0]


def _constant(node: Node) -> tuple[Array, int]:
    for key, value in node.attrs.items():
        if key == "value":
            return value, helper.np_dtype_to_tensor_dtype(value.dtype)
        if key in ("value_int", "value_ints"):
            return np.array(value, dtype=np.int64), TensorProto.INT64
        if key in ("value_float", "value_floats"):
            return np.array(value, dtype=np.float32), TensorProto.FLOAT
    raise ValueError("a Constant without a value, or with one of a kind that is not numbers")


def _cast(inputs: Sequence[Array | None], source: int, to: int) -> Array:
    value = _given(inputs, 0)
    if to == TensorProto.BOOL:
        return _each(lambda e: Expr.of(e).holds(lambda v: v != 0), value).astype(bool)
    if to not in (*_FLOATS, TensorProto.INT32, TensorProto.INT64):
        raise LookupError("Cast to a narrow type")
    if source in _FLOATS and to not in _FLOATS:
        return _each(lambda e: _truncated(Expr.of(e)), value)
    return value


def _each(function: Callable[..., Any], *arrays: Array) -> Array:
    return np.asarray(np.frompyfunc(function, len(arrays), 1)(*arrays))


def _given(inputs: Sequence[Array | None], index: int) -> Array:
    value = inputs[index] if index < len(inputs) else None
    if value is None:
        raise LookupError(f"input {index}")
    return value


def _exact(array: Array) -> Array:
    """Numbers of an array as something that mixes with expressions exactly."""
    if array.dtype == object:
        return array
    if np.issubdtype(array.dtype, np.floating):
        # 1e-5 as a scale means the decimal 0.00001: the nearest short fraction, not the float's binary digits
        return _each(lambda v: Fraction(float(v)).limit_denominator(1 << 16), array)
    return array.astype(object)


def _binary(function: Callable[[Any, Any], Any]) -> Callable[[Node, Sequence[Array | None], Sequence[int]], Array]:
    def run(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int]) -> Array:
        return _each(function, _exact(_given(inputs, 0)), _exact(_given(inputs, 1)))

    return run


def _divide(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int]) -> Array:
    a, b = _exact(_given(inputs, 0)), _exact(_given(inputs, 1))
    if dtypes[0] in _FLOATS:
        return _each(lambda x, y: Expr.of(x) / y, a, b)
    return _each(lambda x, y: _truncated(Expr.of(x) / y), a, b)


def _truncated(e: Expr) -> Expr:
    """Towards zero, as integers are divided and cast. What depends on the length is a length: not negative."""
    return e.ceil() if e.constant and e.const < 0 else e.floor()


def _mod(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int]) -> Array:
    if node.attrs.get("fmod"):
        raise LookupError("Mod with fmod")
    return _each(lambda a, b: Expr.of(a) % b, _exact(_given(inputs, 0)), _exact(_given(inputs, 1)))


def _compare(
    test: Callable[[np.ndarray], np.ndarray],
) -> Callable[[Node, Sequence[Array | None], Sequence[int]], Array]:
    def run(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int]) -> Array:
        a, b = _exact(_given(inputs, 0)), _exact(_given(inputs, 1))
        return _each(lambda x, y: (Expr.of(x) - y).holds(test), a, b).astype(bool)

    return run


def _extreme(sign: int) -> Callable[[Node, Sequence[Array | None], Sequence[int]], Array]:
    def pick(a: Any, b: Any) -> Any:
        difference = (Expr.of(a) - b) * sign
        try:
            return a if difference.holds(lambda v: v >= 0) else b
        except NotAffine:
            return Expr.of(b) + difference.clamp() * sign

    def run(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int]) -> Array:
        return reduce(lambda a, b: _each(pick, a, b), [_exact(_given(inputs, i)) for i in range(len(inputs))])

    return run


def _gather(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int]) -> Array:
    return np.take(_given(inputs, 0), _given(inputs, 1).astype(np.int64), axis=node.attrs.get("axis", 0))


def _slice(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int]) -> Array:
    data, starts, ends = (_given(inputs, i) for i in range(3))
    axes = inputs[3] if len(inputs) > 3 and inputs[3] is not None else np.arange(len(starts))
    steps = inputs[4] if len(inputs) > 4 and inputs[4] is not None else np.ones(len(starts), np.int64)
    index = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), axes.tolist(), steps.tolist(), strict=True):
        index[axis] = slice(*_bounds(int(start), int(end), int(step), data.shape[axis]))
    return data[tuple(index)]


def _bounds(start: int, end: int, step: int, size: int) -> tuple[int, int | None, int]:
    """ONNX slice bounds as Python's: an end before the first element of a reversed slice is None."""
    if step > 0:
        return start, end, step
    start = min(start + size if start < 0 else start, size - 1)
    end = max(end + size if end < 0 else end, -1)
    return start, (None if end < 0 else end), step


def _concat(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int]) -> Array:
    return np.concatenate([_given(inputs, i) for i in range(len(inputs))], axis=node.attrs["axis"])


def _axes(node: Node, inputs: Sequence[Array | None]) -> list[int] | None:
    if len(inputs) > 1 and inputs[1] is not None:
        return [int(a) for a in inputs[1].reshape(-1)]
    axes = node.attrs.get("axes")
    return None if axes is None else list(axes)


def _unsqueeze(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int]) -> Array:
    return np.expand_dims(_given(inputs, 0), tuple(_axes(node, inputs) or ()))


def _squeeze(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int]) -> Array:
    axes = _axes(node, inputs)
    return np.squeeze(_given(inputs, 0), None if axes is None else tuple(axes))


def _reshape(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int]) -> Array:
    data, target = _given(inputs, 0), [int(d) for d in _given(inputs, 1).reshape(-1)]
    if not node.attrs.get("allowzero"):
        target = [data.shape[i] if d == 0 else d for i, d in enumerate(target)]
    return data.reshape(target)


def _reduce(function: Callable[[Any, Any], Any]) -> Callable[[Node, Sequence[Array | None], Sequence[int]], Array]:
    def run(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int]) -> Array:
        data = _exact(_given(inputs, 0)).reshape(-1)
        if _given(inputs, 0).ndim > 1:
            raise LookupError(node.op)
        out = np.empty((1,) if node.attrs.get("keepdims", 1) else (), dtype=object)
        out[...] = reduce(function, data.tolist())
        return out

    return run


def _where(node: Node, inputs: Sequence[Array | None], dtypes: Sequence[int]) -> Array:
    return np.where(_given(inputs, 0), _exact(_given(inputs, 1)), _exact(_given(inputs, 2)))


_PLAIN: dict[str, Callable[[Node, Sequence[Array | None], Sequence[int]], Any]] = {
    "Identity": lambda node, inputs, dtypes: _given(inputs, 0),
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Transpose": lambda node, inputs, dtypes: np.transpose(_given(inputs, 0), node.attrs.get("perm")),
}

_SYMBOLIC: dict[str, Callable[[Node, Sequence[Array | None], Sequence[int]], Any]] = {
    **_PLAIN,
    "Add": _binary(lambda a, b: a + b),
    "Sub": _binary(lambda a, b: a - b),
    "Mul": _binary(lambda a, b: a * b),
    "Mod": _mod,
    "Div": _divide,
    "Neg": lambda node, inputs, dtypes: _each(lambda e: -e, _given(inputs, 0)),
    "Floor": lambda node, inputs, dtypes: _each(lambda e: Expr.of(e).floor(), _given(inputs, 0)),
    "Ceil": lambda node, inputs, dtypes: _each(lambda e: Expr.of(e).ceil(), _given(inputs, 0)),
    "Max": _extreme(1),
    "Min": _extreme(-1),
    "Equal": _compare(lambda v: v == 0),
    "Less": _compare(lambda v: v < 0),
    "LessOrEqual": _compare(lambda v: v <= 0),
    "Greater": _compare(lambda v: v > 0),
    "GreaterOrEqual": _compare(lambda v: v >= 0),
    "Where": _where,
    "ReduceProd": _reduce(lambda a, b: a * b),
    "ReduceSum": _reduce(lambda a, b: a + b),
}
