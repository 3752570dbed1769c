"""One node at a time: output shapes by ONNX's own inference, output values by onnx.reference."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from onnx import TensorProto, defs, helper, numpy_helper, shape_inference

from pulse.graph.ir import Node
from pulse.graph.limits import numbers
from pulse.graph.sizes import check_sizes

Type = tuple[int, tuple[int, ...]]  # ONNX element type and shape


class NegativeSize(ValueError):
    """An output would have fewer than no elements."""


def infer(node: Node, inputs: Sequence[Type | None], data: Sequence[np.ndarray | None], opset: int) -> list[Type]:
    """(type, shape) of each output, given those of the inputs and the values of the small constant ones.

    Raises ValueError with ONNX's own message if the shapes do not fit the op or cannot be told from what is given.
    """
    _check_channels(node, inputs)
    names = [f"i{k}" if t is not None else "" for k, t in enumerate(inputs)]
    outputs = [f"o{k}" if o else "" for k, o in enumerate(node.outputs)]
    attrs = {"onesided": 1, **node.attrs} if node.op == "STFT" else node.attrs  # ONNX infers another default
    proto = Node(node.op, names, outputs, attrs).to_proto()
    types = {n: helper.make_tensor_type_proto(*t) for n, t in zip(names, inputs, strict=True) if t is not None}
    known = {
        n: numpy_helper.from_array(d, n)
        for n, d in zip(names, data, strict=True)
        if n and d is not None and d.dtype != object and d.size <= 4096
    }
    try:
        schema = defs.get_schema(node.op, opset, "")
        _check_types(schema, [None if t is None else t[0] for t in inputs])
        result = shape_inference.infer_node_outputs(
            schema, proto, types, known, opset_imports=[helper.make_opsetid("", opset)], ir_version=10
        )
    except Exception as error:  # SchemaError, InferenceError and RuntimeError of the C++ side
        raise ValueError(str(error).strip().splitlines()[0]) from None
    found: list[Type] = []
    for name in outputs:
        if not name:
            found.append((0, ()))
            continue
        tensor = result[name].tensor_type if name in result else None
        if tensor is None or not tensor.HasField("shape") or any(not d.HasField("dim_value") for d in tensor.shape.dim):
            raise ValueError("the output shape depends on the data")
        shape = tuple(d.dim_value for d in tensor.shape.dim)
        if min(shape, default=0) < 0:
            raise NegativeSize(f"the output would have shape {list(shape)}")
        found.append((tensor.elem_type, shape))
    shapes = [None if t is None else t[1] for t in inputs]
    check_sizes(node.op, node.attrs, shapes, [s for _, s in found], data)
    return found


def _check_types(schema: Any, dtypes: Sequence[int | None]) -> None:
    """Inputs of a type that the operator takes, and of one where it asks for one. Raises ValueError."""
    allowed = _type_parameters(schema.name, schema.since_version)
    bound: dict[str, str] = {}
    formals = schema.inputs
    for i, dtype in enumerate(dtypes):
        if dtype is None or not formals:
            continue
        formal = formals[min(i, len(formals) - 1)]
        name = f"tensor({TensorProto.DataType.Name(dtype).lower()})"
        if name not in allowed.get(formal.type_str, {formal.type_str}):
            raise ValueError(f"input {i} ({formal.name}) of {name}")
        if formal.is_homogeneous and bound.setdefault(formal.type_str, name) != name:
            raise ValueError(f"input {i} ({formal.name}) of {name} beside {bound[formal.type_str]}")


@lru_cache(maxsize=512)
def _type_parameters(op: str, version: int) -> dict[str, set[str]]:
    schema: Any = defs.get_schema(op, version, "")
    return {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}


# What these make may be far larger than what they are given.
_GROWING = {"ConstantOfShape", "Expand", "EyeLike", "HammingWindow", "HannWindow", "BlackmanWindow", "MelWeightMatrix",
            "OneHot", "Pad", "Range", "Resize", "Tile"}  # fmt: skip


def _check_size(node: Node, inputs: Sequence[np.ndarray | None], opset: int) -> None:
    types = [None if a is None else (helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for a in inputs]
    try:
        shapes = infer(node, types, inputs, opset)
    except ValueError:
        return  # the evaluation will say what is wrong
    for _, shape in shapes:
        numbers(shape, "a constant")


# Per op whose features ONNX's inference does not hold against its weights: the axis of the features, the input which
# holds the weights, and their axis that must fit. In a convolution it is one of `group` parts.
_CHANNELS = {
    "Conv": (1, 1, 1),
    "ConvInteger": (1, 1, 1),
    "QLinearConv": (1, 3, 1),
    "ConvTranspose": (1, 1, 0),
    "BatchNormalization": (1, 1, 0),
    "GRU": (2, 1, 2),
    "LSTM": (2, 1, 2),
    "RNN": (2, 1, 2),
}


def _check_channels(node: Node, inputs: Sequence[tuple[int, tuple[int, ...]] | None]) -> None:
    axis, weights, fit = _CHANNELS.get(node.op, (0, 0, 0))
    data, kernel = inputs[0] if inputs else None, inputs[weights] if len(inputs) > weights else None
    if not weights or data is None or kernel is None or len(data[1]) <= axis or len(kernel[1]) <= fit:
        return
    groups = node.attrs.get("group", 1) if fit == 1 else 1
    if data[1][axis] != kernel[1][fit] * groups:
        raise ValueError(
            f"{data[1][axis]} channels for weights of shape {list(kernel[1])}, which take {kernel[1][fit] * groups}"
        )


def evaluate(node: Node, inputs: Sequence[np.ndarray | None], opset: int) -> list[np.ndarray]:
    """Output arrays of one node by onnx.reference. Raises ValueError where that fails, TooLarge before it grows."""
    if node.op in _GROWING:
        _check_size(node, inputs, opset)
    from onnx.reference import ReferenceEvaluator

    from pulse.engine.reference_ops import repaired

    given = {f"i{k}": a for k, a in enumerate(inputs) if a is not None}
    names = [f"i{k}" if a is not None else "" for k, a in enumerate(inputs)]
    outputs = [f"o{k}" if o else "" for k, o in enumerate(node.outputs)]
    proto = Node(node.op, names, outputs, node.attrs).to_proto()
    ports = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()
    ]
    wanted = [helper.make_tensor_value_info(o, 0, None) for o in outputs if o]
    model = helper.make_model(
        helper.make_graph([proto], "one", ports, wanted), opset_imports=[helper.make_opsetid("", opset)]
    )
    try:
        found = ReferenceEvaluator(model, new_ops=repaired(opset)).run(None, given)
    except Exception as error:  # the reference ops raise whatever numpy raises
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if any(r is None or isinstance(r, list) for r in found):
        raise ValueError(f"{node.op} gives a sequence or nothing, not a tensor")
    results = iter(found)
    return [np.asarray(next(results)) if o else np.zeros(0) for o in outputs]
