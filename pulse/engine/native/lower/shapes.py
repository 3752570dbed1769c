"""Operators that only move or select: views where strides allow, copies else."""

from __future__ import annotations

import numpy as np

from pulse.engine.native.lower.context import Context, Unsupported
from pulse.engine.native.lower.integers import gather as gather_computed
from pulse.engine.native.memory import View
from pulse.graph.ir import Node


def reshape(ctx: Context, node: Node) -> None:
    x, shape = ctx.view(node.inputs[0]), ctx.net.shape(node.outputs[0])
    found = x.reshape(shape)
    if found is None:
        y = ctx.out(node.outputs[0])
        same = y.reshape(x.shape)
        if same is None:
            made = ctx.fresh(shape, unit=x.unit)
            same = made.reshape(x.shape)
            assert same is not None
            ctx.copy(x, same)
            ctx.copy(made, y)
        else:
            ctx.copy(x, same)
    else:
        ctx.put(node.outputs[0], found)


def transpose(ctx: Context, node: Node) -> None:
    ctx.put(node.outputs[0], ctx.view(node.inputs[0]).transpose(node.attrs["perm"]))


def concat(ctx: Context, node: Node) -> None:
    whole = ctx.views.get(node.outputs[0]) or ctx.out(node.outputs[0])
    axis, start = node.attrs["axis"] % len(whole.shape), 0
    for name in node.inputs:
        count = ctx.net.shape(name)[axis]
        part, x = whole.slice(axis, start, count), ctx.view(name)
        if not x.same_place(part):
            ctx.copy(x, part)
        start += count


def split(ctx: Context, node: Node) -> None:
    x, start = ctx.view(node.inputs[0]), 0
    axis = node.attrs.get("axis", 0) % len(x.shape)
    for name in node.outputs:
        count = ctx.net.shape(name)[axis] if name else 0
        if name:
            ctx.put(name, x.slice(axis, start, count))
        start += count


def slice_(ctx: Context, node: Node) -> None:
    x = ctx.view(node.inputs[0])
    ints = [ctx.net.constants.get(n) if n else None for n in (*node.inputs[1:], "", "")[:4]]
    if ints[0] is None or ints[1] is None:
        raise Unsupported("a slice whose ends are computed")
    starts, ends = (v.reshape(-1).tolist() for v in ints[:2])  # type: ignore[union-attr]
    axes = list(range(len(starts))) if ints[2] is None else ints[2].reshape(-1).tolist()
    steps = [1] * len(starts) if ints[3] is None else ints[3].reshape(-1).tolist()
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis %= len(x.shape)
        size = x.shape[axis]
        if step > 0:
            indices = range(size)[slice(start, end, step)]
        else:
            first = min(start + size if start < 0 else start, size - 1)
            last = max(end + size if end < 0 else end, -1)
            indices = range(first, last, step)
        x = x.slice(axis, indices[0] if len(indices) else 0, len(indices), step)
    ctx.put(node.outputs[0], x)


def expand(ctx: Context, node: Node) -> None:
    ctx.put(node.outputs[0], ctx.view(node.inputs[0]).expand(ctx.net.shape(node.outputs[0])))


def gather(ctx: Context, node: Node) -> None:
    """Constant indices: a view where they are evenly spaced, else a copy per run of such."""
    indices = ctx.net.constants.get(node.inputs[1])
    if indices is None:
        gather_computed(ctx, node)
        return
    x = ctx.view(node.inputs[0])
    axis = node.attrs.get("axis", 0) % len(x.shape)
    flat = indices.reshape(-1).astype(np.int64)
    flat = np.where(flat < 0, flat + x.shape[axis], flat)
    shape = ctx.net.shape(node.outputs[0])
    runs = _runs(flat)
    between = (*x.shape[:axis], len(flat), *x.shape[axis + 1 :])
    if len(runs) == 1:
        start, count, step = runs[0]
        found = x.slice(axis, start, count, step).reshape(shape)
        if found is not None:
            ctx.put(node.outputs[0], found)
            return
    y = ctx.out(node.outputs[0])
    target = y.reshape(between)
    made = target if target is not None else ctx.fresh(between, unit=x.unit)
    at = 0
    for start, count, step in runs:
        ctx.copy(x.slice(axis, start, count, step), made.slice(axis, at, count))
        at += count
    if target is None:
        again = made.reshape(shape)
        assert again is not None
        ctx.copy(again, y)


