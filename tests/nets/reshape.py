"""Reshapes that split or merge the time axis, Flatten, Tile and repeats."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from nets import forms
from nets.base import Draw, Invalid, Layer, Value, layer
from nets.builder import Builder
from nets.layout import arrange


@layer
@dataclass(frozen=True)
class Merge(Layer):
    """[1, S, F] to [1, S * by, F / by]: every frame becomes `by` frames."""

    by: int

    weight = 3

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NSF")
        if x.size("F") % self.by:
            raise Invalid("features do not divide")
        by, dims = self.by, (1, -1, x.size("F") // self.by)
        return b.value(x, forms.reshape(b, x, dims, by), dims, length=x.length.then(lambda n: n * by), rate=x.rate * by)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Merge:
        return cls(draw(st.sampled_from([n for n in (1, 2, 3, 4) if x.features % n == 0])))


@layer
@dataclass(frozen=True)
class Split(Layer):
    """[1, S, F] to [1, S / by, by * F]: `by` frames become one. Only where the length divides.

    `keep`: by way of [1, S / by, by, F], with a product of its own for every place of the group.
    """

    by: int
    keep: bool = False

    weight = 4

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NSF")
        if not b.divides(x.length, self.by):
            raise Invalid("the length does not divide")
        by, f = self.by, x.size("F")
        length, rate = x.length.then(lambda n: n // by), x.rate / by
        if self.keep:
            dims: tuple[int, ...] = (1, -1, by, f)
            grouped = b.value(x, forms.reshape(b, x, dims, den=by), dims, layout="NSCF", length=length, rate=rate)
            return b.value(grouped, b.op("Mul", grouped.name, b.bias(by, f)))
        dims = (1, -1, by * f)
        return b.value(x, forms.reshape(b, x, dims, den=by), dims, length=length, rate=rate)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Split:
        fits = [n for n in (2, 3, 4) if b.divides(x.length, n)]
        if not fits:
            raise Invalid("the length does not divide")
        return cls(draw(st.sampled_from(fits)), draw(st.booleans()))


@layer
@dataclass(frozen=True)
class Flatten(Layer):
    """Flatten to [S, features]."""

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "SCF", 1)
        dims = (-1, x.size("C") * x.size("F"))
        return b.value(x, b.op("Flatten", x.name, axis=1), dims, layout="SF")

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Flatten:
        return cls()


@layer
@dataclass(frozen=True)
class Tile(Layer):
    """Tile over features, or (`time`) every frame repeated: [1, S, F] to [1, S, by, F] to [1, S * by, F]."""

    by: int = 2
    time: bool = False
    expand: bool = False  # Expand in place of Tile

    def apply(self, b: Builder, x: Value) -> Value:
        by = self.by
        x = arrange(b, x, "NSF")
        f = x.size("F")
        if not self.time:
            y = b.op("Tile", x.name, b.ints(1, 1, by))
            tiled = b.value(x, y, (1, -1, by * f))
            return b.value(tiled, b.op("Mul", y, b.bias(by * f)))
        wide = forms.unsqueeze(b, x.name, 2)
        if self.expand:
            y = b.op("Expand", wide, b.ints(1, 1, by, 1))
        else:
            y = b.op("Tile", wide, b.ints(1, 1, by, 1))
        grouped = b.value(x, y, (1, -1, by, f), layout="NSCF")
        dims = (1, -1, f)
        length = x.length.then(lambda n: n * by)
        return b.value(x, forms.reshape(b, grouped, dims, by), dims, length=length, rate=x.rate * by)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Tile:
        return cls(draw(st.sampled_from([2, 3])), draw(st.booleans()), draw(st.booleans()))


@layer
@dataclass(frozen=True)
class Shuffle(Layer):
    """Sub-pixel convolution's second half: [1, C, S] to [1, C / by, S * by]; `inverse`: [1, C * by, S / by]."""

    by: int = 2
    inverse: bool = False

    def apply(self, b: Builder, x: Value) -> Value:
        by = self.by
        x = arrange(b, x, "NCS")
        c = x.size("C")
        if self.inverse:
            if not b.divides(x.length, by):
                raise Invalid("the length does not divide")
            dims: tuple[int, ...] = (1, c, -1, by)
            length, rate = x.length.then(lambda n: n // by), x.rate / by
            wide = b.value(x, forms.reshape(b, x, dims, den=by), dims, layout="NCSF", length=length, rate=rate)
            return arrange(b, wide, "NCFS")
        if c % by:
            raise Invalid("channels do not divide")
        dims = (1, c // by, by, -1)
        wide = b.value(x, forms.reshape(b, x, dims), dims, layout="NCFS")
        wide = arrange(b, wide, "NCSF")
        dims = (1, c // by, -1)
        y = forms.reshape(b, wide, dims, by)
        return b.value(x, y, dims, length=x.length.then(lambda n: n * by), rate=x.rate * by)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Shuffle:
        return cls(draw(st.sampled_from([2, 2, 3])), draw(st.booleans()))
