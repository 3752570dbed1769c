"""Work inside each frame with time as the batch: convolutions and attention over bands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from nets.base import Draw, Invalid, Layer, Value, layer
from nets.builder import Builder
from nets.layout import arrange


@layer
@dataclass(frozen=True)
class BandConv(Layer):
    """Conv, ConvTranspose or pooling over bands of [S, C, F]."""

    kind: str = "Conv"
    k: int = 3
    s: int = 1
    out: int = 2
    channels: int = 1

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "SCF", self.channels)
        c, f, k, s = x.size("C"), x.size("F"), self.k, self.s
        if self.kind == "ConvTranspose":
            w = b.weight(c, self.out, k, fan=c * k)
            y = b.op("ConvTranspose", x.name, w, b.bias(self.out), strides=[s], kernel_shape=[k])
            return b.value(x, y, (-1, self.out, (f - 1) * s + k))
        if f < k:
            raise Invalid("bands")
        bands = (f - k) // s + 1
        if self.kind == "Conv":
            w = b.weight(self.out, c, k, fan=c * k)
            return b.value(x, b.op("Conv", x.name, w, b.bias(self.out), strides=[s]), (-1, self.out, bands))
        if self.kind == "GlobalAveragePool":
            return b.value(x, b.op(self.kind, x.name), (-1, c, 1))
        return b.value(x, b.op(self.kind, x.name, kernel_shape=[k], strides=[s]), (-1, c, bands))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> BandConv:
        kind = draw(st.sampled_from(["Conv", "Conv", "ConvTranspose", "AveragePool", "GlobalAveragePool"]))
        channels = draw(st.sampled_from([c for c in (1, 2) if x.features % c == 0]))
        return cls(kind, draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 3)), channels)


@layer
@dataclass(frozen=True)
class BandAttention(Layer):
    """Attention of the bands of a frame to each other: products of two streams, time the batch.

    `batched`: on [1, S, F, C] instead of [S, F, C].
    """

    channels: int = 2
    batched: bool = False

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NSFC" if self.batched else "SFC", self.channels)
        c = x.size("C")
        q, k, v = (b.op("MatMul", x.name, b.weight(c, c, fan=c)) for _ in range(3))
        rank = len(x.dims)
        swapped = b.op("Transpose", k, perm=[*range(rank - 2), rank - 1, rank - 2])
        scores = b.op("Mul", b.op("MatMul", q, swapped), b.scalar(1 / np.sqrt(c)))
        y = b.op("MatMul", b.op("Softmax", scores, axis=-1 if b.opset >= 13 else rank - 1), v)
        return b.value(x, b.op("Add", x.name, y))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> BandAttention:
        return cls(draw(st.sampled_from([c for c in (1, 2, 3) if x.features % c == 0])), draw(st.booleans()))


@layer
@dataclass(frozen=True)
class Outer(Layer):
    """Outer product of a frame with part of itself, by Einsum."""

    out: int = 2

    def apply(self, b: Builder, x: Value) -> Value:
        if b.opset < 12:
            raise Invalid("Einsum comes later")
        x = arrange(b, x, "NSF")
        f = x.size("F")
        small = b.op("Tanh", b.op("MatMul", x.name, b.weight(f, self.out, fan=f)))
        y = b.op("Einsum", x.name, small, equation="bsf,bsg->bsfg")
        return b.value(x, b.op("Add", y, b.bias(f, self.out)), (1, -1, f, self.out), layout="NSCF")

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Outer:
        return cls(draw(st.integers(1, 3)))
