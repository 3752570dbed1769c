"""Elementwise ops: activations, constants added and multiplied, the rest of the zoo."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from onnx import helper

from nets import forms
from nets.base import Draw, Invalid, Layer, Value, layer
from nets.builder import FLOAT, Builder
from nets.layout import arrange

# name -> the first opset that has it
ACTIVATIONS = {
    "Relu": 6, "Sigmoid": 6, "Tanh": 6, "LeakyRelu": 6, "Elu": 6, "Selu": 6, "HardSigmoid": 6, "HardSwish": 14,
    "Softplus": 1, "Softsign": 1, "ThresholdedRelu": 10, "Celu": 12, "Mish": 18, "Gelu": 20, "Abs": 6, "Neg": 6,
    "Erf": 9, "Sin": 7, "Cos": 7, "Atan": 7, "Identity": 1, "Shrink": 9, "Asinh": 9,
}  # fmt: skip


@layer
@dataclass(frozen=True)
class Act(Layer):
    """An activation, preceded by a bias so that f(0) never stands in for nothing."""

    kind: str
    bias: bool = True

    weight = 4

    def apply(self, b: Builder, x: Value) -> Value:
        if ACTIVATIONS[self.kind] > b.opset:
            raise Invalid("comes later")
        entry = b.op("Add", x.name, b.scalar(0.3)) if self.bias else x.name
        attributes = {"alpha": 0.2} if self.kind == "ThresholdedRelu" else {}
        return b.value(x, b.op(self.kind, entry, **attributes))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Act:
        return cls(draw(st.sampled_from(list(ACTIVATIONS))), draw(st.booleans()))


@layer
@dataclass(frozen=True)
class Prelu(Layer):
    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCS")
        return b.value(x, b.op("PRelu", x.name, b.bias(x.size("C"), 1)))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Prelu:
        return cls()


@layer
@dataclass(frozen=True)
class Affine(Layer):
    """A constant added, multiplied and the like, of a shape that broadcasts; on either side."""

    kind: str = "Add"
    swap: bool = False
    scalar: bool = False

    weight = 3

    def apply(self, b: Builder, x: Value) -> Value:
        shape = [1 if d == -1 else d for d in x.dims]
        if b.style.random() < 0.5:
            while shape and shape[0] == 1:
                shape.pop(0)
        c = b.scalar(0.7) if self.scalar else b.bias(*shape)
        if self.kind == "Div" and self.swap:
            raise Invalid("would divide by the signal")
        if self.kind == "Pow":
            return b.value(x, b.op("Pow", b.op("Abs", x.name), b.scalar(1.5)))
        inputs = (c, x.name) if self.swap else (x.name, c)
        return b.value(x, b.op(self.kind, *inputs))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Affine:
        kind = draw(st.sampled_from(["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"]))
        return cls(kind, draw(st.booleans()), draw(st.booleans()))


@layer
@dataclass(frozen=True)
class Glu(Layer):
    """Split in two over channels, one half gates the other."""

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCS")
        c = x.size("C")
        if c % 2:
            raise Invalid("odd")
        a, gate = forms.split(b, x.name, 1, [c // 2, c // 2])
        return b.value(x, b.op("Mul", a, b.op("Sigmoid", gate)), (1, c // 2, -1))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Glu:
        return cls()


MISC = (
    "clip",
    "relu6",
    "where",
    "cast",
    "compare",
    "logic",
    "dropout",
    "floor",
    "mod",
    "sum",
    "isnan",
    "swish",
    "nonneg",
)


@layer
@dataclass(frozen=True)
class Misc(Layer):
    """Small patterns: clips, Where by a comparison, casts to and fro, Dropout at inference and the like."""

    kind: str

    hides = True
    weight = 3

    def apply(self, b: Builder, x: Value) -> Value:
        return b.value(x, getattr(self, f"_{self.kind}")(b, x.name))

    def _clip(self, b: Builder, x: str) -> str:
        return forms.clip(b, x, -0.9, 1.1)

    def _relu6(self, b: Builder, x: str) -> str:
        return b.op("Div", forms.clip(b, b.op("Add", x, b.scalar(3.0)), 0.0, 6.0), b.scalar(6.0))

    def _where(self, b: Builder, x: str) -> str:
        return b.op("Where", b.op("Greater", x, b.scalar(0.2)), x, b.op("Mul", x, b.scalar(-0.5)))

    def _cast(self, b: Builder, x: str) -> str:
        return b.op("Cast", b.op("Cast", x, to=11), to=1)  # by way of double

    def _compare(self, b: Builder, x: str) -> str:
        return b.op("Sub", x, b.op("Cast", b.op("LessOrEqual" if b.opset >= 12 else "Less", x, b.scalar(0.1)), to=1))

    def _logic(self, b: Builder, x: str) -> str:
        low, high = b.op("Less", x, b.scalar(-0.5)), b.op("Greater", x, b.scalar(0.5))
        return b.op("Where", b.op("Not", b.op("Or", low, high)), b.op("Mul", x, b.scalar(2.0)), x)

    def _dropout(self, b: Builder, x: str) -> str:
        return b.op("Dropout", x)

    def _floor(self, b: Builder, x: str) -> str:
        kind = str(b.style.choice(["Floor", "Ceil", "Round", "Sign"]))
        return b.op("Add", b.op("Mul", b.op(kind, x), b.scalar(0.25)), x)

    def _mod(self, b: Builder, x: str) -> str:
        return b.op("Mod", x, b.scalar(1.5), fmod=1)

    def _sum(self, b: Builder, x: str) -> str:
        return b.op(str(b.style.choice(["Sum", "Mean", "Max"])), x, b.scalar(-0.2), b.op("Tanh", x))

    def _isnan(self, b: Builder, x: str) -> str:
        return b.op("Where", b.op("IsNaN", x), b.scalar(0.0), x)

    def _swish(self, b: Builder, x: str) -> str:
        return b.op("Mul", x, b.op("Sigmoid", x))

    def _nonneg(self, b: Builder, x: str) -> str:
        return b.op("Log", b.op("Add", b.op("Exp", b.op("Tanh", x)), b.scalar(0.5)))

    def _if(self, b: Builder, x: str) -> str:
        """As exporters write an optional step: a condition that is known, branches that see the outer value."""
        p = b.fresh("branch")
        steps = [helper.make_node("Tanh", [x], [f"{p}_t"], name=f"{p}_Tanh")]
        other = [helper.make_node("Neg", [x], [f"{p}_n"], name=f"{p}_Neg")]
        result = {name: helper.make_tensor_value_info(name, FLOAT, None) for name in (f"{p}_t", f"{p}_n")}
        return b.op(
            "If", b.const(True),
            then_branch=helper.make_graph(steps, f"{p}_then", [], [result[f"{p}_t"]]),
            else_branch=helper.make_graph(other, f"{p}_else", [], [result[f"{p}_n"]]),
        )  # fmt: skip

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Misc:
        return cls(draw(st.sampled_from(MISC)))
