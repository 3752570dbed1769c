"""Padding and cutting the time axis, and constant frames joined on it."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from nets import forms
from nets.base import Draw, Invalid, Layer, Value, ceil_div, layer
from nets.builder import Builder
from nets.layout import arrange


@layer
@dataclass(frozen=True)
class Pad(Layer):
    """Pad in time; negative cuts. Edge and reflect pad at the start only."""

    before: int
    after: int = 0
    mode: str = "constant"
    value: float = 0.0

    weight = 4

    @property
    def hides(self) -> bool:  # type: ignore[override]
        """Frames made of the signal's first ones cannot be known ahead, though later frames are."""
        return self.mode != "constant"

    def apply(self, b: Builder, x: Value) -> Value:
        if self.mode != "constant" and (self.before < 0 or self.after < 0):
            raise Invalid("negative pads are for constants")
        b.need(x.length, 1 + self.before if self.mode == "reflect" else 1)
        b.need(x.length.then(lambda n: n + min(self.before, 0) + min(self.after, 0)), 1)
        y = forms.pad(b, x.name, len(x.dims), x.axis, self.before, self.after, self.mode, self.value)
        more = self.before + self.after
        return b.value(x, y, length=x.length.then(lambda n: n + more))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Pad:
        mode = draw(st.sampled_from(["constant", "constant", "constant", "edge", "reflect"]))
        if mode != "constant":
            return cls(draw(st.integers(1, 4)), 0, mode)
        return cls(draw(st.integers(-3, 5)), draw(st.integers(-3, 5)), mode, draw(st.sampled_from([0.0, 1.5])))


@layer
@dataclass(frozen=True)
class Slice(Layer):
    """`x[start : len - end : step]` in time."""

    start: int = 0
    end: int = 0
    step: int = 1

    weight = 4

    def apply(self, b: Builder, x: Value) -> Value:
        b.need(x.length, self.start + self.end + 1)
        y = forms.slice_(b, x.name, x.axis, self.start, -self.end if self.end else forms.BIG, self.step)
        cut, step = self.start + self.end, self.step
        return b.value(x, y, length=x.length.then(lambda n: ceil_div(n - cut, step)), rate=x.rate / step)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Slice:
        ends = st.sampled_from([0, 0, 0, 1, 2, 4])
        return cls(draw(ends), draw(ends), draw(st.sampled_from([1, 1, 1, 2, 3])))


@layer
@dataclass(frozen=True)
class ConcatTime(Layer):
    """Constant frames joined before or after the signal."""

    before: int = 0
    after: int = 0

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCS")
        parts = [x.name]
        if self.before:
            parts.insert(0, b.bias(1, x.size("C"), self.before))
        if self.after:
            parts.append(b.bias(1, x.size("C"), self.after))
        y = b.op("Concat", *parts, axis=x.axis)
        more = self.before + self.after
        return b.value(x, y, length=x.length.then(lambda n: n + more))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> ConcatTime:
        return cls(draw(st.sampled_from([0, 1, 2, 4])), draw(st.sampled_from([0, 0, 1, 3])))
