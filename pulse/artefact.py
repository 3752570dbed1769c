"""Whether a pulsed file is whole: a valid ONNX model whose inputs and outputs are those its manifest speaks of."""

from __future__ import annotations

import onnx
from onnx import checker

from pulse.errors import PulseError
from pulse.graph.load import check_opset, guard
from pulse.manifest import Manifest, Port

Wire = tuple[str, int, tuple[int | str, ...]]


def check_artefact(proto: onnx.ModelProto, info: Manifest, label: str) -> None:
    """Raises PulseError `manifest-invalid` where the two differ, `invalid-model` where ONNX refuses the graph."""
    check_opset(proto, label)
    guard(lambda: checker.check_model(proto, full_check=True), label)
    length: list[Wire] = [(info.length, onnx.TensorProto.INT64, ())] if info.length else []
    inputs = [_wire(p) for p in info.inputs] + [(s.input, s.dtype, s.shape) for s in info.states] + length
    outputs = [_wire(p) for p in info.outputs] + [(s.output, s.dtype, s.shape) for s in info.states]
    for told, values in ((inputs, proto.graph.input), (outputs, proto.graph.output)):
        there = {v.name: v.type.tensor_type for v in values}
        if sorted(there) != sorted(name for name, _, _ in told):
            raise _misfit(label, f"values {', '.join(sorted(there))}", ", ".join(sorted(name for name, _, _ in told)))
        for name, dtype, shape in told:
            tensor = there[name]
            dims = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
            sizes = [d if isinstance(d, int) else None for d in shape]
            if tensor.elem_type != dtype or (tensor.HasField("shape") and dims != sizes):
                raise _misfit(name, f"type {tensor.elem_type}, shape {dims}", f"type {dtype}, shape {sizes}")


def _wire(port: Port) -> Wire:
    return port.name, port.dtype, port.shape


def _misfit(node: str, found: str, told: str) -> PulseError:
    return PulseError(
        "manifest-invalid",
        node=node,
        required=f"what the manifest says: {told}",
        found=f"{found} in the graph",
        remedy="convert the source model again",
    )
