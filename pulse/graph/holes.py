"""Empty names in a list of inputs (of Max, Concat, Sum …) or of outputs (of Split): onnx's checker takes them for left
out, as optional ones may be; ONNX Runtime reads or writes them all, and crashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import defs

from pulse.errors import PulseError
from pulse.graph.mend import graphs_of


def refuse_holes(model: onnx.ModelProto, opset: int) -> None:
    """Looks at every node, in subgraphs and functions too. Raises PulseError `invalid-model`."""
    nodes = [n for graph in graphs_of(model.graph) for n in graph.node] + [n for f in model.functions for n in f.node]
    for node in nodes:
        if node.domain or not defs.has(node.op_type, opset, ""):
            continue
        schema = defs.get_schema(node.op_type, opset, "")
        _refuse(node, "input", schema.inputs, list(node.input))
        _refuse(node, "output", schema.outputs, list(node.output))


def _refuse(node: onnx.NodeProto, kind: str, formal: Sequence[Any], names: list[str]) -> None:
    """A list has values of one type: what If, Loop and Scan take and give may be left out."""
    if not formal or formal[-1].option != defs.OpSchema.FormalParameterOption.Variadic:
        return
    listed = names[len(formal) - 1 :]
    if "" in listed and (kind == "input" or formal[-1].is_homogeneous):
        raise PulseError(
            "invalid-model",
            node=f"{node.name or next(filter(None, node.output), '?')} ({node.op_type})",
            required=f"a name for every {kind}",
            found=f"none for {kind} {len(formal) - 1 + listed.index('')}",
            remedy="leave the input out, or name the value that is meant" if kind == "input" else "name it",
        )
