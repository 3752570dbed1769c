"""More inputs and outputs: a second stream, a vector given at run time, an intermediate output."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hypothesis import strategies as st

from nets.base import Draw, Invalid, Layer, Length, Value, layer
from nets.builder import Builder
from nets.layout import arrange


@layer
@dataclass(frozen=True)
class Fresh(Layer):
    """Leaves what came before and starts from a new streaming input; makes sense at the head of a branch."""

    layout: str = "NCS"
    dims: tuple[int, ...] = (1, 3, -1)

    weight = 1

    def apply(self, b: Builder, x: Value) -> Value:
        if len(b.inputs) >= 3:
            raise Invalid("inputs enough")
        name = f"x{len(b.inputs)}"
        b.inputs[name] = Value(name, self.dims, self.layout, Length(lambda s: s), Fraction(1))
        return b.value(b.inputs[name], name)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Fresh:
        shapes = [("NCS", (1, 3, -1)), ("NSF", (1, -1, 2)), ("NCSF", (1, 2, -1, 2)), ("SF", (-1, 4))]
        return cls(*draw(st.sampled_from(shapes)))


@layer
@dataclass(frozen=True)
class Side(Layer):
    """A vector without a stream axis, given at run time: added, multiplied, or joined on after Expand."""

    kind: str = "Add"

    hides = True  # nothing that depends on it is known ahead
    weight = 1

    def apply(self, b: Builder, x: Value) -> Value:
        if len(b.sides) >= 3:
            raise Invalid("inputs enough")
        x = arrange(b, x, "NCS")
        name = f"side{len(b.sides)}"
        c = x.size("C")
        if self.kind == "Concat":
            b.sides[name] = (1, 2, 1)
            shape = b.op("Concat", b.ints(1, 2), b.op("Slice", b.op("Shape", x.name), b.ints(2), b.ints(3)), axis=0)
            return b.value(x, b.op("Concat", x.name, b.op("Expand", name, shape), axis=1), (1, c + 2, -1))
        b.sides[name] = (1, c, 1)
        return b.value(x, b.op(self.kind, x.name, name))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Side:
        return cls(draw(st.sampled_from(["Add", "Mul", "Concat"])))


@layer
@dataclass(frozen=True)
class Tap(Layer):
    """Makes the value an output as well."""

    weight = 2

    def apply(self, b: Builder, x: Value) -> Value:
        if any(t.name == x.name for t in b.taps) or x.name in b.inputs:
            raise Invalid("an output already")
        b.taps.append(x)
        return x

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Tap:
        return cls()
