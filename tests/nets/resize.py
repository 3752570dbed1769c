"""Resize by nearest neighbour in time, by anything over bands."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from nets import forms
from nets.base import Draw, Layer, Value, layer
from nets.builder import Builder
from nets.layout import arrange

# Pairs of attributes that agree for whole factors: frame i of the result is frame i // by.
NEAREST = (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"), ("half_pixel", "round_prefer_ceil"))


@layer
@dataclass(frozen=True)
class Resize(Layer):
    """[1, C, S] by a whole factor; `bands` resizes [1, C, S, F] linearly over F as well.

    `sizes`: by computed sizes instead of scales.
    """

    by: int = 2
    how: int = 0
    sizes: bool = False
    bands: int = 1
    channels: int = 1

    weight = 3

    def apply(self, b: Builder, x: Value) -> Value:
        by, (transform, nearest) = self.by, NEAREST[self.how]
        length = x.length.then(lambda n: n * by)
        if self.bands > 1:
            x = arrange(b, x, "NCSF", self.channels)
            y = b.op(
                "Resize", x.name, "" if b.opset >= 13 else b.const([], "f4"), b.const([1, 1, 1, self.bands], "f4"),
                mode="linear", coordinate_transformation_mode=transform,
            )  # fmt: skip
            return b.value(x, y, (1, x.size("C"), -1, x.size("F") * self.bands))
        x = arrange(b, x, "NCS")
        # opset 11 wants its roi, of any size
        inputs = [x.name, "" if b.opset >= 13 else b.const([], "f4")]
        if self.sizes:
            n = b.op("Mul", forms.dim(b, x.name, 2), b.const(by, "i8"))
            channels = forms.dim1(b, x.name, 1) if b.chains else b.ints(x.size("C"))
            inputs += ["" if b.opset >= 13 else b.const([], "f4")]
            inputs += [b.op("Concat", b.ints(1), channels, forms.unsqueeze(b, n, 0), axis=0)]
        else:
            inputs.append(b.const([1, 1, by], "f4"))
        y = b.op("Resize", *inputs, mode="nearest", coordinate_transformation_mode=transform, nearest_mode=nearest)
        return b.value(x, y, length=length, rate=x.rate * by)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Resize:
        channels = draw(st.sampled_from([c for c in (1, 2) if x.features % c == 0]))
        how = draw(st.integers(0, len(NEAREST) - 1))
        return cls(
            draw(st.sampled_from([2, 2, 3])), how, draw(st.booleans()), draw(st.sampled_from([1, 1, 1, 2])), channels
        )
