"""Convolutions over time: 1-D and 2-D, strided, dilated, grouped, with every kind of padding; transposed ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from nets.base import Draw, Invalid, Layer, Value, ceil_div, layer
from nets.builder import Builder
from nets.layout import arrange


def extent(k: int, d: int) -> int:
    return (k - 1) * d + 1


def draw_pads(draw: Draw, k: int, d: int) -> tuple[int, int] | str:
    """Causal, 'same', look-ahead, none, any, and the automatic kinds."""
    e = extent(k, d)
    kinds = [(e - 1, 0), ((e - 1) // 2, e - 1 - (e - 1) // 2), (0, e - 1), (0, 0), (e, 1), (1, e), "any", "auto"]
    kind = draw(st.sampled_from(kinds))
    if kind == "any":
        return draw(st.integers(0, e + 1)), draw(st.integers(0, e + 1))
    if kind == "auto":
        return draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    return kind


def windows(b: Builder, x: Value, k: int, s: int, d: int, pads: tuple[int, int] | str) -> tuple[Any, dict[str, Any]]:
    """Length step and padding attributes of a sliding window; notes what it needs."""
    e = extent(k, d)
    if isinstance(pads, str):
        if pads != "VALID" and (s > 1 or d > 1):
            raise Invalid("SAME with a stride depends on the length; ONNX Runtime reads it differently with dilation")
        left, right = (0, 0) if pads == "VALID" else (e // 2, e - 1 - e // 2)
        if pads == "SAME_UPPER":
            left, right = right, left
        attributes: dict[str, Any] = {"auto_pad": pads}
    else:
        left, right = pads
        attributes = {"pads": (left, right)}
    b.need(x.length, 1)
    b.need(x.length.then(lambda n: n + left + right), e)
    return (lambda n: (n + left + right - e) // s + 1), attributes


@layer
@dataclass(frozen=True)
class Conv(Layer):
    """1-D convolution on [1, C, S] with bias; `groups=0` is depthwise."""

    k: int
    s: int = 1
    d: int = 1
    pads: tuple[int, int] | str = (0, 0)
    groups: int = 1
    out: int = 4

    weight = 6

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCS")
        c = x.size("C")
        groups = self.groups or c
        out = c if self.groups == 0 else self.out
        if c % groups or out % groups:
            raise Invalid("groups")
        step, attributes = windows(b, x, self.k, self.s, self.d, self.pads)
        w = b.weight(out, c // groups, self.k, fan=c // groups * self.k)
        attributes |= {"strides": (self.s,), "dilations": (self.d,), "group": groups, "kernel_shape": (self.k,)}
        y = b.op("Conv", x.name, w, b.bias(out), **attributes)
        return b.value(x, y, (1, out, -1), length=x.length.then(step), rate=x.rate / self.s)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Conv:
        k, d = draw(st.integers(1, 5)), draw(st.sampled_from([1, 1, 2, 3]))
        s = draw(st.sampled_from([1, 1, 1, 2, 3, 4]))
        groups, out = draw(st.sampled_from([(1, 4), (1, 3), (2, 4), (0, 0)]))
        return cls(k, s, d, draw_pads(draw, k, d), groups, out)


@layer
@dataclass(frozen=True)
class Conv2d(Layer):
    """2-D convolution over time and frequency; time is the first or the second spatial axis."""

    k: tuple[int, int]  # time, frequency
    s: tuple[int, int] = (1, 1)
    d: tuple[int, int] = (1, 1)
    pads: tuple[int, int] = (0, 0)  # in time
    fpads: tuple[int, int] = (0, 0)
    groups: int = 1
    out: int = 2
    time_first: bool = True
    channels: int = 1

    weight = 4

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCSF" if self.time_first else "NCFS", self.channels)
        c, f = x.size("C"), x.size("F")
        groups, out = (c, c) if self.groups == 0 else (self.groups, self.out)
        if c % groups or out % groups:
            raise Invalid("groups")
        ef = extent(self.k[1], self.d[1])
        bands = (f + sum(self.fpads) - ef) // self.s[1] + 1
        if f + sum(self.fpads) < ef:
            raise Invalid("bands")
        step, _ = windows(b, x, self.k[0], self.s[0], self.d[0], self.pads)
        order = (0, 1) if self.time_first else (1, 0)
        pads = ((self.pads[0], self.fpads[0]), (self.pads[1], self.fpads[1]))
        k = tuple(self.k[i] for i in order)
        y = b.op(
            "Conv", x.name, b.weight(out, c // groups, *k, fan=c // groups * k[0] * k[1]), b.bias(out),
            kernel_shape=k, strides=[self.s[i] for i in order], dilations=[self.d[i] for i in order], group=groups,
            pads=[pads[side][i] for side in (0, 1) for i in order],
        )  # fmt: skip
        dims = (1, out, -1, bands) if self.time_first else (1, out, bands, -1)
        return b.value(x, y, dims, length=x.length.then(step), rate=x.rate / self.s[0])

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Conv2d:
        k, d = draw(st.integers(1, 4)), draw(st.sampled_from([1, 1, 2]))
        pads = draw_pads(draw, k, d)
        kf, sf = draw(st.sampled_from([(1, 1), (3, 1), (3, 2), (2, 2)]))
        groups, out = draw(st.sampled_from([(1, 2), (1, 3), (2, 2), (0, 0)]))
        return cls(
            (k, kf), (draw(st.sampled_from([1, 1, 1, 2, 3])), sf), (d, 1), (0, 0) if isinstance(pads, str) else pads,
            draw(st.sampled_from([(0, 0), (1, 1), (0, 1)])), groups, out, draw(st.booleans()),
            draw(st.sampled_from([1, 2])),
        )  # fmt: skip


@layer
@dataclass(frozen=True)
class ConvT(Layer):
    """Transposed convolution on [1, C, S], or on [1, C, S, F] with a frequency kernel; `crop` are its pads."""

    k: int
    s: int = 1
    d: int = 1
    crop: tuple[int, int] = (0, 0)
    extra: int = 0  # output_padding
    groups: int = 1
    out: int = 4
    kf: int = 0  # 0: 1-D
    channels: int = 1

    weight = 4
    reference = False  # onnx.reference crashes on groups and dilations

    @property
    def hides(self) -> bool:  # type: ignore[override]
        """Taps that miss some phases of the stride leave frames which are nothing but bias."""
        return len({i * self.d % self.s for i in range(self.k)}) < self.s

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCSF" if self.kf else "NCS", self.channels)
        c = x.size("C")
        e = extent(self.k, self.d)
        if c % self.groups or self.out % self.groups or self.extra >= self.s:
            raise Invalid("groups or output padding")
        k, s, d = (self.k,), (self.s,), (self.d,)
        pads, extra = self.crop, (self.extra,)
        dims: tuple[int, ...] = (1, self.out, -1)
        if self.kf:
            k, s, d, extra = (self.k, self.kf), (self.s, 2), (self.d, 1), (self.extra, 0)
            pads = (self.crop[0], 0, self.crop[1], 0)
            dims = (*dims, (x.size("F") - 1) * 2 + self.kf)
        w = b.weight(c, self.out // self.groups, *k, fan=c * ceil_div(self.k, self.s))
        y = b.op(
            "ConvTranspose", x.name, w, b.bias(self.out),
            kernel_shape=k, strides=s, dilations=d, pads=pads, output_padding=extra, group=self.groups,
        )  # fmt: skip
        s0, cut, more = self.s, sum(self.crop), self.extra
        length = x.length.then(lambda n: (n - 1) * s0 + e + more - cut)
        b.need(x.length, 1)
        return b.value(x, y, dims, length=length, rate=x.rate * self.s)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> ConvT:
        s = draw(st.sampled_from([1, 2, 2, 3, 4]))
        k, d = draw(st.integers(1, s + 3)), draw(st.sampled_from([1, 1, 1, 2]))
        e = extent(k, d)
        crops = [(0, 0), (0, max(e - s, 0)), (max(e - s, 0), 0), (max(e - s, 0) // 2,) * 2]
        crop = draw(st.sampled_from(crops) | st.tuples(st.integers(0, e), st.integers(0, e)))
        groups, out = draw(st.sampled_from([(1, 4), (1, 2), (2, 4)]))
        kf = draw(st.sampled_from([0, 0, 3]))
        return cls(
            k, s, d, crop, draw(st.sampled_from([0, 0, 0, 1, s - 1])), groups, out, kf, draw(st.sampled_from([1, 2]))
        )
