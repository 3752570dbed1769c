"""From a file, bytes or a ModelProto to a checked model at one opset: inlined, converted, external data read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import checker, defs, external_data_helper, helper, inliner, version_converter

from pulse.errors import PulseError
from pulse.graph.cuts import refuse_negative_sizes
from pulse.graph.holes import refuse_holes
from pulse.graph.ir import UNKNOWN, Graph, Node, Port
from pulse.graph.mend import graphs_of, mend_converted, mend_source
from pulse.graph.text import undecodable

Source = str | os.PathLike | bytes | onnx.ModelProto

_NUMBERS = set(helper.get_all_tensor_dtypes()) - {onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING}
OLDEST_OPSET = 7
ONE_OPSET = 17


def read_model(source: Source) -> tuple[onnx.ModelProto, str]:
    """The model proto and a name for it. Raises PulseError for anything that is not a whole, valid ONNX model."""
    if isinstance(source, onnx.ModelProto):
        model = onnx.ModelProto()
        model.CopyFrom(source)
        return _whole(_with_text(model, "model")), model.graph.name or "model"
    if isinstance(source, bytes):
        return _whole(_decode(source, "model")), "model"
    path = Path(source)
    try:
        if stat.S_ISCHR(path.stat().st_mode):
            raise OSError(errno.EINVAL, "a device, which may never end")
        data = path.read_bytes()
    except FileNotFoundError:
        raise PulseError(
            "file-not-found", node=str(path), required="an ONNX file", found="no such file", remedy="check the path"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        raise PulseError(
            "file-unreadable",
            node=str(path),
            required="an ONNX file that can be read",
            found=getattr(error, "strerror", None) or str(error),
            remedy="check the path and its permissions",
        ) from None
    model = _decode(data, str(path))
    try:
        external_data_helper.load_external_data_for_model(model, str(path.parent))
    except Exception as error:  # onnx raises many kinds here, among them checker.ValidationError and OSError
        raise PulseError(
            "missing-external-data",
            node=str(path),
            required="the weight files that the model refers to, in its own folder",
            found=_first_line(error),
            remedy="copy the external data files next to the .onnx file, under the names it was exported with",
        ) from None
    return _whole(model), path.name


def _decode(data: bytes, label: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        model = onnx.ModelProto()
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise PulseError(
            "not-onnx",
            node=label,
            required="a serialized ONNX model",
            found=f"{len(data)} bytes that do not decode to one" if data else "an empty file",
            remedy="export the model again, or fetch the file again if it was cut short",
        )
    return _with_text(model, label)


def _whole(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, which must hold its weights itself: there is no folder to look for them in."""
    for tensor in _tensors(model):
        if external_data_helper.uses_external_data(tensor):
            raise PulseError(
                "missing-external-data",
                node=tensor.name,
                required="a model that holds its weights, or the path of one that does not",
                found="a reference to another file, and no folder to look for it in",
                remedy="give the path of the .onnx file, or read the weights first: onnx.load(path)",
            )
    return model


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every constant, wherever it is kept."""
    nodes = [n for function in model.functions for n in function.node]
    for graph in graphs_of(model.graph):
        yield from graph.initializer
        nodes.extend(graph.node)
    for node in nodes:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)


def _with_text(model: onnx.ModelProto, label: str) -> onnx.ModelProto:
    if place := undecodable(model):
        raise _invalid(label, f"{place} is not UTF-8")
    return model


def to_one_opset(model: onnx.ModelProto, label: str) -> onnx.ModelProto:
    """Inlines local functions and converts to opset max(17, own). Stale value infos and output shapes are dropped."""
    _name_domain(model)
    opset = check_opset(model, label)
    if model.functions:
        model = guard(lambda: inliner.inline_local_functions(model), label)
        del model.functions[:]
    _check_ops(model.graph, opset, label)
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value < 1:
                dim.ClearField("dim_value")  # how some exporters say "unknown"; onnx 1.23 aborts on some below 0
    for output in model.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.shape.SetInParent()  # runtimes do without, the checker does not
    guard(lambda: checker.check_model(model), label)
    refuse_holes(model, opset)
    del model.graph.value_info[:]
    for output in model.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    if opset < ONE_OPSET:
        mend_source(model, opset)
        guard(lambda: refuse_negative_sizes(model, opset), label)
        try:
            model = version_converter.convert_version(model, ONE_OPSET)
        except Exception as error:  # the converter raises RuntimeError and its own ConvertError
            raise PulseError(
                "opset-unsupported",
                node=label,
                required=f"a model that converts from opset {opset} to opset {ONE_OPSET}",
                found=_first_line(error),
                remedy="export the model again at opset 17 or later",
            ) from None
        mend_converted(model, opset)
        del model.graph.value_info[:]
    return model


def to_graph(model: onnx.ModelProto, label: str) -> Graph:
    """The IR of a model that `to_one_opset` returned."""
    proto = model.graph
    graph = Graph(proto.name or "model", _opset(model) or ONE_OPSET)
    try:
        for tensor in proto.initializer:
            graph.constants[tensor.name] = onnx.numpy_helper.to_array(tensor)
        for sparse in proto.sparse_initializer:
            raise ValueError(f"sparse initializer {sparse.values.name}: store it dense")
        graph.nodes = [Node.from_proto(n) for n in proto.node]
    except Exception as error:  # malformed tensors: wrong size of raw_data, unknown types
        raise _invalid(label, error) from None
    for value in proto.input:
        if value.name not in graph.constants:
            graph.inputs.append(_port(value, label))
    if not proto.output:
        raise _invalid(label, "a graph without outputs")
    graph.outputs = [Port(o.name, o.type.tensor_type.elem_type, UNKNOWN) for o in proto.output]
    return graph


def _name_domain(model: onnx.ModelProto) -> None:
    """ONNX's own operators may be of domain "ai.onnx" or "": runtimes take both names, onnx.checker the latter."""
    if any(o.domain == "ai.onnx" for o in model.opset_import):
        imports = {o.domain if o.domain != "ai.onnx" else "": o.version for o in model.opset_import}
        del model.opset_import[:]
        model.opset_import.extend(onnx.helper.make_opsetid(d, v) for d, v in imports.items())
    todo = list(model.graph.node)
    while todo:
        node = todo.pop()
        node.domain = "" if node.domain == "ai.onnx" else node.domain
        todo.extend(inner for attribute in node.attribute for inner in attribute.g.node)


