"""Operators that ONNX defines by other operators, as those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import onnx
from onnx import defs, helper

from pulse.graph.expr import Expr
from pulse.graph.ir import Node

_FRAMES = 7919  # stands for the signal's length where a definition asks for types


class Typed(Protocol):
    """What is known of an input: a fact."""

    dtype: int

    @property
    def dims(self) -> tuple[Expr, ...]: ...


def function_body(node: Node, facts: Sequence[Any], opset: int) -> list[Node] | None:
    """The nodes of the operator's standard definition, under the names of this node's inputs and outputs; or None."""
    schema: Any = defs.get_schema(node.op, opset, "")
    proto = node.to_proto()
    text: bytes
    if schema.has_context_dependent_function:
        types = [b"" if f is None else _type(f) for f in facts]
        version = max(v for v in schema.context_dependent_function_opset_versions if v <= opset)
        text = schema.get_context_dependent_function_with_opset_version(version, proto.SerializeToString(), types)
    elif schema.has_function:
        version = max((v for v in schema.function_opset_versions if v <= opset), default=0)
        if not version:
            return None
        text = schema.get_function_with_opset_version(version)
    else:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(text)
    return _instantiated(node, function)


def _type(fact: Typed) -> bytes:
    shape = [int(d) if d.constant else _FRAMES for d in fact.dims]
    return bytes(helper.make_tensor_type_proto(fact.dtype, shape).SerializeToString())


def _instantiated(node: Node, function: onnx.FunctionProto) -> list[Node]:
    names = dict(zip(function.output, node.outputs, strict=False))
    for i, formal in enumerate(function.input):
        names[formal] = node.input(i)
    base = node.name or next(o for o in node.outputs if o)

    def renamed(name: str) -> str:
        return names.setdefault(name, f"{base}/{name}") if name else ""

    defaults = {a.name: helper.get_attribute_value(a) for a in function.attribute_proto}
    nodes = []
    for i, inner in enumerate(function.node):
        copy = onnx.NodeProto()
        copy.CopyFrom(inner)
        del copy.attribute[:]
        for attribute in inner.attribute:
            if not attribute.ref_attr_name:
                copy.attribute.append(attribute)
                continue
            value = node.attrs.get(attribute.ref_attr_name, defaults.get(attribute.ref_attr_name))
            if value is not None:
                copy.attribute.append(helper.make_attribute(attribute.name, value))
        made = Node.from_proto(copy)
        made.inputs = [renamed(n) for n in made.inputs]
        made.outputs = [renamed(n) for n in made.outputs]
        made.name = f"{base}/{i}_{made.op}"
        nodes.append(made)
    return nodes
