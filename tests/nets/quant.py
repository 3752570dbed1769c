"""Quantisation with static scales: QDQ pairs, integer products and convolutions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from nets.base import Draw, Invalid, Layer, Value, layer
from nets.builder import Builder
from nets.conv import draw_pads, windows
from nets.layout import arrange


@layer
@dataclass(frozen=True)
class Quant(Layer):
    """QuantizeLinear and back, per tensor or per channel."""

    signed: bool = False
    per_channel: bool = False

    hides = True

    def apply(self, b: Builder, x: Value) -> Value:
        kind, zero = (np.int8, 3) if self.signed else (np.uint8, 120)
        if self.per_channel and b.opset < 13:
            raise Invalid("per channel comes later")
        x = arrange(b, x, "NCS")
        if self.per_channel:
            c = x.size("C")
            parameters = [b.const(b.rng.uniform(0.02, 0.05, c), np.float32), b.const(np.full(c, zero), kind)]
            attributes = {"axis": 1}
        else:
            parameters, attributes = [odd_scale(b, 0.03), b.const(zero, kind)], {}
        q = b.op("QuantizeLinear", x.name, *parameters, **attributes)
        return b.value(x, b.op("DequantizeLinear", q, *parameters, **attributes))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Quant:
        return cls(draw(st.booleans()), draw(st.booleans()))


def odd_scale(b: Builder, size: float) -> str:
    """A scale that is no simple multiple of another: half-way between steps, rounding is a matter of luck."""
    return b.scalar(size * b.rng.uniform(0.9, 1.1))


def quantize(b: Builder, x: str) -> tuple[str, str, str]:
    scale, zero = odd_scale(b, 0.04), b.const(110, np.uint8)
    return b.op("QuantizeLinear", x, scale, zero), scale, zero


@layer
@dataclass(frozen=True)
class QConv(Layer):
    """ConvInteger or QLinearConv on a quantised signal: its padding reads as the zero point."""

    k: int
    s: int = 1
    pads: tuple[int, int] = (0, 0)
    integer: bool = False
    out: int = 3

    hides = True
    reference = False

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCS")
        c = x.size("C")
        step, attributes = windows(b, x, self.k, self.s, 1, self.pads)
        q, scale, zero = quantize(b, x.name)
        w = b.const(b.rng.integers(-60, 60, (self.out, c, self.k)), np.int8)
        attributes |= {"kernel_shape": [self.k], "strides": [self.s]}
        if self.integer:
            w = b.const(b.rng.integers(0, 120, (self.out, c, self.k)), np.uint8)
            y = b.op("ConvInteger", q, w, zero, b.const(60, np.uint8), **attributes)
            y = b.op("Mul", b.op("Cast", y, to=1), b.scalar(0.0006))
        else:
            out_scale, out_zero = odd_scale(b, 0.05), b.const(128, np.uint8)
            bias = b.const(b.rng.integers(200, 900, self.out), np.int32)
            wscale, wzero = odd_scale(b, 0.015), b.const(0, np.int8)
            y = b.op("QLinearConv", q, scale, zero, w, wscale, wzero, out_scale, out_zero, bias, **attributes)
            y = b.op("DequantizeLinear", y, out_scale, out_zero)
        return b.value(x, y, (1, self.out, -1), length=x.length.then(step), rate=x.rate / self.s)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> QConv:
        k = draw(st.integers(1, 4))
        pads = draw_pads(draw, k, 1)
        return cls(k, draw(st.sampled_from([1, 1, 2])), (0, 0) if isinstance(pads, str) else pads, draw(st.booleans()))


@layer
@dataclass(frozen=True)
class IntMatMul(Layer):
    """MatMulInteger with a static scale, or QLinearMatMul."""

    out: int = 3
    qlinear: bool = False

    hides = True

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NSF")
        n = x.features
        q, scale, zero = quantize(b, x.name)
        w, wzero = b.const(b.rng.integers(0, 120, (n, self.out)), np.uint8), b.const(60, np.uint8)
        if self.qlinear:
            out_scale, out_zero = odd_scale(b, 0.05), b.const(128, np.uint8)
            y = b.op("QLinearMatMul", q, scale, zero, w, odd_scale(b, 0.015), wzero, out_scale, out_zero)
            y = b.op("DequantizeLinear", y, out_scale, out_zero)
        else:
            y = b.op("Mul", b.op("Cast", b.op("MatMulInteger", q, w, zero, wzero), to=1), b.scalar(0.0006))
        return b.value(x, b.op("Add", y, b.bias(self.out)), (1, -1, self.out))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> IntMatMul:
        return cls(draw(st.integers(1, 4)), draw(st.booleans()))


@layer
@dataclass(frozen=True)
class QdqConv(Layer):
    """A convolution in QDQ form: float ops between pairs, weights and bias stored as integers."""

    k: int
    pads: tuple[int, int] = (0, 0)
    per_channel: bool = False
    out: int = 3

    hides = True

    def apply(self, b: Builder, x: Value) -> Value:
        if self.per_channel and b.opset < 13:
            raise Invalid("per channel comes later")
        x = arrange(b, x, "NCS")
        c = x.size("C")
        step, attributes = windows(b, x, self.k, 1, 1, self.pads)
        q, scale, zero = quantize(b, x.name)
        entry = b.op("DequantizeLinear", q, scale, zero)
        shape = (self.out,) if self.per_channel else ()
        axis = {"axis": 0} if self.per_channel else {}
        scales = b.const(b.rng.uniform(0.01, 0.02, shape), np.float32)
        w = b.const(b.rng.integers(-60, 60, (self.out, c, self.k)), np.int8)
        w = b.op("DequantizeLinear", w, scales, b.const(np.zeros(shape), np.int8), **axis)
        bias = b.const(b.rng.integers(200, 900, self.out), np.int32)
        bias = b.op("DequantizeLinear", bias, b.const(np.full(shape, 6e-4), np.float32), **axis)
        y = b.op("Conv", entry, w, bias, kernel_shape=[self.k], **attributes)
        out_scale, out_zero = odd_scale(b, 0.05), b.const(128, np.uint8)
        y = b.op("DequantizeLinear", b.op("QuantizeLinear", y, out_scale, out_zero), out_scale, out_zero)
        return b.value(x, y, (1, self.out, -1), length=x.length.then(step))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> QdqConv:
        k = draw(st.integers(1, 3))
        pads = draw_pads(draw, k, 1)
        return cls(k, (0, 0) if isinstance(pads, str) else pads, draw(st.booleans()))
