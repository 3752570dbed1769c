"""Parts of a frame: Gather, Slice and Split over features."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from nets import forms
from nets.base import Draw, Invalid, Layer, Value, layer
from nets.builder import Builder
from nets.layout import arrange


@layer
@dataclass(frozen=True)
class Gather(Layer):
    """Gather over features with constant indices; of rank 2 it unfolds bands, as GTCRN does."""

    rank: int = 1
    count: int = 3
    layout: str = "NCS"

    hides = True

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, self.layout)
        axis = 3 - x.axis
        n = x.features
        dims = list(x.dims)
        if self.rank == 1:
            indices = b.rng.integers(-n, n, self.count)
            dims[axis] = self.count
            return b.value(x, b.op("Gather", x.name, b.const(indices, "i8"), axis=axis), dims)
        indices = b.rng.integers(0, n, (self.count, 2))
        dims[axis : axis + 1] = [self.count, 2]
        y = b.op("Gather", x.name, b.const(indices, "i8"), axis=axis)
        layout = x.layout.replace(x.layout[axis], "CF")
        return b.value(x, y, dims, layout=layout)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Gather:
        return cls(draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.sampled_from(["NCS", "NSF"])))


@layer
@dataclass(frozen=True)
class Pick(Layer):
    """Slice, Split, or Gather by a scalar over features: some of them only, in another order, or backwards."""

    kind: str = "slice"
    start: int = 0
    step: int = 1

    hides = True

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCS")
        c = x.size("C")
        dims = [1, -1, -1]
        if self.kind == "reverse":
            y = b.op("Slice", x.name, b.ints(-1), b.ints(-(2**31)), b.ints(1), b.ints(-1))
            return b.value(x, y)
        if self.start >= c:
            raise Invalid("too few")
        if self.kind == "scalar":
            y = b.op("Gather", x.name, b.const(self.start, "i8"), axis=1)
            return b.value(x, y, (1, -1), layout="NS")
        if self.kind == "slice":
            dims[1] = -(-(c - self.start) // self.step)
            return b.value(x, forms.slice_(b, x.name, 1, self.start, forms.BIG, self.step), dims)
        if not self.start:
            raise Invalid("nothing to split")
        first, second = forms.split(b, x.name, 1, [self.start, c - self.start])
        return b.value(x, b.op("Concat", second, first, b.op("Neg", first), axis=1), (1, c + self.start, -1))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Pick:
        kind = draw(st.sampled_from(["slice", "split", "reverse", "scalar"]))
        return cls(kind, draw(st.integers(0, 2)), draw(st.integers(1, 2)))


@layer
@dataclass(frozen=True)
class Lookup(Layer):
    """An embedding: the signal becomes indices into a table of scalars, or of vectors."""

    width: int = 0

    hides = True

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NS" if x.features == 1 else "NSF")
        steps = forms.clip(b, b.op("Add", b.op("Mul", x.name, b.scalar(2.0)), b.scalar(4.0)), 0.0, 7.0)
        indices = b.op("Cast", steps, to=7)
        if not self.width:
            return b.value(x, b.op("Gather", b.bias(8), indices, axis=0))
        y = b.op("Gather", b.bias(8, self.width), indices, axis=0)
        layout = "NSF" if x.layout == "NS" else "NSCF"
        return b.value(x, y, (*x.dims, self.width), layout=layout)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Lookup:
        return cls(draw(st.integers(0, 3)))
