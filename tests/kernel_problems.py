"""Products as values: what a kernel is given, what it must give, and how its memory is laid out. One tester for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from pulse import _native
from pulse.engine.pick import Kernel, kernels

ACTS = ("none", "relu", "leaky", "prelu", "sigmoid", "tanh")
B_LAYOUTS = ("frame", "channel", "strided", "offset", "offset-strided")
C_LAYOUTS = ("columns", "rows", "strided")
ALPHA = 0.1
GUARD = 37.5  # what must still stand around C
EPS = float(np.finfo(np.float32).eps)


def all_kernels() -> list[Kernel]:
    """Every kernel this CPU runs."""
    return [kernel for isa in _native.isas() for kernel in kernels(isa)]


@dataclass(frozen=True)
class Problem:
    """One product. Its repr can be pasted as a test."""

    m: int
    k: int
    n: int
    b: str = "frame"
    c: str = "columns"
    bias: bool = True
    act: str = "none"
    accumulate: bool = False
    seed: int = 0

    def suits(self, kernel: Kernel) -> bool:
        """Whether the kernel takes B and C of these layouts."""
        if kernel.family == "nl":
            return self.n == 1 or (self.b in ("channel", "offset") and self.c == "rows")
        return kernel.family != "dot" or self.b == "frame"


class Trial:
    """Runs a kernel on a problem and compares it with the same sum in double precision."""

    def __init__(self, problem: Problem) -> None:
        p = self.problem = problem
        random = np.random.default_rng(p.seed)
        self.a = random.standard_normal((p.m, p.k)).astype(np.float32)
        self.b = random.standard_normal((p.k, p.n)).astype(np.float32)
        self.start = random.standard_normal((p.m, p.n)).astype(np.float32)
        self.bias = random.standard_normal(p.m).astype(np.float32) if p.bias else None
        self.slope = random.standard_normal(p.m).astype(np.float32)

    def run(self, kernel: Kernel) -> np.ndarray:
        """C as the kernel computes it, after checking that it left the memory around C alone."""
        p = self.problem
        flat_b, ldb, bn, offsets = self._laid_out_b()
        index = self._places_of_c()
        flat_c = np.full(int(index.max()) + 4 if index.size else 4, GUARD, np.float32)
        flat_c[index] = self.start
        cm = int(index[1, 0] - index[0, 0]) if p.m > 1 else 1
        cn = int(index[0, 1] - index[0, 0]) if p.n > 1 else 1
        product = _native.Product(
            _native.Packed(self.a, kernel.panel, dtype=kernel.name.split("_")[2]),
            flat_b,
            flat_c,
            p.n,
            ldb=ldb,
            bn=bn,
            cm=cm,
            cn=cn,
            offsets=offsets,
            bias=self.bias,
            slope=self.slope,
            act=p.act,
            alpha=ALPHA,
            accumulate=p.accumulate,
        )
        product.run(kernel.name)
        around = np.ones(flat_c.size, bool)
        around[index] = False
        assert np.all(flat_c[around] == GUARD), "written outside C"
        return flat_c[index]

    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        """C in double precision, and the error that a sum in single precision may make at each element."""
        p = self.problem
        a, b = self.a.astype(np.float64), self.b.astype(np.float64)
        total, size = a @ b, np.abs(a) @ np.abs(b)
        for term in (self.bias[:, None] if self.bias is not None else None, self.start if p.accumulate else None):
            if term is not None:
                total, size = total + term, size + np.abs(term)
        with np.errstate(over="ignore"):
            result = activated(total, p.act, self.slope[:, None].astype(np.float64))
        steepest = max(1.0, float(np.abs(self.slope).max()))
        return result, (p.k + 4) * EPS * size * steepest + 4e-7

    def _laid_out_b(self) -> tuple[np.ndarray, int, int, np.ndarray | None]:
        p = self.problem
        if p.b == "frame":
            return np.ascontiguousarray(self.b.T).ravel(), 1, p.k, None
        if p.b == "channel":
            return self.b.ravel(), p.n, 1, None
        if p.b == "strided":  # every third column of rows two elements longer than they need to be
            wide = np.full((p.k, 3 * p.n + 2), np.nan, np.float32)
            wide[:, : 3 * p.n : 3] = self.b
            return wide.ravel(), 3 * p.n + 2, 3, None
        step = 2 if p.b == "offset-strided" else 1
        order = np.random.default_rng(p.seed + 1).permutation(p.k)
        rows = np.full((p.k, step * p.n), np.nan, np.float32)
        rows[order, ::step] = self.b
        return rows.ravel(), 0, step, (order * step * p.n).astype(np.int32)

    def _places_of_c(self) -> np.ndarray:
        p = self.problem
        i, j = np.arange(p.m)[:, None], np.arange(p.n)[None, :]
        if p.c == "columns":
            return i + j * (p.m + 3)
        return i * (p.n + 3) + j if p.c == "rows" else i * (2 * p.n + 1) + 2 * j


def activated(x: np.ndarray, act: str, slope: np.ndarray) -> np.ndarray:
    """The activation, in x's precision."""
    if act == "relu":
        return np.maximum(x, 0)
    if act == "leaky":
        return np.where(x > 0, x, np.float32(ALPHA).astype(np.float64) * x)
    if act == "prelu":
        return np.where(x > 0, x, slope * x)
    if act == "sigmoid":
        return 1 / (1 + np.exp(-x))
    return np.tanh(x) if act == "tanh" else x


def check(kernel: Kernel, problem: Problem) -> None:
    """Fail unless the kernel solves the problem."""
    tester = Trial(problem)
    got = tester.run(kernel)
    expected, allowed = tester.expected()
    wrong = ~(np.abs(got - expected) <= allowed)
    assert not wrong.any(), f"{kernel.name} on {problem}: {got[wrong][:4]} in place of {expected[wrong][:4]}"


@st.composite
def problems_for(draw: st.DrawFn, kernel: Kernel) -> Problem:
    """Problems around the sizes where the kernel's code branches."""
    b = "frame" if kernel.family == "dot" else draw(st.sampled_from(B_LAYOUTS))
    c = draw(st.sampled_from(C_LAYOUTS))
    if kernel.family == "nl":
        b, c = draw(st.sampled_from(("channel", "offset"))), "rows"
    return Problem(
        m=draw(st.integers(1, 2 * kernel.mr + 20)),
        k=draw(st.integers(0, 70)),
        n=draw(st.integers(1, 2 * kernel.nr + 20)),
        b=b,
        c=c,
        bias=draw(st.booleans()),
        act=draw(st.sampled_from(ACTS)),
        accumulate=draw(st.booleans()),
        seed=draw(st.integers(0, 99)),
    )
