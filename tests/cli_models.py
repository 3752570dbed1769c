"""What tests of the commands share: calling them, and small models to call them on."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
from click.testing import CliRunner, Result
from onnx import TensorProto, helper

from pulse.cli import main

ENC = Path(__file__).resolve().parent.parent / "models" / "enc.onnx"
OUTPUTS = ["e0", "e1", "emb", "c0", "lsnr"]
FRAMES = 37


def pulse(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def error_of(result: Result) -> dict[str, str]:
    error = json.loads(result.stdout)["error"]
    assert isinstance(error, dict)
    return error


def save(path: Path, nodes: list[onnx.NodeProto], output_shape: list[object]) -> Path:
    """A model `x [1,S,8] -> y` of a few nodes."""
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "S", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, output_shape)],
        [helper.make_tensor("axes", TensorProto.INT64, [1], [1])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return path
