"""Integer expressions in the signal length `S`: affine, with floor divisions and clamps at zero.

An expression is a sum of rational multiples of atoms plus a rational. Atoms are `S`, `floor(e)` and `max(0, e)`.
Expressions print as Python (`2*((S+1)//2)+3`), and `Expr.parse` reads that back.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor, lcm

import numpy as np

from pulse.graph.limits import frames, grain

# Lengths at which inequalities are tried: every small one, then far ones that show the slope.
_SAMPLES = np.concatenate([np.arange(0, 1024), np.arange(4096, 4160), [1 << 20, (1 << 20) + 1, 1 << 34, (1 << 34) + 1]])


class NotAffine(ValueError):
    """A product or quotient of two lengths, or a comparison which depends on the length."""


@dataclass(frozen=True)
class Atom:
    """`S` (kind "S"), `floor(arg)` (kind "floor") or `max(0, arg)` (kind "max")."""

    kind: str
    arg: Expr | None = None

    @cached_property
    def text(self) -> str:
        if self.arg is None:
            return "S"
        if self.kind == "max":
            return f"max(0,{self.arg})"
        scale = self.arg.denominator
        inner = str(self.arg * scale)
        return f"{inner}//{scale}" if inner == "S" else f"({inner})//{scale}"


@dataclass(frozen=True, eq=False)
class Expr:
    """A rational combination of atoms. Hashable; equality is structural after simplification."""

    terms: tuple[tuple[Atom, Fraction], ...]
    const: Fraction

    # -- building ------------------------------------------------------------------------------------------------
    @staticmethod
    def of(value: int | Fraction | Expr) -> Expr:
        return value if isinstance(value, Expr) else Expr((), Fraction(value))

    @staticmethod
    def symbol() -> Expr:
        return Expr(((Atom("S"), Fraction(1)),), Fraction(0))

    @staticmethod
    def _make(terms: dict[Atom, Fraction], const: Fraction) -> Expr:
        kept = sorted(((a, c) for a, c in terms.items() if c), key=lambda t: t[0].text)
        return Expr(tuple(kept), const)

    @staticmethod
    def parse(text: str) -> Expr:
        """Reads what `str` prints. Raises ValueError."""
        return _from_ast(ast.parse(text.strip(), mode="eval").body)

    # -- arithmetic ----------------------------------------------------------------------------------------------
    def __add__(self, other: int | Fraction | Expr) -> Expr:
        other = Expr.of(other)
        terms = dict(self.terms)
        for atom, coefficient in other.terms:
            terms[atom] = terms.get(atom, Fraction(0)) + coefficient
        return Expr._make(terms, self.const + other.const)

    __radd__ = __add__

    def __neg__(self) -> Expr:
        return self * -1

    def __sub__(self, other: int | Fraction | Expr) -> Expr:
        return self + (-Expr.of(other))

    def __rsub__(self, other: int | Fraction | Expr) -> Expr:
        return Expr.of(other) - self

    def __mul__(self, other: int | Fraction | Expr) -> Expr:
        other = Expr.of(other)
        if other.terms and self.terms:
            raise NotAffine(f"({self}) * ({other})")
        if not other.terms:
            factor, base = other.const, self
        else:
            factor, base = self.const, other
        return Expr._make({a: c * factor for a, c in base.terms}, base.const * factor)

    __rmul__ = __mul__

    def __truediv__(self, other: int | Fraction | Expr) -> Expr:
        other = Expr.of(other)
        if other.terms:
            ratio = self.ratio(other)
            if ratio is None:
                raise NotAffine(f"({self}) / ({other})")
            return Expr.of(ratio)
        if not other.const:
            raise NotAffine(f"({self}) / 0")
        return self * (1 / other.const)

    def __rtruediv__(self, other: int | Fraction | Expr) -> Expr:
        return Expr.of(other) / self

    def __floordiv__(self, other: int | Fraction | Expr) -> Expr:
        return (self / other).floor()

    def __rfloordiv__(self, other: int | Fraction | Expr) -> Expr:
        return Expr.of(other) // self

    def __mod__(self, other: int | Fraction | Expr) -> Expr:
        return self - (self // other) * other

    def ratio(self, other: Expr) -> Fraction | None:
        """`self / other` if it is one number for every length, else None."""
        if not other.terms or not self.terms:
            return None
        factor = dict(self.terms).get(other.terms[0][0], Fraction(0)) / other.terms[0][1]
        return factor if self == other * factor else None

    def floor(self) -> Expr:
        """Largest integer not above."""
        whole: dict[Atom, Fraction] = {}
        rest: dict[Atom, Fraction] = {}
        for atom, coefficient in self.terms:
            if not _integral(atom):
                rest[atom] = coefficient
                continue
            n = Fraction(floor(coefficient))
            whole[atom] = n
            if coefficient != n:
                rest[atom] = coefficient - n
        base = Expr._make(whole, Fraction(floor(self.const)))
        inner = Expr._make(rest, self.const - floor(self.const))
        if not inner.terms:
            return base
        if len(inner.terms) == 1:
            (atom, coefficient) = inner.terms[0]
            # floor((floor(x) + n) / k) == floor((x + n) / k)
            if atom.kind == "floor" and coefficient.numerator == 1 and atom.arg is not None:
                n = inner.const * coefficient.denominator
                return base + ((atom.arg + floor(n)) * coefficient).floor()
        return base + Expr(((Atom("floor", inner), Fraction(1)),), Fraction(0))

    def ceil(self) -> Expr:
        return -((-self).floor())

    def clamp(self) -> Expr:
        """`max(0, self)`; simplified away where the sign does not change."""
        values = (self * self.denominator).at(_SAMPLES)
        if (values >= 0).all():
            return self
        if (values <= 0).all():
            return Expr.of(0)
        return Expr(((Atom("max", self), Fraction(1)),), Fraction(0))

    # -- reading -------------------------------------------------------------------------------------------------
    @property
    def constant(self) -> bool:
        return not self.terms

    @property
    def denominator(self) -> int:
        return lcm(self.const.denominator, *(c.denominator for _, c in self.terms))

    @property
    def integral(self) -> bool:
        return self.denominator == 1 and all(_integral(a) for a, _ in self.terms)

    def __int__(self) -> int:
        if self.terms or self.const.denominator != 1:
            raise NotAffine(f"{self} is not one integer")
        return int(self.const)

    __index__ = __int__

    def __float__(self) -> float:
        if self.terms:
            raise NotAffine(f"{self} is not one number")
        return float(self.const)

    @property
    def slope(self) -> Fraction:
        """Growth per source frame, in the long run."""
        total = Fraction(0)
        for atom, coefficient in self.terms:
            if atom.arg is None:
                total += coefficient
            elif atom.kind == "floor":
                total += coefficient * atom.arg.slope
            else:
                total += coefficient * max(atom.arg.slope, Fraction(0))
        return total

    @property
    def period(self) -> int:
        """Remainders of `S` after which floors repeat."""
        out = 1
        for atom, _ in self.terms:
            if atom.arg is not None:
                out = lcm(out, atom.arg.period, atom.arg.denominator if atom.kind == "floor" else 1)
        return out

    def at(self, length: np.ndarray | int) -> np.ndarray:
        """Values at the given lengths, as int64 (the floor where the expression is no integer)."""
        scale = self.denominator
        length = np.asarray(length, dtype=np.int64)
        total = np.full(length.shape, int(self.const * scale), dtype=np.int64)
        for atom, coefficient in self.terms:
            if atom.arg is None:
                value = length
            else:
                value = atom.arg.at(length)
                if atom.kind == "max":
                    value = np.maximum(value, 0)
            total = total + int(coefficient * scale) * value
        return total // scale

    def trials(self) -> np.ndarray:
        """Lengths of signal at which to try what may change with the length: the first, those past every bend, and far
        ones, each over the whole pattern that floors make."""
        span = np.arange(1, max(4096, 2 * self.period + 1))
        return np.concatenate([span, self.bend + span, (1 << 24) + span])

    @property
    def bend(self) -> int:
        """A length from which on `max(0, ...)` no longer changes between its two sides."""
        out = 0
        for atom, _ in self.terms:
            if atom.arg is None:
                continue
            out = max(out, atom.arg.bend)
            if atom.kind == "max":
                signs = np.sign(atom.arg.at(1 << np.arange(35)))
                changed = np.flatnonzero(signs != signs[-1])
                out = max(out, 1 << int(changed[-1] + 1) if changed.size else 0)
        return out

    def holds(self, test: Callable[[np.ndarray], np.ndarray], start: int = 1) -> bool:
        """Whether a test of the sign is true for every length from `start` on. Raises NotAffine if that changes."""
        answers = np.asarray(test((self * self.denominator).at(_SAMPLES[start <= _SAMPLES])))
        if answers.all():
            return True
        if not answers.any():
            return False
        raise NotAffine(f"a condition on {self} depends on the signal length")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (int, Fraction)):
            return not self.terms and self.const == other
        return isinstance(other, Expr) and self.terms == other.terms and self.const == other.const

    def __hash__(self) -> int:
        return hash(self.const) if not self.terms else hash((self.terms, self.const))

    def __str__(self) -> str:
        parts: list[str] = []
        for atom, c in self.terms:
            body = atom.text
            if abs(c) != 1:
                body = f"{abs(c.numerator)}*{'(' if '//' in body else ''}{body}{')' if '//' in body else ''}"
            if c.denominator != 1:
                body = f"({body})/{c.denominator}"
            elif "//" in body and abs(c) == 1 and (c < 0 or self.const or len(self.terms) > 1):
                body = f"({body})"
            parts.append(("-" if c < 0 else "+") + body)
        if self.const or not parts:
            parts.append(f"{'-' if self.const < 0 else '+'}{abs(self.const)}")
        text = "".join(parts)
        return text[1:] if text.startswith("+") else text

    __repr__ = __str__


def _integral(atom: Atom) -> bool:
    return atom.kind != "max" or (atom.arg is not None and atom.arg.integral)


def _from_ast(node: ast.expr) -> Expr:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Expr.of(node.value)
    if isinstance(node, ast.Name) and node.id == "S":
        return Expr.symbol()
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_from_ast(node.operand)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "max" and len(node.args) == 2:
        return _from_ast(node.args[1]).clamp()
    if isinstance(node, ast.BinOp):
        left, right = _from_ast(node.left), _from_ast(node.right)
        match node.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.FloorDiv():
                return left // right
            case ast.Div():
                return left / right
    raise ValueError("not a length expression")


def product(values: Iterable[int | Expr]) -> Expr:
    """Product of dimensions; NotAffine if two of them depend on the length."""
    out = Expr.of(1)
    for value in values:
        out = out * value
    return out


def agreement(a: Expr, b: Expr) -> int | None:
    """For which lengths two expressions agree in the long run: 1 for all, m for multiples of m, None for none."""
    if a == b:
        return 1
    period = lcm(a.period, b.period)
    if a.slope != b.slope or period > 1 << 14:
        return None
    base = (1 << 20) // period * period  # far from every clamp
    lengths = base + np.arange(0, period)
    equal = a.at(lengths) == b.at(lengths)
    for m in (m for m in range(1, period + 1) if period % m == 0):
        if equal[::m].all():
            return m
    return None


def most_ahead(rate: Fraction, length: Expr, step: int) -> int:
    """`max over N of rate*N - length(N)`, N over multiples of `step`: frames by which emission at `rate` would run
    ahead of what is certain to exist."""
    period = lcm(length.period, step, rate.denominator)
    grain(period, "a pattern of lengths")
    last = max(4 * period, 2048) + frames(length.bend, "a cut")
    n = np.arange(0, last + period, lcm(step, rate.denominator), dtype=np.int64)
    return int((rate.numerator * n // rate.denominator - length.at(n)).max())
