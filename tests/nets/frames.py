"""Framing: unfold of time by Gather with computed indices, and STFT."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from nets import forms
from nets.base import Draw, Invalid, Layer, Value, layer
from nets.builder import Builder
from nets.layout import arrange


@layer
@dataclass(frozen=True)
class Frames(Layer):
    """Unfold as exporters write it: Gather at Range(0, L - k + 1, hop)[:, None] + arange(k), [1, C, frames, k].

    `shape2d`: the indices as [k, frames] instead.
    """

    k: int
    hop: int = 1
    k_first: bool = False

    weight = 3

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCS")
        k, hop = self.k, self.hop
        b.need(x.length, k)
        last = b.op("Sub", forms.dim(b, x.name, 2), b.const(k - 1, "i8"))
        starts = b.op("Range", b.const(0, "i8"), last, b.const(hop, "i8"))
        taps = np.arange(k, dtype=np.int64)
        if self.k_first:
            indices = b.op("Add", forms.unsqueeze(b, starts, 0), b.const(taps[:, None]))
        else:
            indices = b.op("Add", forms.unsqueeze(b, starts, 1), b.const(taps))
        y = b.op("Gather", x.name, indices, axis=2)
        dims, layout = ((1, x.size("C"), k, -1), "NCFS") if self.k_first else ((1, x.size("C"), -1, k), "NCSF")
        length = x.length.then(lambda n: (n - k) // hop + 1)
        framed = b.value(x, y, dims, layout=layout, length=length, rate=x.rate / hop)
        window = b.bias(k, 1) if self.k_first else b.bias(k)
        return b.value(framed, b.op("Mul", framed.name, window))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Frames:
        return cls(draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.booleans()))


@layer
@dataclass(frozen=True)
class Spectrum(Layer):
    """STFT of the frames' samples strung together, [1, S * F], with a hop of `hop * F`; real and imaginary parts."""

    hop: int = 1
    size: int = 2  # frame length in hops of samples
    onesided: bool = True
    flat: bool = False  # [1, samples], which ONNX Runtime takes as well as [1, samples, 1]

    weight = 2

    @property
    def reference(self) -> bool:  # type: ignore[override]
        return not self.flat

    def apply(self, b: Builder, x: Value) -> Value:
        if b.opset < 17:
            raise Invalid("STFT comes later")
        x = arrange(b, x, "NSF")
        f = x.size("F")
        hop, k = self.hop * f, self.size * f
        if k < 2 or k > 16:
            raise Invalid("a silly transform")
        samples = b.value(
            x,
            forms.reshape(b, x, (1, -1), f),
            (1, -1),
            layout="NS",
            length=x.length.then(lambda n: n * f),
            rate=x.rate * f,
        )
        window = b.const(np.hanning(k + 2)[1:-1], np.float32)
        signal = samples.name if self.flat else forms.unsqueeze(b, samples.name, 2)
        y = b.op("STFT", signal, b.const(hop, "i8"), window, b.const(k, "i8"), onesided=int(self.onesided))
        bins = k // 2 + 1 if self.onesided else k
        b.need(samples.length, k)
        length = samples.length.then(lambda n: (n - k) // hop + 1)
        return b.value(samples, y, (1, -1, bins, 2), layout="NSFC", length=length, rate=samples.rate / hop)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Spectrum:
        return cls(draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.booleans()), draw(st.booleans()))


@layer
@dataclass(frozen=True)
class Transform(Layer):
    """DFT of each frame's features: [1, S, F] to [1, S, bins, 2]."""

    onesided: bool = True
    inverse: bool = False

    def apply(self, b: Builder, x: Value) -> Value:
        if b.opset < 17:
            raise Invalid("DFT comes later")
        x = arrange(b, arrange(b, x, "NSF"), "NSCF", x.features)  # one value a feature, real
        f = x.size("C")
        onesided = self.onesided and not self.inverse
        if b.opset >= 20:
            y = b.op("DFT", x.name, "", b.const(2, "i8"), onesided=int(onesided), inverse=int(self.inverse))
        else:
            y = b.op("DFT", x.name, axis=2, onesided=int(onesided), inverse=int(self.inverse))
        bins = f // 2 + 1 if onesided else f
        return b.value(x, b.op("Add", y, b.scalar(0.3)), (1, -1, bins, 2), layout="NSFC")

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Transform:
        return cls(draw(st.booleans()), draw(st.booleans()))
