"""Memory of a program: buffers, strided views into them, and where buffers of limited life lie in the arena."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

ALIGN = 16  # floats: a cache line


@dataclass(eq=False)
class Buffer:
    """Contiguous floats. `region` is what native code calls the memory it lies in.

    Attributes:
        kind: "arena" (within a pulse), "input", "output", "window", "state", "weights" or "tables".
        index: number of the port or window.
        offset: start within its region; for the arena it is set once lives are known.
        lasting: not shared with other buffers of the arena, since what no step writes must stay zero.
    """

    kind: str
    size: int
    index: int = 0
    offset: int = 0
    lasting: bool = False
    first: int | None = field(default=None, repr=False)
    last: int | None = field(default=None, repr=False)

    def touch(self, step: int) -> None:
        """The buffer is in use at that step."""
        self.first = step if self.first is None else min(self.first, step)
        self.last = step if self.last is None else max(self.last, step)


@dataclass(frozen=True)
class View:
    """A tensor in memory: strides in floats, one per axis.

    `margins` are the zeros that lie before and after each axis in the buffer; `unit` the floats one element takes: 2
    for int64.
    """

    buffer: Buffer
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    margins: tuple[tuple[int, int], ...] = ()
    unit: int = 1

    def __post_init__(self) -> None:
        if not self.margins:
            object.__setattr__(self, "margins", ((0, 0),) * len(self.shape))
        low, high = self.reach()
        assert 0 <= low <= high <= max(self.buffer.size, self.unit) - self.unit, (
            self.shape,
            self.strides,
            self.offset,
            self.buffer,
        )

    def reach(self) -> tuple[int, int]:
        """Offsets of the lowest and the highest element."""
        if 0 in self.shape:
            return 0, 0
        ends = [(d - 1) * s for d, s in zip(self.shape, self.strides, strict=True)]
        return self.offset + sum(min(e, 0) for e in ends), self.offset + sum(max(e, 0) for e in ends)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def same_place(self, other: View) -> bool:
        """Whether each element lies where the other's does."""
        if self.buffer is not other.buffer or self.offset != other.offset or self.shape != other.shape:
            return False
        return all(d == 1 or a == b for d, a, b in zip(self.shape, self.strides, other.strides, strict=True))

    def transpose(self, perm: Sequence[int]) -> View:
        def pick(values: Sequence) -> tuple:
            return tuple(values[p] for p in perm)

        return replace(self, shape=pick(self.shape), strides=pick(self.strides), margins=pick(self.margins))

    def slice(self, axis: int, start: int, count: int, step: int = 1) -> View:
        """Elements start, start + step, ... of one axis."""
        cut = start if count else 0
        return self._with_axis(axis, count, self.strides[axis] * step, self.offset + cut * self.strides[axis])

    def _with_axis(self, axis: int, size: int, stride: int, offset: int) -> View:
        def put(values: tuple, value: object) -> tuple:
            return (*values[:axis], value, *values[axis + 1 :])

        shape, strides, margins = put(self.shape, size), put(self.strides, stride), put(self.margins, (0, 0))
        return replace(self, offset=offset, shape=shape, strides=strides, margins=margins)

    def insert(self, axis: int) -> View:
        """A new axis of size 1."""

        def put(values: tuple, value: object) -> tuple:
            return (*values[:axis], value, *values[axis:])

        shape, strides, margins = put(self.shape, 1), put(self.strides, 0), put(self.margins, (0, 0))
        return replace(self, shape=shape, strides=strides, margins=margins)

    def expand(self, shape: Sequence[int]) -> View:
        """Broadcast to a shape: axes of size 1, and new leading ones, repeat."""
        view = self
        while len(view.shape) < len(shape):
            view = view.insert(0)
        strides = tuple(0 if d == 1 != n else s for d, n, s in zip(view.shape, shape, view.strides, strict=True))
        margins = tuple((0, 0) if d != n else m for d, n, m in zip(view.shape, shape, view.margins, strict=True))
        return replace(view, shape=tuple(shape), strides=strides, margins=margins)

    def reshape(self, shape: Sequence[int]) -> View | None:
        """The same elements in order under another shape, or None where no strides do that."""
        if prod(shape) != self.size:
            raise ValueError(f"{self.shape} does not reshape to {tuple(shape)}")
        if self.size == 0:
            return replace(self, shape=tuple(shape), strides=(0,) * len(shape), margins=())
        old = [(d, s) for d, s in zip(self.shape, self.strides, strict=True) if d != 1]
        strides: list[int] = []
        margins: list[tuple[int, int]] = []
        kept = {(d, s): m for d, s, m in zip(self.shape, self.strides, self.margins, strict=True) if d != 1}
        sizes = [d for d in shape if d != 1]
        i = j = 0
        while i < len(old):
            first, start = i, j
            have, want = old[i][0], sizes[j]
            i, j = i + 1, j + 1
            while have != want:
                if have < want:
                    have, i = have * old[i][0], i + 1
                else:
                    want, j = want * sizes[j], j + 1
            if any(a[1] != b[1] * b[0] for a, b in zip(old[first : i - 1], old[first + 1 : i], strict=True)):
                return None
            step = old[i - 1][1]
            group: list[int] = []
            for d in reversed(sizes[start:j]):
                group.insert(0, step)
                step *= d
            strides += group
            alone = i - first == 1 and j - start == 1
            margins += [kept[old[first]]] if alone else [(0, 0)] * (j - start)
        full_strides, full_margins = iter(strides), iter(margins)
        return replace(
            self,
            shape=tuple(shape),
            strides=tuple(0 if d == 1 else next(full_strides) for d in shape),
            margins=tuple((0, 0) if d == 1 else next(full_margins) for d in shape),
        )


