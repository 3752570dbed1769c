"""Max, average and Lp pooling over time, with ceil_mode and padding at both edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from nets.base import Draw, Invalid, Layer, Value, ceil_div, layer
from nets.builder import Builder
from nets.conv import extent
from nets.layout import arrange


@layer
@dataclass(frozen=True)
class Pool(Layer):
    """`kind` is Max, Average or Lp; `band` pools that many bands of [1, C, S, F] as well, 0 is 1-D."""

    kind: str
    k: int
    s: int = 1
    d: int = 1
    pads: tuple[int, int] = (0, 0)
    ceil: bool = False
    count_pad: bool = False
    band: int = 0
    channels: int = 1

    weight = 4

    def apply(self, b: Builder, x: Value) -> Value:
        if max(self.pads) >= self.k:
            raise Invalid("ONNX Runtime wants padding smaller than the kernel")
        if ((self.kind == "Average" and b.opset < 19) or (self.kind == "Lp" and b.opset < 18)) and (self.d > 1):
            raise Invalid("dilation comes later")
        if self.kind == "Lp" and (self.ceil or self.band):
            raise Invalid("ceil_mode comes later")
        x = arrange(b, x, "NCSF" if self.band else "NCS", self.channels)
        e, (left, right), s = extent(self.k, self.d), self.pads, self.s
        attributes: dict[str, Any] = {"kernel_shape": [self.k], "strides": [s], "pads": [left, right]}
        dims = list(x.dims)
        if self.band:
            if x.size("F") < self.band:
                raise Invalid("bands")
            dims[3] = x.size("F") // self.band
            attributes = {"kernel_shape": [self.k, self.band], "strides": [s, self.band], "pads": [left, 0, right, 0]}
            if self.ceil:
                dims[3] = ceil_div(x.size("F"), self.band)
        if self.ceil:
            attributes["ceil_mode"] = 1
        if self.d > 1:
            attributes["dilations"] = [self.d, 1] if self.band else [self.d]
        if self.kind == "Average" and self.count_pad:
            attributes["count_include_pad"] = 1
        if self.kind == "Lp":
            attributes["p"] = 2
        ceil = self.ceil

        def step(n: int) -> int:
            if not ceil:
                return (n + left + right - e) // s + 1
            return min(ceil_div(n + left + right - e, s) + 1, (n + left - 1) // s + 1)  # no window starts past the end

        b.need(x.length, self.d if self.kind == "Max" else 1)  # or else a window has no frame, and minus infinity
        b.need(x.length.then(lambda n: n + left + right), e)
        y = b.op(f"{self.kind}Pool", x.name, **attributes)
        return b.value(x, y, dims, length=x.length.then(step), rate=x.rate / s)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Pool:
        k = draw(st.integers(1, 4))
        pad = st.integers(0, k - 1)
        return cls(
            draw(st.sampled_from(["Max", "Average", "Average", "Lp"])), k, draw(st.sampled_from([1, 1, 2, 3])),
            draw(st.sampled_from([1, 1, 2])), (draw(pad), draw(pad)), draw(st.booleans()), draw(st.booleans()),
            draw(st.sampled_from([0, 0, 2])), draw(st.sampled_from([1, 2])),
        )  # fmt: skip