def _runs(indices: np.ndarray) -> list[tuple[int, int, int]]:
    """(start, count, step) of evenly spaced stretches."""
    runs: list[tuple[int, int, int]] = []
    i = 0
    while i < len(indices):
        j = i + 1
        step = int(indices[j] - indices[i]) if j < len(indices) else 1
        while j < len(indices) and indices[j] - indices[j - 1] == step:
            j += 1
        runs.append((int(indices[i]), j - i, step))
        i = j
    return runs


def pad(ctx: Context, node: Node) -> None:
    """Constant values, edges or reflections around a copy."""
    x, y = ctx.view(node.inputs[0]), ctx.out(node.outputs[0])
    flat = ctx.net.constants.get(node.inputs[1])
    axes = ctx.net.constants.get(node.input(3)) if node.input(3) else np.arange(len(x.shape))
    value = ctx.net.constants.get(node.input(2)) if node.input(2) else np.zeros(1)
    if flat is None or axes is None or value is None:
        raise Unsupported("a Pad whose sizes are computed")
    mode = node.attrs.get("mode", "constant")
    sizes = flat.reshape(-1).astype(int).tolist()
    half = len(sizes) // 2
    pads = {int(a) % len(x.shape): (sizes[i], sizes[half + i]) for i, a in enumerate(axes.reshape(-1))}
    source = x
    for axis, (before, after) in pads.items():
        source = source.slice(axis, max(-before, 0), source.shape[axis] + min(before, 0) + min(after, 0))
    # What is filled so far; it grows axis by axis, so that corners are made of what lies beside them.
    filled = [(max(pads.get(i, (0, 0))[0], 0), d) for i, d in enumerate(source.shape)]

    def part(axis: int, at: int, count: int, step: int = 1) -> View:
        view = y
        for i, (start, size) in enumerate(filled):
            view = view.slice(axis, at, count, step) if i == axis else view.slice(i, start, size)
        return view

    ctx.copy(source, part(0, *filled[0]))
    for axis, (before, after) in pads.items():
        start, size = filled[axis]
        for count, edge, outwards in ((max(before, 0), start, -1), (max(after, 0), start + size - 1, 1)):
            if not count:
                continue
            target = part(axis, edge + outwards, count, outwards)
            if mode == "constant":
                fill = ctx.constant(np.asarray(value, np.float32).reshape((1,) * len(x.shape)))
                ctx.copy(fill.expand(target.shape), target)
            elif mode == "edge":
                ctx.copy(part(axis, edge, 1).expand(target.shape), target)
            elif mode == "reflect" and count < size:
                ctx.copy(part(axis, edge - outwards, count, -outwards), target)
            else:
                raise Unsupported(f"a Pad of mode {mode}")
        filled[axis] = (0, y.shape[axis])


def tile(ctx: Context, node: Node) -> None:
    """Repeats along each axis, as an axis of its own that has no stride."""
    repeats = ctx.net.constants.get(node.inputs[1])
    if repeats is None:
        raise Unsupported("a Tile whose repeats are computed")
    x = ctx.view(node.inputs[0])
    shape: list[int] = []
    for axis, count in enumerate(repeats.reshape(-1).astype(int).tolist()):
        x = x.insert(2 * axis)
        shape += [count, x.shape[2 * axis + 1]]
    long = x.expand(shape)
    found = long.reshape(ctx.net.shape(node.outputs[0]))
    if found is not None:
        ctx.put(node.outputs[0], found)
        return
    y = ctx.out(node.outputs[0])
    target = y.reshape(shape)
    if target is None:
        raise Unsupported("a Tile into memory of another order")
    ctx.copy(long, target)
