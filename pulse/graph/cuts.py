"""Sizes below 0, which a Pad, a convolution or a pooling makes of too small data: onnx 1.23 aborts the process where
its shape inference meets them in a Slice, and its version converter runs that inference."""

from __future__ import annotations

import onnx
from onnx import numpy_helper

from pulse.errors import PulseError
from pulse.graph.infer import NegativeSize, Type, infer
from pulse.graph.ir import Node

_FRAMES = 7919  # stands for every size that is not known


def refuse_negative_sizes(model: onnx.ModelProto, opset: int) -> None:
    """Walks the graph node by node, as far as shapes are known. Raises PulseError `contradicting-shape`."""
    graph = model.graph
    data = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    types: dict[str, Type] = {t.name: (t.data_type, tuple(t.dims)) for t in graph.initializer}
    for value in graph.input:
        tensor = value.type.tensor_type
        if tensor.HasField("shape") and value.name not in types:
            sizes = [d.dim_value if d.HasField("dim_value") else _FRAMES for d in tensor.shape.dim]
            types[value.name] = tensor.elem_type, tuple(sizes)
    for proto in graph.node:
        known = all(i in types for i in proto.input if i) and not any(a.HasField("g") for a in proto.attribute)
        if not known:
            continue
        node = Node.from_proto(proto)
        if node.op == "Constant" and "value" in node.attrs:
            data[node.outputs[0]] = node.attrs["value"]
        try:
            found = infer(node, [types.get(i) for i in node.inputs], [data.get(i) for i in node.inputs], opset)
        except NegativeSize as error:
            raise PulseError(
                "contradicting-shape",
                node=node.label,
                required="data that is large enough",
                found=str(error),
                remedy="check the sizes in the model: kernels, strides, pads",
            ) from None
        except ValueError:
            continue  # depends on data, or is refused later
        types |= {name: kind for name, kind in zip(node.outputs, found, strict=False) if name}
