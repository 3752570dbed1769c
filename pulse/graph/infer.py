"""One node at a time: output shapes by ONNX's own inference, output values by onnx.reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import defs, helper, numpy_helper, shape_inference

from pulse.graph.ir import Node


def infer(
    node: Node, inputs: Sequence[tuple[int, tuple[int, ...]] | None], data: Sequence[np.ndarray | None], opset: int
) -> list[tuple[int, tuple[int, ...]]]:
    """(type, shape) of each output, given those of the inputs and the values of the small constant ones.

    Raises ValueError with ONNX's own message if the shapes do not fit the op or cannot be told from what is given.
    """
    names = [f"i{k}" if t is not None else "" for k, t in enumerate(inputs)]
    outputs = [f"o{k}" if o else "" for k, o in enumerate(node.outputs)]
    proto = Node(node.op, names, outputs, node.attrs).to_proto()
    types = {n: helper.make_tensor_type_proto(*t) for n, t in zip(names, inputs, strict=True) if t is not None}
    known = {
        n: numpy_helper.from_array(d, n)
        for n, d in zip(names, data, strict=True)
        if n and d is not None and d.dtype != object and d.size <= 4096
    }
    schema = defs.get_schema(node.op, opset, "")
    try:
        result = shape_inference.infer_node_outputs(
            schema, proto, types, known, opset_imports=[helper.make_opsetid("", opset)], ir_version=10
        )
    except Exception as error:  # InferenceError and RuntimeError of the C++ side
        raise ValueError(str(error).strip().splitlines()[0]) from None
    found: list[tuple[int, tuple[int, ...]]] = []
    for name in outputs:
        if not name:
            found.append((0, ()))
            continue
        tensor = result[name].tensor_type if name in result else None
        if tensor is None or not tensor.HasField("shape") or any(not d.HasField("dim_value") for d in tensor.shape.dim):
            raise ValueError("the output shape depends on the data")
        found.append((tensor.elem_type, tuple(d.dim_value for d in tensor.shape.dim)))
    return found


def evaluate(node: Node, inputs: Sequence[np.ndarray | None], opset: int) -> list[np.ndarray]:
    """Output arrays of one node by onnx.reference. Raises ValueError where that fails."""
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