def _port(value: onnx.ValueInfoProto, label: str) -> Port:
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or tensor.elem_type not in _NUMBERS:
        raise _invalid(label, f"input `{value.name}` is not a tensor of numbers")
    dims: list[int | str] = []
    for d in tensor.shape.dim:
        dims.append(d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else (d.dim_param or "?"))
    return Port(value.name, tensor.elem_type, tuple(dims) if tensor.HasField("shape") else UNKNOWN)


def check_opset(model: onnx.ModelProto, label: str) -> int:
    """The opset of ONNX's own operators. Raises PulseError `opset-unsupported`."""
    opset, newest = _opset(model), defs.onnx_opset_version()
    if opset is None or not OLDEST_OPSET <= opset <= newest:
        raise PulseError(
            "opset-unsupported",
            node=label,
            required=f"an ONNX opset from {OLDEST_OPSET} to {newest}",
            found="no opset import" if opset is None else f"opset {opset}",
            remedy="export the model again at opset 17 or later",
        )
    return opset


def _opset(model: onnx.ModelProto) -> int | None:
    return next((o.version for o in model.opset_import if not o.domain), None)


def _check_ops(graph: onnx.GraphProto, opset: int, label: str) -> None:
    for node in graph.node:
        if node.domain or not defs.has(node.op_type, opset, ""):
            raise PulseError(
                "unknown-op",
                node=f"{node.name or (node.output[0] if node.output else '?')} ({node.op_type})",
                required=f"operators of ONNX opset {opset}",
                found=f"`{node.op_type}` of domain `{node.domain or 'ai.onnx'}`",
                remedy="export with standard operators, or give the model a local function for this one",
            )
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _check_ops(attribute.g, opset, label)


T = TypeVar("T")


def guard(call: Callable[[], T], label: str) -> T:
    """Runs an onnx call; any of its many exceptions means an invalid model."""
    try:
        return call()
    except PulseError:
        raise
    except Exception as error:
        raise _invalid(label, error) from None


def _invalid(label: str, error: object) -> PulseError:
    return PulseError(
        "invalid-model",
        node=label,
        required="a model that onnx.checker accepts",
        found=_first_line(error),
        remedy="export the model again; `python -m onnx.bin.checker FILE` shows the whole message",
    )


def _first_line(error: object) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
