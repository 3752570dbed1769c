"""Stream facts: what is known about a value of the source graph. A fact is one of five kinds.

When the source has received `N` frames, a `Stream` has emitted exactly `rate*N` frames and the newest has index
`rate*N - delay - 1`. With a negative delay the first `-delay` frames depend on no input: they are `prefix`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from onnx import helper

from pulse.errors import PulseError
from pulse.graph.expr import Expr


@dataclass(frozen=True, eq=False)
class Const:
    """Known at conversion. Integers that depend on the signal's length are `Expr` in an object array."""

    value: np.ndarray
    dtype: int

    @property
    def symbolic(self) -> bool:
        return self.value.dtype == object

    @property
    def dims(self) -> tuple[Expr, ...]:
        return tuple(Expr.of(d) for d in self.value.shape)

    @staticmethod
    def of(value: np.ndarray, dtype: int | None = None) -> Const:
        """Wraps an array; an object array whose entries are all plain numbers becomes numeric."""
        if value.dtype == object:
            flat = value.reshape(-1)
            if all(not isinstance(e, Expr) or e.constant for e in flat):
                kind = helper.tensor_dtype_to_np_dtype(dtype or 7)
                numbers = [e.const if isinstance(e, Expr) else e for e in flat]
                as_int = np.issubdtype(kind, np.integer)
                value = np.array([int(e) if as_int else float(e) for e in numbers], dtype=kind).reshape(value.shape)
        if dtype is None:
            dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
        return Const(value, dtype)

    def __str__(self) -> str:
        return f"const {list(self.value.shape)}"


@dataclass(frozen=True)
class Static:
    """Known only at run time, the same for the whole signal: a speaker vector and what is computed from it."""

    dtype: int
    shape: tuple[int, ...]

    @property
    def dims(self) -> tuple[Expr, ...]:
        return tuple(Expr.of(d) for d in self.shape)

    def __str__(self) -> str:
        return f"static {list(self.shape)}"


@dataclass(frozen=True, eq=False)
class Uniform:
    """The same frame all along the signal, `zeros(1, S, 256)` say. `shape` is 1 at `axis`.

    `frame` is that one frame where it is known at conversion, None where it is a run-time value.
    """

    dtype: int
    shape: tuple[int, ...]
    axis: int
    length: Expr
    frame: np.ndarray | None

    @property
    def rate(self) -> Fraction:
        return self.length.slope

    @property
    def dims(self) -> tuple[Expr, ...]:
        return tuple(self.length if i == self.axis else Expr.of(d) for i, d in enumerate(self.shape))

    def __str__(self) -> str:
        return f"uniform {_dims(self.dims)} along {self.axis}"


@dataclass(frozen=True, eq=False)
class Affine:
    """What a stream of positions holds: frame `i` is `step * i + table`, `table` of size 1 on the stream axis."""

    step: int
    table: np.ndarray


@dataclass(frozen=True, eq=False)
class Stream:
    """A value whose axis `axis` is the signal. `shape` holds 0 there; `prefix` has `-delay` frames if delay < 0."""

    dtype: int
    shape: tuple[int, ...]
    axis: int
    rate: Fraction
    delay: int
    length: Expr
    prefix: np.ndarray | None = None
    affine: Affine | None = None

    @property
    def dims(self) -> tuple[Expr, ...]:
        return tuple(self.length if i == self.axis else Expr.of(d) for i, d in enumerate(self.shape))

    def block(self, frames: int) -> tuple[int, ...]:
        """The shape of a block of that many frames."""
        return tuple(frames if i == self.axis else d for i, d in enumerate(self.shape))

    def frames(self, first: int, last: int) -> np.ndarray:
        """Prefix frames `first..last-1`, as an array."""
        if self.prefix is None:
            return np.zeros(self.block(0), helper.tensor_dtype_to_np_dtype(self.dtype))
        index = [slice(None)] * len(self.shape)
        index[self.axis] = slice(first, last)
        return self.prefix[tuple(index)]

    def on(self, **changes: object) -> Stream:
        return replace(self, **changes)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"stream {_dims(self.dims)} axis {self.axis} rate {self.rate} delay {self.delay}"


@dataclass(frozen=True, eq=False)
class Poison:
    """Cannot stream, and why. `droppable`: an output that is no stream by nature, such as a last state."""

    error: PulseError
    droppable: bool = False

    def __str__(self) -> str:
        return f"refused: {self.error.code}"


@dataclass(frozen=True, eq=False)
class Mirror:
    """A stream padded by `before` and `after` frames of its own: its edge repeated, or reflected."""

    source: Value
    before: int
    after: int
    reflect: bool

    def place(self, frame: int) -> int:
        """The source frame that a padded frame shows, near the start of the signal."""
        moved = frame - self.before
        return abs(moved) if self.reflect else max(moved, 0)


Fact = Const | Static | Uniform | Stream | Poison


@dataclass(frozen=True, eq=False)
class Value:
    """A fact and the name under which the pulsed graph holds the value ("" until a constant is used).

    `mirror`: the value is this signal padded by its own frames, for windows that can look at it directly.
    """

    fact: Fact
    name: str = ""
    mirror: Mirror | None = None


def _dims(dims: tuple[Expr, ...]) -> str:
    return "[" + ",".join(str(d) for d in dims) + "]"
