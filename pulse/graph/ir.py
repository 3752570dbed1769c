"""The graph that passes and rules work on: nodes over named values, constants as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

UNKNOWN = ("...",)


@dataclass
class Node:
    """One operator call. An absent optional input or output is the empty string."""

    op: str
    inputs: list[str]
    outputs: list[str]
    attrs: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    domain: str = ""

    @property
    def label(self) -> str:
        """How a diagnostic names the node."""
        shown = self.name or next((o for o in self.outputs if o), "")
        return f"{shown} ({self.op})"

    def input(self, index: int) -> str:
        """Name of the input, or "" where it is absent."""
        return self.inputs[index] if index < len(self.inputs) else ""

    @staticmethod
    def from_proto(proto: onnx.NodeProto) -> Node:
        attrs = {a.name: _attribute(a) for a in proto.attribute}
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        return Node(proto.op_type, list(proto.input), list(proto.output), attrs, proto.name, domain)

    def to_proto(self) -> onnx.NodeProto:
        inputs = list(self.inputs)
        while inputs and not inputs[-1]:
            inputs.pop()
        proto = helper.make_node(self.op, inputs, self.outputs, name=self.name or None, domain=self.domain or None)
        for key, value in self.attrs.items():
            if isinstance(value, np.ndarray):
                value = numpy_helper.from_array(value)
            kind = None
            if isinstance(value, (list, tuple)) and not len(value):
                kind = _declared_type(self.op, self.domain, key)
                if kind is None:
                    continue
            proto.attribute.append(helper.make_attribute(key, value, attr_type=kind))
        return proto


def _declared_type(op: str, domain: str, attribute: str) -> int | None:
    """The type that an operator's newest schema gives an attribute: an empty list does not tell its own."""
    schema: Any = defs.get_schema(op, domain=domain) if defs.has(op, domain) else None
    if schema is None or attribute not in schema.attributes:
        return None
    return int(schema.attributes[attribute].type)


def _attribute(proto: onnx.AttributeProto) -> Any:
    if proto.type == onnx.AttributeProto.TENSOR:
        return numpy_helper.to_array(proto.t)
    value = helper.get_attribute_value(proto)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if proto.type == onnx.AttributeProto.STRINGS:
        return [v.decode("utf-8", "replace") for v in value]
    return list(value) if isinstance(value, (list, tuple)) or hasattr(value, "extend") else value


@dataclass
class Port:
    """An input or output of a graph: name, ONNX element type, dims (a number, the text of a symbolic one, or "?").

    `UNKNOWN` stands for dims of which not even the number is known.
    """

    name: str
    dtype: int
    dims: tuple[int | str, ...]

    def to_proto(self) -> onnx.ValueInfoProto:
        dims = None if self.dims == UNKNOWN else [None if d == "?" else d for d in self.dims]
        return helper.make_tensor_value_info(self.name, self.dtype, dims)


@dataclass
class Graph:
    """A whole graph. `nodes` are in topological order; `constants` are the initialisers."""

    name: str
    opset: int
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def needed(self, outputs: Iterable[str]) -> Iterator[Node]:
        """The nodes which the given values depend on, in order."""
        wanted = set(outputs)
        kept = []
        for node in reversed(self.nodes):
            if wanted.intersection(o for o in node.outputs if o):
                wanted.update(captured(node))
                kept.append(node)
        return reversed(kept)


def captured(node: Node) -> set[str]:
    """Every outer value that a node reads, by its inputs or from inside its subgraphs."""
    names = {i for i in node.inputs if i}
    for value in node.attrs.values():
        if isinstance(value, onnx.GraphProto):
            names |= subgraph_reads(value)
    return names


def subgraph_reads(graph: onnx.GraphProto) -> set[str]:
    """Outer values read by a subgraph."""
    own = {i.name for i in graph.input} | {i.name for i in graph.initializer}
    reads: set[str] = set()
    for proto in graph.node:
        node = Node.from_proto(proto)
        reads |= captured(node) - own
        own |= set(node.outputs)
    reads |= {o.name for o in graph.output} - own
    return reads


def reading(graph: onnx.GraphProto, names: Mapping[str, str]) -> onnx.GraphProto:
    """A copy of a subgraph that reads outer values under other names, in the subgraphs inside it too."""
    out = onnx.GraphProto()
    out.CopyFrom(graph)
    own = {i.name for i in out.input} | {i.name for i in out.initializer} | {o for n in out.node for o in n.output}
    outer = {old: new for old, new in names.items() if old not in own}
    for proto in out.node:
        for i, name in enumerate(proto.input):
            proto.input[i] = outer.get(name, name)
        for attribute in proto.attribute:
            if attribute.HasField("g"):
                attribute.g.CopyFrom(reading(attribute.g, outer))
    return out


def closed(graph: onnx.GraphProto, known: Mapping[str, np.ndarray]) -> onnx.GraphProto:
    """A copy of a subgraph that holds the outer values it reads, as far as they are known: for work on it alone."""
    out = onnx.GraphProto()
    out.CopyFrom(graph)
    for name in sorted(subgraph_reads(graph) & known.keys()):
        out.initializer.append(numpy_helper.from_array(known[name], name))
    return out
