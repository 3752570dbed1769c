"""The smallest model, for tests of its input alone."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper


def plain(dims: list[int | str | None], opset: int = 17) -> onnx.ModelProto:
    """`y = relu(x)` for an `x` of these dims."""
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"], name="relu")],
        "plain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(dims))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
