"""Positions: ranges over the length, tables looked up by them, constants of the signal's shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper

from nets import forms
from nets.base import Draw, Layer, Value, layer
from nets.builder import Builder
from nets.layout import arrange

TABLE = 1024  # rows: more than any signal of the tests is long


@layer
@dataclass(frozen=True)
class Position(Layer):
    """Adds what depends on the position: sinusoids of a Range, rows of a table (sliced or gathered), a ramp."""

    kind: str = "sine"

    weight = 2

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NSF")
        f = x.size("F")
        if self.kind == "slice":
            table = b.const(b.rng.standard_normal((1, TABLE, f)), np.float32)
            p = forms.slice_(b, table, 1, 0, forms.dim1(b, x.name, 1))
        else:
            steps = b.op("Range", b.const(0, "i8"), forms.dim(b, x.name, 1), b.const(1, "i8"))
            if self.kind == "table":
                p = b.op("Gather", b.const(b.rng.standard_normal((TABLE, f)), np.float32), steps, axis=0)
            else:
                t = forms.unsqueeze(b, b.op("Cast", steps, to=1), 1)
                p = b.op("Mul", t, b.const(b.rng.uniform(0.1, 1.5, (1, f)), np.float32))
                p = b.op("Sin", p) if self.kind == "sine" else b.op("Mul", p, b.scalar(0.01))
        return b.value(x, b.op("Add", x.name, p))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Position:
        return cls(draw(st.sampled_from(["sine", "slice", "table", "ramp"])))


@layer
@dataclass(frozen=True)
class ShapeMade(Layer):
    """A constant of the signal's shape: ConstantOfShape, or a speaker-like vector expanded over time and joined on."""

    kind: str = "fill"

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NSF")
        f = x.size("F")
        if self.kind == "fill":
            full = b.op("ConstantOfShape", b.op("Shape", x.name), value=_tensor(0.6))
            return b.value(x, b.op("Sub", x.name, full))
        if self.kind == "like":
            full = b.op("Expand", b.bias(f), b.op("Shape", x.name))
            return b.value(x, b.op("Mul", x.name, full))
        shape = b.op("Concat", b.ints(1), forms.dim1(b, x.name, 1), b.ints(2), axis=0)
        y = b.op("Concat", x.name, b.op("Expand", b.bias(1, 1, 2), shape), axis=2)
        return b.value(x, y, (1, -1, f + 2))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> ShapeMade:
        return cls(draw(st.sampled_from(["fill", "like", "join"])))


def _tensor(value: float) -> onnx.TensorProto:
    return helper.make_tensor("value", 1, [1], [value])
