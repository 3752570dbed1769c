"""Linear layers and convolutions as products: rows of B by stride or offset, columns and loops by merging axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pulse.engine.native.lower.choose import Shape, choose, choose_panel, halved, layout_of
from pulse.engine.native.lower.context import Context, Unsupported, merged
from pulse.engine.native.memory import View
from pulse.engine.native.plan import BYTES, Field, Ref
from pulse.graph.ir import Node

ACTS = ("none", "relu", "leaky", "prelu", "sigmoid", "tanh")
WIDTHS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Loop:
    """A loop around a product: strides of weights (in groups), B, C and of what is per feature."""

    count: int
    a: int
    b: int
    c: int
    v: int


def linear(ctx: Context, node: Node) -> None:
    """native.Linear"""
    weight = node.attrs["weight"]
    groups, m, k = weight.shape
    x, y = ctx.view(node.inputs[0]), ctx.out(node.outputs[0])
    lead = len(x.shape) - (2 if groups > 1 else 1)
    loops = [Loop(groups, 1, x.strides[-2], y.strides[-2], m)] if groups > 1 else []
    product(
        ctx,
        node.attrs,
        weight,
        rows=[(k, x.strides[-1])],
        columns=list(zip(x.shape[:lead], x.strides[:lead], y.strides[:lead], strict=True)),
        loops=loops,
        b=Ref(x.buffer, x.offset),
        c=Ref(y.buffer, y.offset),
        cm=y.strides[-1] if m > 1 else 1,
    )


def conv(ctx: Context, node: Node) -> None:
    """native.Conv with any geometry but one filter per channel."""
    attrs = node.attrs
    weight, group = attrs["weight"], attrs["group"]
    x = padded(ctx, ctx.view(node.inputs[0]), attrs["pads"])
    order = (0, 2, 1) if len(x.shape) == 3 else None
    y = ctx.out(node.outputs[0], order)
    m = weight.shape[0] // group
    axes = range(weight.ndim - 2)
    rows = [(weight.shape[1], x.strides[1])]
    rows += [(weight.shape[2 + i], x.strides[2 + i] * attrs["dilations"][i]) for i in axes]
    columns = [(x.shape[0], x.strides[0], y.strides[0])]
    columns += [(y.shape[2 + i], x.strides[2 + i] * attrs["strides"][i], y.strides[2 + i]) for i in axes]
    start = x.offset - sum(attrs["pads"][i][0] * x.strides[2 + i] for i in axes)
    loops = [Loop(group, 1, weight.shape[1] * x.strides[1], m * y.strides[1], m)] if group > 1 else []
    product(
        ctx,
        attrs,
        weight.reshape(group, m, -1),
        rows=rows,
        columns=columns,
        loops=loops,
        b=Ref(x.buffer, start),
        c=Ref(y.buffer, y.offset),
        cm=y.strides[1] if m > 1 else 1,
    )


def padded(ctx: Context, x: View, pads: Sequence[tuple[int, int]]) -> View:
    """The view, or a copy of it, with as many zeros around its spatial axes as the pads want."""
    wanted = [(0, 0), (0, 0), *((max(a, 0), max(b, 0)) for a, b in pads)]
    if all(a <= c and b <= d for (a, b), (c, d) in zip(wanted, x.margins, strict=True)):
        return x
    order = sorted(range(len(x.shape)), key=lambda i: -abs(x.strides[i]) if x.shape[i] > 1 else -(1 << 40))
    wide = ctx.fresh(x.shape, order, wanted)
    ctx.copy(x, wide)
    return wide


def product(
    ctx: Context,
    attrs: dict[str, Any],
    weight: np.ndarray,
    *,
    rows: Sequence[tuple[int, int]],
    columns: Sequence[tuple[int, int, int]],
    loops: Sequence[Loop],
    b: Ref,
    c: Ref,
    cm: int,
    accumulate: bool = False,
) -> None:
    """One product per turn of the loops.

    Args:
        attrs: bias, act, alpha and slope as in native nodes.
        weight: (groups, m, k), k in the order of `rows`.
        rows: axes of k, each with its stride in B; columns: axes of n with strides in B and C.
    """
    groups, m, k = weight.shape
    weight, offsets, ldb = _in_order(weight, rows)
    dims = merged([d for d, _, _ in columns], [s for _, _, s in columns], [s for _, s, _ in columns])
    if any(d[0] == 0 for d in dims):
        return
    pick_n = max(range(len(dims)), key=lambda i: (dims[i][1] == dims[i][2] == 1 and dims[i][0] >= 4, dims[i][0]))
    n, cn, bn = dims[pick_n]
    rest = [Loop(count, 0, bs, cs, 0) for i, (count, cs, bs) in enumerate(dims) if i != pick_n]
    loops = [*loops, *(loop for loop in rest if loop.count > 1)]
    if len(loops) > 3:
        raise Unsupported("a product with more than three loops around it")
    contiguous = offsets is None and (ldb == 1 or k == 1)
    total = Fraction(int(np.prod([d for d, _, _ in columns])), ctx.net.width)
    scales = n == np.prod([d for d, _, _ in columns])
    widths = tuple(max(1, int(total * w * ctx.net.info.granularity)) for w in WIDTHS) if scales else (n,)
    if ctx.net.info.pulse != "dynamic":  # nothing else will ever read these weights
        widths = (n,)
    layout = layout_of(m, n, offsets is not None, ldb, bn, cm, cn)
    shape = Shape(m, k, n, bn == 1 and cn == 1 and n > 1, contiguous, cm != 1, widths, layout, attrs["act"])
    panel = choose_panel(shape, ctx.isa, ctx.picker)
    choice = choose(shape, panel, ctx.isa, ctx.picker)
    dtype = ctx.weights.kept_as(weight)
    if dtype == "bf16":
        half = halved(choice, ctx.isa)
        choice, dtype = (half, dtype) if half else (choice, "f32")
    packed = ctx.weights.put(weight, choice.kernel.panel, dtype)
    args: dict[str, Field] = {
        "kernel": choice.index,
        "a": Ref(packed),
        "b": b,
        "c": c,
        "off": None if offsets is None else ctx.plan.table(offsets),
        "bias": None if attrs["bias"] is None else Ref(ctx.weights.put(attrs["bias"])),
        "slope": None if attrs["slope"] is None else Ref(ctx.weights.put(attrs["slope"])),
        "m": m, "k": k, "n": n, "ldb": ldb, "bn": bn, "cm": cm, "cn": cn,
        "act": ACTS.index(attrs["act"]), "alpha": float(attrs["alpha"]), "accumulate": int(accumulate),
    }  # fmt: skip
    for i in range(3):
        loop = loops[i] if i < len(loops) else Loop(1, 0, 0, 0, 0)
        args |= {f"n{i}": loop.count, f"a{i}": loop.a * (packed.size // groups), f"b{i}": loop.b}
        args |= {f"c{i}": loop.c, f"v{i}": loop.v}
    count = int(np.prod([loop.count for loop in loops], dtype=np.int64)) if loops else 1
    ctx.step(
        "product", args, m=m, k=k, n=n, count=count, kernel=choice.kernel.name, picked_by=choice.picked_by,
        layout=layout, macs=m * k * n * count, bytes=BYTES[dtype] * m * k * groups, act=attrs["act"], takes=shape.takes,
    )  # fmt: skip


def _in_order(weight: np.ndarray, rows: Sequence[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Weights with k in the order in which rows of B lie, the rows' offsets, or None and their one stride."""
    sizes = [d for d, _ in rows]
    order = sorted(range(len(rows)), key=lambda i: (sizes[i] > 1, -abs(rows[i][1])))
    groups, m, k = weight.shape
    weight = weight.reshape(groups, m, *sizes).transpose(0, 1, *(2 + i for i in order)).reshape(groups, m, k)
    offsets = np.zeros(1, np.int64)
    for i in order:
        offsets = (offsets[:, None] + np.arange(sizes[i]) * rows[i][1]).reshape(-1)
    steps = np.diff(offsets)
    if not len(steps):
        return weight, None, 1
    if (steps == steps[0]).all():
        return weight, None, int(steps[0])
    return weight, offsets, 0
