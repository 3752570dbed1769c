"""Transposed convolutions: every remainder of the output's position by the stride is a convolution of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product as every
from math import prod

import numpy as np

from pulse.engine.native.lower.context import Context, Unsupported, ref
from pulse.engine.native.lower.depthwise import emit
from pulse.engine.native.lower.product import Loop, padded, product
from pulse.engine.native.memory import View
from pulse.engine.native.plan import Ref
from pulse.graph.ir import Node

MOST_PHASES = 2048  # each is a step of its own


@dataclass(frozen=True)
class Phase:
    """Along one axis, the outputs start, start + stride, ...: output number j is the sum over taps of
    w[taps[i]] * x[j + first + i]."""

    start: int
    taps: tuple[int, ...]
    first: int
    count: int


def phases(kernel: int, stride: int, dilation: int, crop: int, size: int) -> list[Phase]:
    """Of an axis of which `crop` positions of the full result are cut off before, and `size` are kept."""
    found = []
    for start in range(min(stride, size)):
        taps = [k for k in reversed(range(kernel)) if (start + crop - k * dilation) % stride == 0]
        reads = [(start + crop - k * dilation) // stride for k in taps]
        count = -(-(size - start) // stride)
        if not taps:
            found.append(Phase(start, (), 0, count))
            continue
        by_read = dict(zip(reads, taps, strict=True))
        spread = tuple(by_read.get(r, -1) for r in range(reads[0], reads[-1] + 1))
        found.append(Phase(start, spread, reads[0], count))
    return found


def conv_transpose(ctx: Context, node: Node) -> None:
    """native.ConvTranspose"""
    attrs, weight = node.attrs, node.attrs["weight"]
    x = ctx.view(node.inputs[0])
    y = ctx.out(node.outputs[0], (0, 2, 1) if len(x.shape) == 3 else None)
    plain = attrs["act"] == "none" and attrs["bias"] is None
    whole = len(x.shape) == 3 and attrs["group"] == 1 and attrs["dilations"] == [1] and attrs["pads"][0][0] == 0
    if whole and plain and _rows_in_line(y):
        _by_blocks(ctx, node, x, y)
        return
    axes = len(x.shape) - 2
    sizes = [
        phases(weight.shape[2 + i], attrs["strides"][i], attrs["dilations"][i], attrs["pads"][i][0], y.shape[2 + i])
        for i in range(axes)
    ]
    if prod(map(len, sizes)) > MOST_PHASES:
        raise Unsupported(f"a transposed convolution with strides {attrs['strides']}, each phase a product of its own,")
    single = attrs["group"] == weight.shape[0] and weight.shape[1] == 1
    if not single:
        x = padded(ctx, x, [_reach(p, x.shape[2 + i]) for i, p in enumerate(sizes)])
    if single and len(x.shape) == 4:
        both = _both(sizes[1])
        if both is not None and y.strides[3] == 1 and not x.strides[1] == y.strides[1] == 1:
            for phase in sizes[0]:
                part = y.slice(2, phase.start, phase.count, attrs["strides"][0])
                _one_filter(ctx, node, x, part, [(phase, both[0])], [(phase, both[1])])
            return
    for parts in every(*sizes):
        part = y
        for i, phase in enumerate(parts):
            part = part.slice(2 + i, phase.start, phase.count, attrs["strides"][i])
        if single:
            _one_filter(ctx, node, x, part, [parts])
        else:
            _dense(ctx, node, x, part, parts, _pick(weight, [list(p.taps) for p in parts]))


def _both(found: Sequence[Phase]) -> tuple[Phase, Phase] | None:
    """The two phases of a stride of 2 over the same stretch of input, where they have as many outputs."""
    if len(found) != 2 or found[0].count != found[1].count or not all(p.taps for p in found):
        return None
    first, last = min(p.first for p in found), max(p.first + len(p.taps) for p in found)
    wide = [
        Phase(p.start, (*[-1] * (p.first - first), *p.taps, *[-1] * (last - p.first - len(p.taps))), first, p.count)
        for p in found
    ]
    return wide[0], wide[1]


def _pick(weight: np.ndarray, taps: Sequence[Sequence[int]]) -> np.ndarray:
    """The weights of these taps per axis, zeros for -1."""
    for i, numbers in enumerate(taps):
        zero = np.zeros((*weight.shape[: 2 + i], 1, *weight.shape[3 + i :]), np.float32)
        weight = np.take(np.concatenate([weight, zero], axis=2 + i), list(numbers), axis=2 + i)
    return weight


def _reach(found: Sequence[Phase], size: int) -> tuple[int, int]:
    """How far taps read before and behind the input."""
    used = [p for p in found if p.taps]
    before = max((-p.first for p in used), default=0)
    behind = max((p.count - 1 + p.first + len(p.taps) - size for p in used), default=0)
    return max(before, 0), max(behind, 0)


def _dense(ctx: Context, node: Node, x: View, y: View, parts: Sequence[Phase], weight: np.ndarray) -> None:
    attrs, group = node.attrs, node.attrs["group"]
    per, m = weight.shape[0] // group, weight.shape[1]
    weight = weight.reshape(group, per, m, *weight.shape[2:]).swapaxes(1, 2)
    rows = [(per, x.strides[1])] + [(len(p.taps), x.strides[2 + i]) for i, p in enumerate(parts)]
    columns = [(x.shape[0], x.strides[0], y.strides[0])]
    columns += [(p.count, x.strides[2 + i], y.strides[2 + i]) for i, p in enumerate(parts)]
    start = x.offset + sum(p.first * x.strides[2 + i] for i, p in enumerate(parts))
    if any(not p.taps for p in parts):  # nothing reaches these positions: a product over no rows
        rows, weight, start = [(1, 0)], np.zeros((group, m, 1), np.float32), x.offset
    product(
        ctx, attrs, weight.reshape(group, m, -1), rows=rows, columns=columns,
        loops=[Loop(group, 1, per * x.strides[1], m * y.strides[1], m)] if group > 1 else [],
        b=Ref(x.buffer, start), c=ref(y), cm=y.strides[1] if m > 1 else 1,
    )  # fmt: skip


def _one_filter(ctx: Context, node: Node, x: View, y: View, *filters: Sequence[Sequence[Phase]]) -> None:
    """A convolution with one filter per channel, or with two that make neighbouring bands."""
    parts = filters[0][0]
    weights = [_pick(node.attrs["weight"], [list(p.taps) or [-1] for p in f[0]])[:, 0] for f in filters]
    pads = [(-p.first, 0) for p in parts]
    if len(parts) == 1:  # an axis of frames is taken as the bands
        x, y, weights = x.insert(2), y.insert(2), [w[:, None] for w in weights]
        pads = [(0, 0), *pads]
    else:
        behind = parts[0].count - 1 + parts[0].first + weights[0].shape[1] - x.shape[2]
        x = padded(ctx, x, [(max(-parts[0].first, 0), max(behind, 0)), (0, 0)])
    lanes = int(not (x.strides[1] == y.strides[1] == 1))
    emit(ctx, node, x, y, None, np.stack(weights, axis=1), pads, [1, 1], [1, 1], lanes)


def _rows_in_line(y: View) -> bool:
    """Whether the features of consecutive frames follow each other in memory."""
    m = y.shape[1]
    return m == 1 or (y.strides[1] == 1 and y.strides[2] == m)


def _by_blocks(ctx: Context, node: Node, x: View, y: View) -> None:
    """A frame of x makes `stride` frames of y at once, as rows of one product; longer kernels add further blocks of
    that size behind."""
    attrs, weight = node.attrs, node.attrs["weight"]
    stride, kernel = attrs["strides"][0], weight.shape[2]
    m, frames = weight.shape[1], x.shape[2]
    step = y.strides[2]
    written = min(frames * stride, y.shape[2]) if kernel >= stride else 0
    if written < y.shape[2]:
        rest = y.slice(2, written, y.shape[2] - written)
        ctx.copy(ctx.constant(np.zeros(1)).reshape((1, 1, 1)).expand(rest.shape), rest)  # type: ignore[union-attr]
    for block in range(-(-kernel // stride)):
        taps = weight[:, :, block * stride : (block + 1) * stride]
        rows = taps.transpose(2, 1, 0).reshape(1, -1, weight.shape[0])
        count = taps.shape[2]
        behind = y.shape[2] - (frames - 1) * stride - block * stride
        assert behind >= count, "the last frame's outputs lie within the result"
        product(
            ctx, attrs, rows, rows=[(weight.shape[0], x.strides[1])],
            columns=[(x.shape[0], x.strides[0], y.strides[0]), (frames, x.strides[2], stride * step)],
            loops=[], b=ref(x), c=Ref(y.buffer, y.offset + block * stride * step),
            cm=step if m == 1 else 1, accumulate=block > 0,
        )  # fmt: skip
