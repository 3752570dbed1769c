"""Odd values: attributes, shapes, types, tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, defs, helper, numpy_helper

from mutants.draw import Rng, drop_one, pick, some_graph, some_node

INTS = (0, 1, -1, 2, 3, 7, -2, 64, 4096, 100_000, 2**31 - 1, 2**31, -(2**31), 10**9, 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-40, 1e38, 1e300, float("inf"), float("-inf"), float("nan"))
STRINGS = (b"", b"S", b"SAME_UPPER", b"SAME_LOWER", b"VALID", b"reflect", b"edge", b"wrap", b"reverse", b"linear",
           b"cubic", b"ceil", b"align_corners", b"half_pixel", b"ij,jk->ik", b"...i->...", b"->", b"Relu", b"Affine",
           b"bidirectional", b"\xff\xfe", b"x" * 5000, "é→".encode())  # fmt: skip
DTYPES = (0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 22, 23, 26, 99, 2**31 - 1, -1)


def _odd_value(attribute: AttributeProto, rng: Rng) -> None:
    kind = attribute.type
    if kind == AttributeProto.INT:
        attribute.i = pick(rng, INTS)
    elif kind == AttributeProto.FLOAT:
        attribute.f = pick(rng, FLOATS[:7] + FLOATS[8:])
    elif kind == AttributeProto.STRING:
        attribute.s = pick(rng, STRINGS)
    elif kind == AttributeProto.INTS:
        _odd_list(attribute.ints, INTS, rng)
    elif kind == AttributeProto.FLOATS:
        _odd_list(attribute.floats, FLOATS[:7], rng)
    elif kind == AttributeProto.STRINGS:
        _odd_list(attribute.strings, STRINGS, rng)
    elif kind == AttributeProto.TENSOR:
        _odd_tensor(attribute.t, rng)


def _odd_list(values: Any, odd: Any, rng: Rng) -> None:
    how = int(rng.integers(5))
    if how == 0 and len(values):
        values[int(rng.integers(len(values)))] = pick(rng, odd)
    elif how == 1:
        del values[:]
    elif how == 2:
        values.append(pick(rng, odd))
    elif how == 3 and len(values):
        drop_one(values, rng)
    else:
        values[:] = [pick(rng, odd)] * int(rng.choice([1, 2, 3, 4, 6, 200]))


def odd_attribute(model: onnx.ModelProto, rng: Rng) -> None:
    holders = [n for n in (some_node(model, rng) for _ in range(6)) if n.attribute]
    _odd_value(pick(rng, pick(rng, holders).attribute), rng)


def wrong_type(model: onnx.ModelProto, rng: Rng) -> None:
    holders = [n for n in (some_node(model, rng) for _ in range(6)) if n.attribute]
    attribute = pick(rng, pick(rng, holders).attribute)
    if rng.random() < 0.3:
        attribute.type = int(rng.integers(0, 15))
        return
    value = pick(rng, (1, 2.5, "text", [1, 2], [0.5], ["a"], np.ones(3, np.float32)))
    value = numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
    attribute.CopyFrom(helper.make_attribute(attribute.name or "axis", value))


def new_attribute(model: onnx.ModelProto, rng: Rng) -> None:
    """One that the operator has, with an odd value."""
    node = some_node(model, rng)
    known = defs.get_schema(node.op_type).attributes if defs.has(node.op_type) else {}
    free = [a for n, a in known.items() if n not in {b.name for b in node.attribute}]
    chosen = pick(rng, free)
    attribute = node.attribute.add(name=chosen.name, type=int(chosen.type))
    _odd_value(attribute, rng)


def odd_shape(model: onnx.ModelProto, rng: Rng) -> None:
    graph = some_graph(model, rng)
    dims = pick(rng, [*graph.input, *graph.output]).type.tensor_type.shape.dim
    how = int(rng.integers(5))
    if how == 0:
        pick(rng, dims).dim_value = pick(rng, INTS)
    elif how == 1:
        pick(rng, dims).dim_param = pick(rng, ("S", "T", "batch", "2*S", "S//2", "", "0", "unk__1", "-1"))
    elif how == 2:
        drop_one(dims, rng)
    elif how == 3:
        dims.add(dim_value=pick(rng, (1, 2, 3)))
    else:
        pick(rng, dims).Clear()


def odd_type(model: onnx.ModelProto, rng: Rng) -> None:
    graph = some_graph(model, rng)
    value = pick(rng, [*graph.input, *graph.output])
    if rng.random() < 0.2:
        value.type.CopyFrom(helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [1])))
    else:
        value.type.tensor_type.elem_type = pick(rng, DTYPES)


def _tensor(model: onnx.ModelProto, rng: Rng) -> TensorProto:
    constants = [a.t for n in model.graph.node for a in n.attribute if a.HasField("t")]
    return pick(rng, [*some_graph(model, rng).initializer, *constants])


def _odd_tensor(tensor: TensorProto, rng: Rng) -> None:
    how = int(rng.integers(7))
    if how == 0:
        tensor.data_type = pick(rng, DTYPES)
    elif how == 1 and tensor.dims:
        tensor.dims[int(rng.integers(len(tensor.dims)))] = pick(rng, INTS)
    elif how == 2:
        tensor.raw_data = tensor.raw_data[: int(rng.integers(len(tensor.raw_data) + 1))]
    elif how == 3:
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=pick(rng, ("weights.bin", "../../etc/hostname", "/", "")))
    else:
        _odd_array(tensor, rng)


def _odd_array(tensor: TensorProto, rng: Rng) -> None:
    """Another array, whole in itself."""
    array = numpy_helper.to_array(tensor).copy()
    how = int(rng.integers(4))
    if how == 0 and array.size:
        odd = INTS if array.dtype.kind in "iub" else FLOATS
        with np.errstate(all="ignore"):
            array.reshape(-1)[int(rng.integers(array.size))] = np.array(pick(rng, odd)).astype(array.dtype)
    elif how == 1 and array.ndim:
        array = np.take(array, range(int(rng.integers(array.shape[0] + 1))), axis=0)
    elif how == 2:
        array = array.reshape(pick(rng, ((-1,), (1, *array.shape), (*array.shape, 1), (*array.shape[::-1],))))
    else:
        array = array.astype(pick(rng, (np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.bool_)))
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def odd_initializer(model: onnx.ModelProto, rng: Rng) -> None:
    _odd_tensor(_tensor(model, rng), rng)


def odd_integers(model: onnx.ModelProto, rng: Rng) -> None:
    """Axes, pads, bounds, shapes: integers are what rules compute with."""
    integers = [t for t in model.graph.initializer if t.data_type == TensorProto.INT64]
    tensor = pick(rng, integers)
    array = numpy_helper.to_array(tensor).copy()
    array.reshape(-1)[int(rng.integers(array.size))] = pick(rng, INTS)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
