"""Whether a pulsed file is whole: a valid ONNX model whose inputs and outputs are those its manifest speaks of."""

from __future__ import annotations

import onnx
from onnx import checker

from pulse.engine.native.net import build
from pulse.errors import PulseError
from pulse.graph.holes import refuse_holes
from pulse.graph.load import check_opset, guard
from pulse.graph.sizes import GATES
from pulse.manifest import Manifest, Port

Wire = tuple[str, int, tuple[int | str, ...]]


def check_artefact(proto: onnx.ModelProto, info: Manifest, label: str) -> None:
    """Raises PulseError `manifest-invalid` where the two differ, `invalid-model` where ONNX refuses the graph."""
    opset = check_opset(proto, label)
    # Without shape inference: on sizes below 0, which come of a Pad, onnx 1.23 aborts the process in that of Slice.
    guard(lambda: checker.check_model(proto), label)
    refuse_holes(proto, opset)
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
    _check_recurrences(proto, info)


def _check_recurrences(proto: onnx.ModelProto, info: Manifest) -> None:
    """ONNX Runtime aborts the process in a recurrence over no frames, or of no batch: shapes are tried at the
    narrowest pulse. What depends on data is taken as it is."""
    recurrent = {o for n in proto.graph.node if n.op_type in GATES for o in n.output}
    if not recurrent:
        return
    try:
        build(proto, info, info.granularity if info.pulse == "dynamic" else int(info.pulse))
    except PulseError as error:
        if error.code == "manifest-invalid" or any(error.node.endswith(f"({op})") for op in GATES):
            raise
    except (LookupError, TypeError, ValueError) as error:
        raise _misfit(proto.graph.name, str(error), "shapes that fit each other") from None


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
