"""Normalisations, softmax, reductions and selections over axes other than time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from nets import forms
from nets.base import Draw, Invalid, Layer, Value, layer
from nets.builder import Builder
from nets.layout import arrange

NORMS = ("layer", "decomposed", "batch", "rms", "lp", "lrn", "mvn", "instance")


@layer
@dataclass(frozen=True)
class Norm(Layer):
    """Normalises each frame: over features, or (batch) by constants, or (instance) per frame with time as the batch."""

    kind: str

    weight = 4

    def apply(self, b: Builder, x: Value) -> Value:
        return getattr(self, f"_{self.kind}")(b, x)

    def _layer(self, b: Builder, x: Value) -> Value:
        if b.opset < 17:
            raise Invalid("LayerNormalization comes later")
        x = _several(arrange(b, x, "NSF"))
        f = x.size("F")
        return b.value(x, b.op("LayerNormalization", x.name, b.bias(f), b.bias(f), epsilon=0.1))

    def _decomposed(self, b: Builder, x: Value) -> Value:
        x = _several(arrange(b, x, "NSF"))
        f = x.size("F")
        centred = b.op("Sub", x.name, forms.reduce(b, "ReduceMean", x.name, [-1]))
        power = forms.reduce(b, "ReduceMean", b.op("Pow", centred, b.scalar(2.0)), [-1])
        y = b.op("Div", centred, b.op("Sqrt", b.op("Add", power, b.scalar(0.1))))
        return b.value(x, b.op("Add", b.op("Mul", y, b.bias(f)), b.bias(f)))

    def _batch(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCS")
        c = x.size("C")
        variance = b.const(b.rng.uniform(0.5, 2.0, c), np.float32)
        return b.value(x, b.op("BatchNormalization", x.name, b.bias(c), b.bias(c), b.bias(c), variance))

    def _rms(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCS")
        power = forms.reduce(b, "ReduceMean", b.op("Mul", x.name, x.name), [1])
        y = b.op("Div", x.name, b.op("Sqrt", b.op("Add", power, b.scalar(0.1))))
        return b.value(x, b.op("Mul", y, b.bias(x.size("C"), 1)))

    def _lp(self, b: Builder, x: Value) -> Value:
        x = _several(arrange(b, x, "NCS"))
        shifted = b.op("Add", x.name, b.bias(x.size("C"), 1))
        return b.value(x, b.op("LpNormalization", shifted, axis=1, p=2))

    def _lrn(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCSF", x.features)
        return b.value(x, b.op("LRN", x.name, size=3, alpha=0.3, beta=0.75, bias=1.0))

    def _mvn(self, b: Builder, x: Value) -> Value:
        if b.opset < 13:
            raise Invalid("ONNX Runtime has it from opset 13 on")
        x = _several(arrange(b, x, "NCSF", x.features))
        # Equal features have no variance but rounding errors, which ONNX Runtime's sums of squares make much of.
        count = x.size("C") * x.size("F")
        steps = 3 * (np.arange(count) - (count - 1) / 2).reshape(x.size("C"), 1, x.size("F"))
        spread = b.op("Add", x.name, b.const(steps, np.float32))
        return b.value(x, b.op("MeanVarianceNormalization", spread, axes=[1, 3]))

    def _instance(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "SCF", 2 if x.features % 2 == 0 else 1)
        if x.size("F") < 3:
            raise Invalid("too few to normalise")
        c = x.size("C")
        return b.value(x, b.op("InstanceNormalization", x.name, b.bias(c), b.bias(c), epsilon=0.1))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Norm:
        return cls(draw(st.sampled_from(NORMS)))


def _several(x: Value) -> Value:
    """One feature alone, normalised, is a constant: nothing of the signal would be left."""
    if x.features < 3:
        raise Invalid("too few to normalise")
    return x


@layer
@dataclass(frozen=True)
class Softmax(Layer):
    """Softmax or LogSoftmax over features. Below opset 13 the axis starts a flattened tail, so features come last."""

    log: bool = False
    middle: bool = False

    def apply(self, b: Builder, x: Value) -> Value:
        if self.middle and b.opset < 13:
            raise Invalid("would run over time")
        x = _several(arrange(b, x, "NCS" if self.middle else "NSF"))
        axis = 1 if self.middle else int(b.style.choice([-1, 2]))
        y = b.op("LogSoftmax" if self.log else "Softmax", x.name, axis=axis)
        return b.value(x, b.op("Mul", y, b.scalar(2.0)))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Softmax:
        return cls(draw(st.booleans()), draw(st.booleans()))


REDUCTIONS = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip


@layer
@dataclass(frozen=True)
class Reduce(Layer):
    """A reduction over one feature axis of [1, C, S, F]."""

    kind: str
    letter: str = "F"
    keepdims: bool = True
    channels: int = 1

    hides = True
    weight = 2

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCSF", self.channels)
        axis = x.layout.index(self.letter)
        y = forms.reduce(b, self.kind, x.name, [axis - 4 if b.style.random() < 0.5 else axis], int(self.keepdims))
        dims, layout = list(x.dims), x.layout
        if self.keepdims:
            dims[axis] = 1
        else:
            del dims[axis]
            layout = layout.replace(self.letter, "")
        return b.value(x, y, dims, layout=layout)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Reduce:
        channels = draw(st.sampled_from([c for c in (1, 2, 4) if x.features % c == 0]))
        return cls(draw(st.sampled_from(REDUCTIONS)), draw(st.sampled_from("CF")), draw(st.booleans()), channels)


@layer
@dataclass(frozen=True)
class Best(Layer):
    """TopK values, TopK indices, ArgMax, ArgMin or Hardmax over features."""

    kind: str
    k: int = 2

    hides = True
    weight = 1

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NSF")
        f = x.size("F")
        if self.kind == "Hardmax":
            return b.value(x, b.op("Hardmax", x.name, axis=-1))
        if self.kind.startswith("Arg"):
            y = b.op(self.kind, x.name, axis=2, keepdims=1)
            return b.value(x, b.op("Cast", y, to=1), (1, -1, 1))
        if self.k > f:
            raise Invalid("too few features")
        values, indices = b.ops("TopK", [x.name, b.ints(self.k)], 2, axis=-1)
        y = values if self.kind == "TopK" else b.op("Cast", indices, to=1)
        return b.value(x, y, (1, -1, self.k))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Best:
        kind = draw(st.sampled_from(["TopK", "TopK", "TopKIndices", "ArgMax", "ArgMin", "Hardmax"]))
        return cls(kind, draw(st.integers(1, 3)))
