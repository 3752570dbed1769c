"""Reductions, running sums, and what relates values to their whole row."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pulse.engine.native.lower.context import Context, Unsupported, merged, ref
from pulse.engine.native.memory import View
from pulse.engine.native.plan import Field, Ref
from pulse.graph.ir import Node

KINDS = {
    "ReduceSum": 0,
    "ReduceMean": 0,
    "ReduceSumSquare": 1,
    "ReduceL1": 2,
    "ReduceProd": 3,
    "ReduceMax": 4,
    "ReduceMin": 5,
}
NORMS = ("softmax", "log_softmax", "layer", "root_mean_square", "l2", "l1")


def axes_of(ctx: Context, node: Node) -> list[int]:
    """Axes of a reduction, from its attribute or second input; all by default."""
    rank = len(ctx.net.shape(node.inputs[0]))
    given = node.attrs.get("axes")
    if node.input(1):
        array = ctx.net.constants.get(node.inputs[1])
        if array is None:
            raise Unsupported("axes that are computed")
        given = array.reshape(-1).tolist()
    if not given:
        return [] if node.attrs.get("noop_with_empty_axes") else list(range(rank))
    return sorted(int(a) % rank for a in given)


def reduce(ctx: Context, node: Node) -> None:
    """A reduction with one pass over its input."""
    x, axes = ctx.view(node.inputs[0]), axes_of(ctx, node)
    kept = tuple(1 if i in axes else d for i, d in enumerate(x.shape))
    y = ctx.out(node.outputs[0])
    target = y.reshape(kept)
    made = target if target is not None else ctx.fresh(kept)
    outer = merged(kept, made.strides, x.strides)
    sizes = [x.shape[a] for a in axes]
    strides = [x.strides[a] for a in axes]
    inner = merged(sizes, strides)
    if len(outer) > 3 or len(inner) > 2:
        raise Unsupported("a reduction over axes that do not merge")
    outer = [(1, 0, 0)] * (3 - len(outer)) + outer
    inner = [(1, 0)] * (2 - len(inner)) + inner
    scale = 1 / max(int(np.prod(sizes)), 1) if node.op == "ReduceMean" else 1.0
    args: dict[str, Field] = {"x": ref(x), "y": ref(made), "kind": KINDS[node.op], "scale": float(scale)}
    args |= {f"n{i}": d[0] for i, d in enumerate(outer)} | {f"y{i}": d[1] for i, d in enumerate(outer)}
    args |= {f"x{i}": d[2] for i, d in enumerate(outer)}
    args |= {f"r{i}": d[0] for i, d in enumerate(inner)} | {f"s{i}": d[1] for i, d in enumerate(inner)}
    ctx.step("reduce", args)
    if target is None:
        again = made.reshape(y.shape)
        assert again is not None
        ctx.copy(again, y)


def cumsum(ctx: Context, node: Node) -> None:
    axis_array = ctx.net.constants.get(node.inputs[1])
    if axis_array is None:
        raise Unsupported("an axis that is computed")
    x, y = ctx.view(node.inputs[0]), ctx.out(node.outputs[0])
    axis = int(axis_array.reshape(-1)[0]) % len(x.shape)
    last = x.shape[axis] - 1 if node.attrs.get("reverse") else 0
    sign = -1 if last else 1
    outer = _others(x, y, (axis,))
    args: dict[str, Field] = {
        "x": Ref(x.buffer, x.offset + last * x.strides[axis]), "xt": sign * x.strides[axis],
        "y": Ref(y.buffer, y.offset + last * y.strides[axis]), "yt": sign * y.strides[axis],
        "exclusive": int(bool(node.attrs.get("exclusive"))), "steps": x.shape[axis],
    }  # fmt: skip
    ctx.step("running_sum", args | outer)


def softmax(ctx: Context, node: Node) -> None:
    axis = node.attrs.get("axis", -1)
    normalise(ctx, node, "softmax" if node.op == "Softmax" else "log_softmax", (axis,))


def layer_norm(ctx: Context, node: Node) -> None:
    """LayerNormalization, RMSNormalization"""
    if any(node.outputs[1:]):
        raise Unsupported("mean and deviation as outputs")
    rank = len(ctx.net.shape(node.inputs[0]))
    first = node.attrs.get("axis", -1) % rank
    scale, bias = (ctx.net.constants.get(node.input(i)) if node.input(i) else None for i in (1, 2))
    if any(node.input(i) and node.inputs[i] not in ctx.net.constants for i in (1, 2)):
        raise Unsupported("a scale that is computed")
    kind = "layer" if node.op == "LayerNormalization" else "root_mean_square"
    normalise(ctx, node, kind, tuple(range(first, rank)), node.attrs.get("epsilon", 1e-5), scale, bias)


def lp_norm(ctx: Context, node: Node) -> None:
    """LpNormalization"""
    normalise(ctx, node, "l1" if node.attrs.get("p", 2) == 1 else "l2", (node.attrs.get("axis", -1),))


def normalise(
    ctx: Context, node: Node, kind: str, axes: tuple[int, ...], epsilon: float = 0.0,
    scale: np.ndarray | None = None, bias: np.ndarray | None = None,
) -> None:  # fmt: skip
    """Rows over `axes`, which must merge; if they do not, a copy in which they do is worked on."""
    x, name = ctx.view(node.inputs[0]), node.outputs[0]
    rank = len(x.shape)
    axes = tuple(a % rank for a in axes)
    order = (*(i for i in range(rank) if i not in axes), *axes)
    y = ctx.out(name, order)
    line = merged([x.shape[a] for a in axes], [x.strides[a] for a in axes], [y.strides[a] for a in axes])
    if len(line) > 1 or not _in_order(x, axes):
        made = ctx.fresh(x.shape, order)
        ctx.copy(x, made)
        x = made
    target = y
    if len(line) > 1 or not _in_order(y, axes):
        y = ctx.fresh(x.shape, order)
    count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    inner = [a for a in axes if x.shape[a] > 1] or [axes[-1]]
    padded = -(-count // ctx.lanes) * ctx.lanes

    def full(values: np.ndarray | None) -> Ref | None:
        if values is None:
            return None
        row = np.zeros(padded, np.float32)
        row[:count] = np.broadcast_to(values, [x.shape[a] for a in axes]).reshape(-1)
        return Ref(ctx.weights.put(row))

    args: dict[str, Field] = {
        "x": ref(x), "y": ref(y), "kind": NORMS.index(kind), "epsilon": float(epsilon), "scale": full(scale),
        "bias": full(bias), "row": ctx.fresh((padded,)), "n": count,
        "xs": x.strides[inner[-1]], "ys": y.strides[inner[-1]],
    }  # fmt: skip
    ctx.step("normalise", args | _others(x, y, axes))
    if y is not target:
        ctx.copy(y, target)


def _in_order(x: View, axes: tuple[int, ...]) -> bool:
    """Whether the axes, in this order, are one line in memory."""
    long = [a for a in axes if x.shape[a] > 1]
    return all(x.strides[a] == x.strides[b] * x.shape[b] for a, b in pairwise(long))


def _others(x: View, y: View, axes: tuple[int, ...]) -> dict[str, Field]:
    """Loops over all other axes."""
    rest = [i for i in range(len(x.shape)) if i not in axes]
    loops = merged([x.shape[i] for i in rest], [y.strides[i] for i in rest], [x.strides[i] for i in rest])
    if len(loops) > 3:
        raise Unsupported("rows over more than three axes that do not merge")
    loops = [(1, 0, 0)] * (3 - len(loops)) + loops
    found: dict[str, Field] = {}
    for i, (count, ys, xs) in enumerate(loops):
        found |= {f"n{i}": count, f"y{i}": ys, f"x{i}": xs}
    return found
