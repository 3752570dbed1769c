"""Elementwise operators as instructions of a chain (kernels/ops/chain.inc)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import pi, sqrt

import numpy as np

from pulse.graph.ir import Node

Ref = int | float  # an operand: a register, or a number known now


@dataclass(frozen=True)
class Instruction:
    """`op` of registers; registers below the number of inputs are these, instruction i makes register inputs + i."""

    op: str
    args: tuple[int, ...]
    p: float = 0.0
    q: float = 0.0


@dataclass
class Writer:
    """Collects the instructions of one operator; `constant` turns a number into an input register."""

    inputs: int
    constant: Callable[[float], int]
    code: list[Instruction] = field(default_factory=list)

    def __call__(self, op: str, *args: int, p: float = 0.0, q: float = 0.0) -> int:
        self.code.append(Instruction(op, args, p, q))
        return -len(self.code)  # results are told from inputs by their sign until the chain is closed

    def affine(self, x: int, scale: float, shift: float) -> int:
        return x if (scale, shift) == (1.0, 0.0) else self("affine", x, p=scale, q=shift)

    def register(self, x: Ref) -> int:
        return self.constant(x) if isinstance(x, float) else x


Formula = Callable[[Writer, Node, Sequence[Ref]], int]


def _unary(op: str) -> Formula:
    return lambda w, node, x: w(op, w.register(x[0]))


def _add(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a, b = x
    if isinstance(a, float):
        a, b = b, a
    if isinstance(b, float):
        return w.affine(w.register(a), 1.0, b)
    return w("add", w.register(a), b)


def _sub(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a, b = x
    if isinstance(b, float):
        return w.affine(w.register(a), 1.0, -b)
    if isinstance(a, float):
        return w.affine(b, -1.0, a)
    return w("sub", a, b)


def _mul(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a, b = x
    if isinstance(a, float):
        a, b = b, a
    if isinstance(b, float):
        return w.affine(w.register(a), b, 0.0)
    return w("mul", w.register(a), b)


def _div(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a, b = x
    if a == 1.0 and isinstance(a, float) and not isinstance(b, float):
        return w("reciprocal", b)
    return w("div", w.register(a), w.register(b))


def _pow(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a, b = w.register(x[0]), x[1]
    if isinstance(b, float):
        if b == 2.0:
            return w("mul", a, a)
        if b == 3.0:
            return w("mul", w("mul", a, a), a)
        if b == 0.5:
            return w("sqrt", a)
        if b == -1.0:
            return w("reciprocal", a)
        if b == 1.0:
            return w.affine(a, 1.0, 0.0)
    return w("pow", a, w.register(b))


def _fold(op: str) -> Formula:
    def run(w: Writer, node: Node, x: Sequence[Ref]) -> int:
        made = w.register(x[0])
        for value in x[1:]:
            made = w(op, made, w.register(value))
        return made

    return run


def _mean(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    return w.affine(_fold("add")(w, node, x), 1 / len(x), 0.0)


def _compare(op: str, swap: bool = False, negate: bool = False) -> Formula:
    def run(w: Writer, node: Node, x: Sequence[Ref]) -> int:
        a, b = (w.register(v) for v in (x[::-1] if swap else x))
        made = w(op, a, b)
        return w.affine(made, -1.0, 1.0) if negate else made

    return run


def _clip(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    low = x[1] if len(x) > 1 and x[1] is not None else float(node.attrs.get("min", -np.inf))
    high = x[2] if len(x) > 2 and x[2] is not None else float(node.attrs.get("max", np.inf))
    if isinstance(low, float) and isinstance(high, float):
        return w("clip", w.register(x[0]), p=low, q=high)
    return w("min", w("max", w.register(x[0]), w.register(low)), w.register(high))


def _softplus(w: Writer, x: int) -> int:
    rest = w("log", w.affine(w("exp", w("neg", w("abs", x))), 1.0, 1.0))
    return w("add", w("relu", x), rest)


def _elu(w: Writer, x: int, alpha: float, gamma: float = 1.0) -> int:
    below = w.affine(w("exp", w("clip", x, p=-np.inf, q=0.0)), alpha * gamma, -alpha * gamma)
    return w("where", w("less", w.constant(0.0), x), w.affine(x, gamma, 0.0), below)


def _celu(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    alpha = float(node.attrs.get("alpha", 1.0))
    a = w.register(x[0])
    below = w.affine(w("exp", w("clip", w.affine(a, 1 / alpha, 0.0), p=-np.inf, q=0.0)), alpha, -alpha)
    return w("where", w("less", w.constant(0.0), a), a, below)


def _hard_sigmoid(w: Writer, x: int, alpha: float, beta: float) -> int:
    return w("clip", w.affine(x, alpha, beta), p=0.0, q=1.0)


def _gelu(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a = w.register(x[0])
    if node.attrs.get("approximate", "none") == "tanh":
        cube = w("mul", w("mul", a, a), a)
        inner = w.affine(w("add", a, w.affine(cube, 0.044715, 0.0)), sqrt(2 / pi), 0.0)
        return w("mul", a, w.affine(w("tanh", inner), 0.5, 0.5))
    return w("mul", a, w.affine(w("erf", w.affine(a, sqrt(0.5), 0.0)), 0.5, 0.5))


def _where(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    return w("where", *(w.register(v) for v in x))


def _prelu(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    if isinstance(x[1], float):
        return w("leaky", w.register(x[0]), p=x[1])
    return w("prelu", w.register(x[0]), x[1])


def _shrink(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a, bias, lambd = w.register(x[0]), float(node.attrs.get("bias", 0.0)), float(node.attrs.get("lambd", 0.5))
    zero = w.constant(0.0)
    below = w("where", w("less", a, w.constant(-lambd)), w.affine(a, 1.0, bias), zero)
    return w("where", w("less", w.constant(lambd), a), w.affine(a, 1.0, -bias), below)


def _selu(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    alpha, gamma = (
        node.attrs.get("alpha", 1.67326319217681884765625),
        node.attrs.get("gamma", 1.05070102214813232421875),
    )
    return _elu(w, w.register(x[0]), float(alpha), float(gamma))


def _mod(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a, b = (w.register(v) for v in x)
    if node.attrs.get("fmod"):
        return w("fmod", a, b)
    return w("sub", a, w("mul", b, w("floor", w("div", a, b))))


def _softsign(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a = w.register(x[0])
    return w("div", a, w.affine(w("abs", a), 1.0, 1.0))


def _mish(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a = w.register(x[0])
    return w("mul", a, w("tanh", _softplus(w, a)))


def _hard_swish(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a = w.register(x[0])
    return w("mul", a, _hard_sigmoid(w, a, 1 / 6, 0.5))


def _swish(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a = w.register(x[0])
    return w("mul", a, w("sigmoid", w.affine(a, float(node.attrs.get("alpha", 1.0)), 0.0)))


def _threshold(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a = w.register(x[0])
    alpha = w.constant(float(node.attrs.get("alpha", 1.0)))
    return w("where", w("less", alpha, a), a, w.constant(0.0))


def _of(function: Callable[..., int], **defaults: float) -> Formula:
    def run(w: Writer, node: Node, x: Sequence[Ref]) -> int:
        return function(w, w.register(x[0]), *(float(node.attrs.get(k, v)) for k, v in defaults.items()))

    return run


def _truth(w: Writer, x: int) -> int:
    return w.affine(w("equal", x, w.constant(0.0)), -1.0, 1.0)


def _cast(w: Writer, node: Node, x: Sequence[Ref]) -> int:
    a = w.register(x[0])
    return _truth(w, a) if node.attrs["to"] == 9 else w.affine(a, 1.0, 0.0)


FORMULAS: dict[str, Formula] = {
    **{
        op: _unary(op.lower())
        for op in ("Neg", "Abs", "Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Reciprocal", "Erf")
    },
    **{op: _unary(op.lower()) for op in ("Floor", "Ceil", "Round", "Sign", "Sin", "Cos", "Tan", "Atan", "IsNaN")},
    **{op: _unary(op.lower()) for op in ("Asin", "Acos", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh")},
    "Add": _add,
    "Sub": _sub,
    "Mul": _mul,
    "Div": _div,
    "Pow": _pow,
    "Sum": _fold("add"),
    "Min": _fold("min"),
    "Max": _fold("max"),
    "Mean": _mean,
    "And": _fold("mul"),
    "Or": _fold("max"),
    "Xor": _compare("equal", negate=True),
    "Not": lambda w, node, x: w.affine(w.register(x[0]), -1.0, 1.0),
    "Less": _compare("less"),
    "LessOrEqual": _compare("less_equal"),
    "Greater": _compare("less", swap=True),
    "GreaterOrEqual": _compare("less_equal", swap=True),
    "Equal": _compare("equal"),
    "Where": _where,
    "Clip": _clip,
    "LeakyRelu": lambda w, node, x: w("leaky", w.register(x[0]), p=float(node.attrs.get("alpha", 0.01))),
    "PRelu": _prelu,
    "Elu": _of(_elu, alpha=1.0),
    "Selu": _selu,
    "Celu": _celu,
    "ThresholdedRelu": _threshold,
    "HardSigmoid": _of(_hard_sigmoid, alpha=0.2, beta=0.5),
    "HardSwish": _hard_swish,
    "Swish": _swish,
    "Softplus": _of(_softplus),
    "Softsign": _softsign,
    "Mish": _mish,
    "Gelu": _gelu,
    "Shrink": _shrink,
    "Mod": _mod,
    "Cast": _cast,
    "Identity": lambda w, node, x: w.affine(w.register(x[0]), 1.0, 0.0),
}
