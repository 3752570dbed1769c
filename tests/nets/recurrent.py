"""Recurrences along time, along another axis with time as the batch, running sums and Scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from onnx import helper

from nets import forms
from nets.base import Draw, Invalid, Layer, Value, layer
from nets.builder import FLOAT, Builder
from nets.layout import arrange

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
H0 = ("none", "none", "const", "zeros", "input")


def weights(b: Builder, kind: str, directions: int, inputs: int, hidden: int) -> list[str]:
    """W, R and B of a recurrence."""
    g = GATES[kind]
    w = b.weight(directions, g * hidden, inputs, fan=inputs)
    return [w, b.weight(directions, g * hidden, hidden, fan=2 * hidden), b.bias(directions, 2 * g * hidden)]


@layer
@dataclass(frozen=True)
class Rnn(Layer):
    """GRU, LSTM or RNN forward in time.

    `h0` is where the initial states come from: nowhere, constants, zeros made from a shape, or run-time inputs.
    `last`: the last state is an output of the model too.
    """

    kind: str
    hidden: int = 4
    lbr: int = 0
    layout: int = 0
    h0: str = "none"
    peepholes: bool = False
    clip: float = 0.0
    activations: tuple[str, ...] = ()
    last: bool = False

    weight = 6

    @property
    def reference(self) -> bool:  # type: ignore[override]
        """onnx.reference ignores both attributes."""
        return not self.clip and not self.activations

    @property
    def hides(self) -> bool:  # type: ignore[override]
        """Nothing that depends on a run-time state is known ahead: such a stream waits for its first frame."""
        return self.h0 == "input"

    def apply(self, b: Builder, x: Value) -> Value:
        if self.layout and b.opset < 14:
            raise Invalid("batch-first comes later")
        batch_first = self.layout and not b.twin
        x = arrange(b, x, "NSF" if self.layout else "SNF")
        entry = x.name if batch_first or not self.layout else b.op("Transpose", x.name, perm=(1, 0, 2))
        inputs = [entry, *weights(b, self.kind, 1, x.size("F"), self.hidden), ""]
        states = 2 if self.kind == "LSTM" else 1
        inputs += [self._initial(b, x, i) for i in range(states)]
        if self.kind == "LSTM" and self.peepholes:
            inputs.append(b.weight(1, 3 * self.hidden))
        while not inputs[-1]:
            inputs.pop()
        attributes: dict[str, Any] = {"hidden_size": self.hidden}
        if self.kind == "GRU":
            attributes["linear_before_reset"] = self.lbr
        if self.clip:
            attributes["clip"] = self.clip
        if self.activations:
            attributes["activations"] = self.activations
        if batch_first:
            attributes["layout"] = 1
        outputs = b.ops(self.kind, inputs, 1 + states if self.last else 1, **attributes)
        if self.last:
            b.lasts += outputs[1:]
        y = outputs[0]
        if self.layout and b.twin:
            y = b.op("Transpose", y, perm=(2, 0, 1, 3))
        dims = (1, -1, self.hidden) if self.layout else (-1, 1, self.hidden)
        return b.value(x, forms.squeeze(b, y, 2 if self.layout else 1), dims)

    def _initial(self, b: Builder, x: Value, which: int) -> str:
        """One initial state, [1, 1, hidden]."""
        shape = (1, 1, self.hidden)
        if self.h0 == "const":
            return b.weight(*shape)
        if self.h0 == "input":
            name = f"state{len(b.sides)}"
            b.sides[name] = shape
            return name
        if self.h0 == "zeros":
            batch = forms.dim1(b, x.name, x.layout.index("N"))
            zeros = b.op("Concat", b.ints(1), batch, b.ints(self.hidden), axis=0)
            if which:
                return b.op("Expand", b.const(np.zeros((1, 1, 1), np.float32)), zeros)
            return b.op("ConstantOfShape", zeros)
        return ""

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Rnn:
        kind = draw(st.sampled_from(["GRU", "GRU", "LSTM", "RNN"]))
        tables = {"GRU": ("HardSigmoid", "Tanh"), "LSTM": ("HardSigmoid", "Softsign", "Tanh"), "RNN": ("Softsign",)}
        activations = draw(st.sampled_from([(), (), tables[kind]]))
        return cls(
            kind, draw(st.integers(1, 5)), draw(st.integers(0, 1)) if kind == "GRU" else 0,
            draw(st.sampled_from([0, 0, 1])),
            draw(st.sampled_from(H0)), kind == "LSTM" and draw(st.booleans()), draw(st.sampled_from([0.0, 0.0, 0.7])),
            activations, draw(st.sampled_from([False, False, False, True])),
        )  # fmt: skip


@layer
@dataclass(frozen=True)
class Across(Layer):
    """A recurrence over another axis, any direction, time as the batch."""

    kind: str
    hidden: int = 3
    direction: str = "forward"
    h0: str = "none"  # none, const, zeros
    channels: int = 1

    weight = 3

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "FSC", self.channels)
        directions = 2 if self.direction == "bidirectional" else 1
        inputs = [x.name, *weights(b, self.kind, directions, x.size("C"), self.hidden)]
        if self.h0 != "none":
            inputs += ["", *(self._initial(b, x, directions) for _ in range(2 if self.kind == "LSTM" else 1))]
        y = b.op(self.kind, *inputs, hidden_size=self.hidden, direction=self.direction)  # [F, directions, S, hidden]
        wide = b.value(
            x, b.op("Transpose", y, perm=(0, 2, 1, 3)), (x.size("F"), -1, directions, self.hidden), layout="?S?F"
        )
        dims = (x.size("F"), -1, directions * self.hidden)
        return b.value(x, forms.reshape(b, wide, dims), dims)

    def _initial(self, b: Builder, x: Value, directions: int) -> str:
        """[directions, S, hidden], made from the shape, as it must be."""
        shape = b.op("Concat", b.ints(directions), forms.dim1(b, x.name, 1), b.ints(self.hidden), axis=0)
        if self.h0 == "zeros":
            return b.op("ConstantOfShape", shape)
        return b.op("Expand", b.weight(directions, 1, self.hidden), shape)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Across:
        direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
        channels = draw(st.sampled_from([c for c in (1, 2, 3) if x.features % c == 0]))
        h0 = draw(st.sampled_from(["none", "const", "zeros"]))
        return cls(draw(st.sampled_from(list(GATES))), draw(st.integers(1, 3)), direction, h0, channels)


@layer
@dataclass(frozen=True)
class CumSum(Layer):
    """Running sum of a small share of the signal, inclusive or exclusive."""

    exclusive: bool = False

    def apply(self, b: Builder, x: Value) -> Value:
        small = b.op("Mul", x.name, b.scalar(0.05))
        axis = b.const(x.axis - len(x.dims) if b.style.random() < 0.5 else x.axis, np.int64)
        return b.value(x, b.op("CumSum", small, axis, exclusive=int(self.exclusive)))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> CumSum:
        return cls(draw(st.booleans()))


@layer
@dataclass(frozen=True)
class Scan(Layer):
    """A Scan along time whose body keeps a decaying sum: h = decay * h + x, y = tanh(h) + x."""

    decay: float = 0.7

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "SF")
        f = x.size("F")
        p = b.fresh("scan")
        typed = [helper.make_tensor_value_info(f"{p}_{n}", FLOAT, [f]) for n in ("h", "x", "h2", "y")]
        body = helper.make_graph(
            [
                helper.make_node("Mul", [f"{p}_h", f"{p}_decay"], [f"{p}_kept"], name=f"{p}_Mul"),
                helper.make_node("Add", [f"{p}_kept", f"{p}_x"], [f"{p}_h2"], name=f"{p}_Add"),
                helper.make_node("Tanh", [f"{p}_h2"], [f"{p}_t"], name=f"{p}_Tanh"),
                helper.make_node("Add", [f"{p}_t", f"{p}_x"], [f"{p}_y"], name=f"{p}_Add2"),
            ],
            f"{p}_body", typed[:2], typed[2:],
            [helper.make_tensor(f"{p}_decay", FLOAT, [], [self.decay])],
        )  # fmt: skip
        start = b.bias(f)
        outputs = b.ops("Scan", [start, x.name], 2, body=body, num_scan_inputs=1)
        return b.value(x, outputs[1])

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Scan:
        return cls(draw(st.sampled_from([0.5, 0.9])))