def dense(
    buffer: Buffer,
    shape: Sequence[int],
    order: Sequence[int],
    margins: Sequence[tuple[int, int]] | None = None,
    offset: int = 0,
    unit: int = 1,
) -> View:
    """A view that fills a buffer, axes nested in `order` from the outermost, with room for margins."""
    margins = tuple(margins or ((0, 0),) * len(shape))
    strides = [0] * len(shape)
    step = unit
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis] + sum(margins[axis])
    start = offset + sum(m[0] * s for m, s in zip(margins, strides, strict=True))
    return View(buffer, start, tuple(shape), tuple(strides), margins, unit)


def dense_size(shape: Sequence[int], margins: Sequence[tuple[int, int]] | None = None) -> int:
    """Floats of such a view's buffer."""
    return prod(d + sum(m) for d, m in zip(shape, margins or ((0, 0),) * len(shape), strict=True))


def place(buffers: Iterable[Buffer]) -> int:
    """Gives buffers of the arena their offsets, sharing memory between lives that do not overlap; the arena's size.

    Longest-lived and largest first, each at the lowest offset that is free for all its life.
    """
    waiting = [b for b in buffers if b.first is not None]
    end = 0
    for buffer in (b for b in waiting if b.lasting):
        buffer.offset, end = end, end + _rounded(buffer.size)
    placed: list[Buffer] = []
    top = end
    for buffer in sorted((b for b in waiting if not b.lasting), key=lambda b: -b.size):
        others = [o for o in placed if _together(o, buffer)]
        at = end
        for other in sorted(others, key=lambda o: o.offset):
            if at + _rounded(buffer.size) <= other.offset:
                break
            at = max(at, other.offset + _rounded(other.size))
        buffer.offset = at
        placed.append(buffer)
        top = max(top, at + _rounded(buffer.size))
    return top


def _together(a: Buffer, b: Buffer) -> bool:
    """Whether two buffers are in use at the same time."""
    assert None not in (a.first, a.last, b.first, b.last)
    return a.first <= b.last and b.first <= a.last  # type: ignore[operator]


def _rounded(size: int) -> int:
    return -(-size // ALIGN) * ALIGN
