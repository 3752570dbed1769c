"""Empty names among the inputs of a list (those of Max, Concat, Sum …): onnx's checker takes them for left out, as
optional inputs may be; ONNX Runtime reads them all, and crashes."""

from __future__ import annotations

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
        formal = defs.get_schema(node.op_type, opset, "").inputs
        if formal and formal[-1].option == defs.OpSchema.FormalParameterOption.Variadic:
            listed = list(node.input)[len(formal) - 1 :]
            if "" in listed:
                raise PulseError(
                    "invalid-model",
                    node=f"{node.name or (node.output[0] if node.output else '?')} ({node.op_type})",
                    required="a name for every input",
                    found=f"none for input {len(formal) + listed.index('')}",
                    remedy="leave the input out, or name the value that is meant",
                )
