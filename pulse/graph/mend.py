"""Where the ONNX version converter leaves a node as it is although its operator has changed its meaning."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper

from pulse.errors import PulseError


def mend_source(model: onnx.ModelProto, opset: int) -> None:
    """Before conversion, in place: Hardmax, which worked on rows, and Scan, which had a batch axis."""
    for graph in graphs_of(model.graph):
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            if node.op_type == "Scan" and opset < 9:
                raise PulseError(
                    "opset-unsupported",
                    node=f"{node.name or node.output[0]} (Scan)",
                    required="a Scan of opset 9 or later: the one of opset 8 runs over batches",
                    found=f"opset {opset}",
                    remedy="export the model again at opset 17 or later",
                )
            nodes.extend(_hardmax_by_rows(node) if node.op_type == "Hardmax" and opset < 13 else [node])
        del graph.node[:]
        graph.node.extend(nodes)


def mend_converted(model: onnx.ModelProto, opset: int) -> None:
    """After conversion, in place: Resize of opset 10 and Upsample place samples at corners, not half-way between."""
    if opset > 10:
        return
    for graph in graphs_of(model.graph):
        known = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        known |= {
            n.output[0]: helper.get_attribute_value(a) for n in graph.node for a in n.attribute if a.name == "value"
        }
        for node in graph.node:
            if node.op_type == "Resize":
                scales = known.get(node.input[2])
                if isinstance(scales, onnx.TensorProto):
                    scales = numpy_helper.to_array(scales)
                rounding = "floor" if opset < 10 else _rounding(node, scales)
                node.attribute.append(helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
                node.attribute.append(helper.make_attribute("nearest_mode", rounding))


def _rounding(node: onnx.NodeProto, scales: np.ndarray | None) -> str:
    """Which neighbour is the nearest in opset 10: the one before when growing, the one after when shrinking."""
    if scales is not None and (scales >= 1).all():
        return "floor"
    if scales is not None and (scales <= 1).all():
        return "ceil"
    raise PulseError(
        "opset-unsupported",
        node=f"{node.name or node.output[0]} (Resize)",
        required="a Resize of opset 11 or later, or one with constant scales that grows or shrinks all axes",
        found="opset 10",
        remedy="export the model again at opset 17 or later",
    )


def _hardmax_by_rows(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """The axes from `axis` on were one row."""
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
    base, source, result = node.name or node.output[0], node.input[0], node.output[0]
    shape, flat, picked = (f"{result}/{part}" for part in ("shape", "rows", "picked"))
    return [
        helper.make_node("Shape", [source], [shape], f"{base}/shape"),
        helper.make_node("Flatten", [source], [flat], f"{base}/rows", axis=axis),
        helper.make_node("Hardmax", [flat], [picked], node.name, axis=1),
        helper.make_node("Reshape", [picked, shape], [result], f"{base}/back"),
    ]


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and its subgraphs."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs_of(attribute.g)
