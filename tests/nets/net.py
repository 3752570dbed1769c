"""Net: a problem, and the model it builds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import onnx
from onnx import helper

from nets.base import Invalid, Layer, Length, Value
from nets.builder import FLOAT, Builder


@dataclass(frozen=True)
class Plan:
    """What is known of a net before anything runs.

    Attributes:
        inputs: streaming inputs; sides: inputs without a stream axis, with their shapes.
        outputs: streaming outputs; lasts: names of outputs that are no streams.
        min_length: least legal signal; legal ones are multiples of `multiple` from there on.
        hides: outputs may not depend on all they formally read.
        reference: onnx.reference runs all of it.
    """

    inputs: tuple[Value, ...]
    sides: dict[str, tuple[int, ...]]
    outputs: tuple[Value, ...]
    lasts: tuple[str, ...]
    min_length: int
    multiple: int
    granularity: int
    hides: bool
    reference: bool


@dataclass(frozen=True)
class Net:
    """Layers from one input of `dims` (-1 at the stream axis); see `Builder` for the rest."""

    layers: tuple[Layer, ...]
    layout: str = "NCS"
    dims: tuple[int, ...] = (1, 4, -1)
    opset: int = 17
    multiple: int = 1
    chains: bool = False
    seed: int = 0

    def build(self, twin: bool = False) -> onnx.ModelProto:
        """The model; with `twin` its equivalent for ONNX Runtime where that lacks a form (recurrences of layout 1)."""
        return self._make(twin)[0]

    def plan(self) -> Plan:
        return self._make(False)[1]

    @property
    def convert_options(self) -> dict[str, int]:
        """What `pulse.convert` must be told."""
        return {"length_multiple_of": self.multiple} if self.multiple > 1 else {}

    def _make(self, twin: bool) -> tuple[onnx.ModelProto, Plan]:
        b = Builder(self.opset, self.seed, self.multiple, self.chains, twin)
        x = start(b, self.layout, self.dims)
        y = b.run(self.layers, x)
        if y.name in b.inputs or any(t.name == y.name for t in b.taps):
            y = b.value(y, b.op("Identity", y.name))
        outputs = [*(_named(b, t, f"tap{i}") for i, t in enumerate(b.taps)), _named(b, y, "y")]
        if not {*b.inputs, *b.sides} <= _reached(b.nodes, [o.name for o in outputs]):
            raise Invalid("an input is not used")
        inputs = list(b.inputs.values())
        lasts = [b.op("Identity", name) for name in b.lasts]
        model = self._model(b, inputs, outputs, lasts)
        granularity = math.lcm(*(r.denominator for r in b.rates))
        plan = Plan(
            tuple(inputs), dict(b.sides), tuple(outputs), tuple(lasts), b.min_length(), self.multiple, granularity,
            b.hides, b.reference,
        )  # fmt: skip
        return model, plan

    def _model(self, b: Builder, inputs: list[Value], outputs: list[Value], lasts: list[str]) -> onnx.ModelProto:
        batch: int | str = "batch" if self.chains and self.seed % 2 else 1
        symbol = ("S", "time", "n_frames")[self.seed % 3]

        def info(v: Value) -> onnx.ValueInfoProto:
            shape: list[int | str] = [symbol if d == -1 else d for d in v.dims]
            if "N" in v.layout:
                shape[v.layout.index("N")] = batch
            return helper.make_tensor_value_info(v.name, FLOAT, shape)

        graph = helper.make_graph(
            b.nodes, "net",
            [*map(info, inputs), *(helper.make_tensor_value_info(n, FLOAT, s) for n, s in b.sides.items())],
            [helper.make_tensor_value_info(v.name, FLOAT, _told(v)) for v in outputs]
            + [helper.make_tensor_value_info(name, FLOAT, ["a", "b", "c"]) for name in lasts],
            b.initializers,
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 8 if self.opset < 19 else 10
        return model


def start(b: Builder, layout: str, dims: tuple[int, ...]) -> Value:
    """The first streaming input."""
    b.inputs["x"] = Value("x", dims, layout, Length(lambda s: s), Fraction(1))
    return b.value(b.inputs["x"], "x")


def _named(b: Builder, v: Value, name: str) -> Value:
    """`v` under an output's name."""
    b.nodes.append(helper.make_node("Identity", [v.name], [name], name=f"out_{name}"))
    return Value(name, v.dims, v.layout, v.length, v.rate)


def _reached(nodes: list[onnx.NodeProto], outputs: list[str]) -> set[str]:
    """Names that the outputs depend on. Nodes are in order."""
    names = set(outputs)
    for node in reversed(nodes):
        if names.intersection(node.output):
            names.update(node.input)
            names.update(name for a in node.attribute for inner in a.g.node for name in inner.input)
    return names


def _told(v: Value) -> list[int | str]:
    """An output's shape as exporters declare it: a new symbol where the length is not the input's."""
    return [f"{v.name}_frames" if dim == -1 else dim for dim in v.dims]
