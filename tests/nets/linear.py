"""Products with constants."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from nets.base import Draw, Invalid, Layer, Value, layer
from nets.builder import Builder
from nets.layout import arrange


@layer
@dataclass(frozen=True)
class MatMul(Layer):
    """MatMul with a constant on the right of [1, S, F], or on the left of [1, C, S], then a bias."""

    out: int = 4
    left: bool = False

    weight = 4

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCS" if self.left else "NSF")
        n = x.features
        if self.left:
            y = b.op("Add", b.op("MatMul", b.weight(self.out, n, fan=n), x.name), b.bias(self.out, 1))
            return b.value(x, y, (1, self.out, -1))
        y = b.op("Add", b.bias(self.out), b.op("MatMul", x.name, b.weight(n, self.out, fan=n)))
        return b.value(x, y, (1, -1, self.out))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> MatMul:
        return cls(draw(st.integers(1, 6)), draw(st.booleans()))


@layer
@dataclass(frozen=True)
class Gemm(Layer):
    """Gemm on [S, F], or with transA on [C, S]."""

    out: int = 4
    trans_a: bool = False
    trans_b: bool = True

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "CS" if self.trans_a else "SF")
        n = x.features
        w = b.weight(self.out, n, fan=n) if self.trans_b else b.weight(n, self.out, fan=n)
        y = b.op("Gemm", x.name, w, b.bias(self.out), transA=int(self.trans_a), transB=int(self.trans_b), alpha=0.8)
        return b.value(x, y, (-1, self.out), layout="SF")

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Gemm:
        return cls(draw(st.integers(1, 5)), draw(st.booleans()), draw(st.booleans()))


EQUATIONS = {
    "nsf,fg->nsg": ("NSF", "f", "NSF"),
    "ncs,cd->nds": ("NCS", "c", "NCS"),
    "ncsf,cfg->ncsg": ("NCSF", "cf", "NCSF"),  # a product of its own for each channel
    "bcsf, dc -> bdsf": ("NCSF", "c", "NCSF"),
    "sf,gf->sg": ("SF", "f", "SF"),
}


@layer
@dataclass(frozen=True)
class Einsum(Layer):
    """Einsum of a stream and a constant."""

    equation: str
    out: int = 3
    channels: int = 1

    def apply(self, b: Builder, x: Value) -> Value:
        if b.opset < 12:
            raise Invalid("Einsum comes later")
        have, _, give = EQUATIONS[self.equation]
        x = arrange(b, x, have, self.channels)
        first, rest = self.equation.replace(" ", "").split(",")
        second, result = rest.split("->")
        sizes = dict(zip(first, x.dims, strict=True))
        new = next(letter for letter in second if letter not in sizes)
        sizes[new] = self.out
        shape = [sizes[letter] for letter in second]
        y = b.op("Einsum", x.name, b.weight(*shape, fan=3), equation=self.equation)
        dims = [sizes[letter] for letter in result]
        return b.value(x, b.op("Add", y, b.scalar(0.4)), dims, layout=give)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Einsum:
        channels = draw(st.sampled_from([c for c in (1, 2) if x.features % c == 0]))
        return cls(draw(st.sampled_from(list(EQUATIONS))), draw(st.integers(1, 4)), channels)
