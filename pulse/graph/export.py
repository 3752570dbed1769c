"""From a graph back to an ordinary ONNX model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from onnx import helper, numpy_helper, shape_inference

from pulse.graph.ir import UNKNOWN, Graph


def to_model(
    graph: Graph, functions: Sequence[onnx.FunctionProto] = (), properties: Mapping[str, str] | None = None
) -> onnx.ModelProto:
    """The model of a graph, with the local functions that its nodes call, one domain each version 1, and metadata.

    Outputs of unknown rank get the shapes that ONNX infers. The IR version is 8 up to opset 18, 10 above: what every
    runtime of such an opset reads.
    """
    seen: set[str] = set()
    nodes = []
    for node in graph.nodes:
        while node.name and node.name in seen:
            node.name += "_"
        seen.add(node.name)
        nodes.append(node.to_proto())
    proto = helper.make_graph(
        nodes,
        graph.name,
        [p.to_proto() for p in graph.inputs],
        [p.to_proto() for p in graph.outputs],
        [numpy_helper.from_array(a, n) for n, a in graph.constants.items()],
    )
    imports = [helper.make_opsetid("", graph.opset)]
    imports += [helper.make_opsetid(d, 1) for d in sorted({f.domain for f in functions})]
    model = helper.make_model(proto, opset_imports=imports, functions=list(functions), producer_name="pulse")
    model.ir_version = 8 if graph.opset <= 18 else 10
    if any(p.dims == UNKNOWN for p in graph.outputs):
        for output, known in zip(model.graph.output, shape_inference.infer_shapes(model).graph.output, strict=True):
            output.type.CopyFrom(known.type)
    if properties:
        helper.set_model_props(model, dict(properties))
    return model
