"""Ops whose form depends on the opset: attributes that became inputs, ops that came late."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nets.base import Value
from nets.builder import Builder

BIG = 2**63 - 1  # exporters' "to the end"


def squeeze(b: Builder, x: str, *axes: int) -> str:
    if b.opset < 13:
        return b.op("Squeeze", x, axes=axes)
    return b.op("Squeeze", x, b.ints(*axes))


def unsqueeze(b: Builder, x: str, *axes: int) -> str:
    if b.opset < 13:
        return b.op("Unsqueeze", x, axes=axes)
    return b.op("Unsqueeze", x, b.ints(*axes))


def reduce(b: Builder, kind: str, x: str, axes: Sequence[int], keepdims: int = 1) -> str:
    """ReduceX over `axes`: an input from opset 18 on (13 for ReduceSum)."""
    if b.opset >= (13 if kind == "ReduceSum" else 18):
        return b.op(kind, x, b.ints(*axes), keepdims=keepdims)
    return b.op(kind, x, axes=list(axes), keepdims=keepdims)


def split(b: Builder, x: str, axis: int, sizes: Sequence[int]) -> list[str]:
    if b.opset < 13:
        return b.ops("Split", [x], len(sizes), axis=axis, split=list(sizes))
    if b.opset >= 18 and len(set(sizes)) == 1 and b.style.random() < 0.5:
        return b.ops("Split", [x], len(sizes), axis=axis, num_outputs=len(sizes))
    return b.ops("Split", [x, b.ints(*sizes)], len(sizes), axis=axis)


def slice_(b: Builder, x: str, axis: int, start: int, end: int | str = BIG, step: int = 1) -> str:
    """`x[start:end:step]` along `axis`; `end` may name a computed value of shape [1]."""
    stop = end if isinstance(end, str) else b.ints(end)
    inputs = [x, b.ints(start), stop, b.ints(axis)]
    if step != 1 or b.style.random() < 0.5:
        inputs.append(b.ints(step))
    return b.op("Slice", *inputs)


def pad(b: Builder, x: str, rank: int, axis: int, before: int, after: int, mode: str, value: float) -> str:
    """Pad on one axis; with `axes` as an input where the opset has it."""
    some = b.opset >= 18 and bool(b.style.random() < 0.5)
    pads = [before, after] if some else [0] * (2 * rank)
    if not some:
        pads[axis], pads[axis + rank] = before, after
    inputs = [x, b.ints(*pads)]
    if mode == "constant" and (value or some or b.style.random() < 0.5):
        inputs.append(b.scalar(value))
    if some:
        inputs += [""] * (3 - len(inputs)) + [b.ints(axis)]
    return b.op("Pad", *inputs, mode=mode)


def clip(b: Builder, x: str, low: float, high: float) -> str:
    return b.op("Clip", x, b.scalar(low), b.scalar(high))


def dim(b: Builder, x: str, axis: int) -> str:
    """The size of `x` along `axis` as a scalar, the way exporters read it."""
    shape = b.op("Shape", x, start=axis, end=axis + 1) if b.opset >= 15 and b.style.random() < 0.3 else ""
    if shape:
        return squeeze(b, shape, 0)
    return b.op("Gather", b.op("Shape", x), b.const(axis, np.int64), axis=0)


def dim1(b: Builder, x: str, axis: int) -> str:
    """The same as a tensor of shape [1]."""
    return unsqueeze(b, dim(b, x, axis), 0)


def reshape(b: Builder, x: Value, dims: Sequence[int], num: int = 1, den: int = 1) -> str:
    """Reshapes to `dims`, -1 at the stream axis, whose size is the length of `x` times `num / den`.

    As a constant shape (with 0 where a dim stays), or as a chain from Shape with the -1 anywhere or nowhere.
    """
    if not b.chains:
        copy = [0 if i < len(x.dims) and x.dims[i] == n != -1 else n for i, n in enumerate(dims)]
        return b.op("Reshape", x.name, b.ints(*(copy if b.style.random() < 0.5 else dims)))
    n = dim(b, x.name, x.axis)
    if num != 1:
        n = b.op("Mul", n, b.const(num, np.int64))
    if den != 1:
        n = b.op("Div", n, b.const(den, np.int64))
    free = int(b.style.integers(-1, len(dims)))  # where the shape says -1
    parts = []
    for i, size in enumerate(dims):
        if size == -1:
            parts.append(b.ints(-1) if free == i else unsqueeze(b, n, 0))
        elif size == 1 and i < len(x.dims) and x.dims[i] == 1 and free != i:
            parts.append(dim1(b, x.name, i))  # the batch, read back from the shape
        else:
            parts.append(b.ints(-1 if free == i else size))
    return b.op("Reshape", x.name, b.op("Concat", *parts, axis=0))
