"""Reshape and Flatten: the stream axis may stay, take in an inner axis (rate up), or give one off (rate down)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from pulse.errors import PulseError
from pulse.graph.expr import Expr, NotAffine, product
from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.facts import Affine, Const, Stream, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.elementwise import two_axes
from pulse.streaming.rules.framewise import normal_axis, stream_of


@rule("Flatten")
def flatten(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    at = node.attrs.get("axis", 1)
    at = normal_axis(at, len(fact.shape))
    try:
        target = [product(fact.dims[:at]), product(fact.dims[at:])]
    except NotAffine:
        raise ctx.depends(node.label) from None
    return [_reshape(ctx, node, inputs[0], target)]


@rule("Reshape")
def reshape(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact, target = stream_of(inputs[0]), inputs[1]
    if target is None or not isinstance(target.fact, Const):
        raise ctx.depends(node.label)
    dims: list[Any] = list(target.fact.value.reshape(-1))
    if not node.attrs.get("allowzero"):
        dims = [fact.dims[i] if Expr.of(_exact(d)) == 0 and i < len(fact.dims) else d for i, d in enumerate(dims)]
    return [_reshape(ctx, node, inputs[0], [Expr.of(_exact(d)) for d in dims])]


def _exact(dim: Any) -> Any:
    return dim if isinstance(dim, (Expr, Fraction)) else int(dim)


def _reshape(ctx: Context, node: Node, value: Value | None, target: list[Expr]) -> Value:
    fact = stream_of(value)
    assert value is not None
    dims, axis = _resolve(ctx, node, fact, target)
    outer, inner = prod(fact.shape[: fact.axis]), prod(fact.shape[fact.axis + 1 :])
    rows = prod(int(d) for d in dims[:axis])
    if rows != outer:
        raise PulseError(
            "splits-stream-axis" if rows > outer else "merges-outer-axis",
            node=node.label,
            required=f"{outer} rows in front of the signal's axis, as before",
            found=f"{_show(fact.dims)} reshaped to {_show(tuple(dims))}",
            remedy="reshape so that the signal's axis only takes in axes behind it, or gives them off: transpose first",
        )
    new_inner = prod(int(d) for d in dims[axis + 1 :])
    shape = tuple(0 if i == axis else int(d) for i, d in enumerate(dims))
    if new_inner == inner:
        return _frames(ctx, node, value, shape, axis)
    if inner % new_inner == 0:
        factor = inner // new_inner
        merged = fact.on(
            affine=None,
            shape=shape,
            axis=axis,
            rate=fact.rate * factor,
            delay=fact.delay * factor,
            length=fact.length * factor,
        )
        return _emit(ctx, node, value, merged, fact.prefix)
    if new_inner % inner == 0:
        return _split(ctx, node, value, shape, axis, new_inner // inner)
    raise PulseError(
        "no-rule",
        node=node.label,
        required="the signal's axis split or merged by a whole factor",
        found=f"{_show(fact.dims)} reshaped to {_show(tuple(dims))}",
        remedy="reshape in two steps, each by a whole factor",
    )


def _frames(ctx: Context, node: Node, value: Value, shape: tuple[int, ...], axis: int) -> Value:
    """Every frame by itself, and so those of a signal that is padded by its own."""
    fact = stream_of(value)
    made = _emit(ctx, node, value, fact.on(shape=shape, axis=axis), fact.prefix)
    if value.mirror is None:
        return made
    return replace(made, mirror=replace(value.mirror, source=_frames(ctx, node, value.mirror.source, shape, axis)))


def _split(ctx: Context, node: Node, value: Value, shape: tuple[int, ...], axis: int, factor: int) -> Value:
    """(S) to (S/factor, factor): whole groups of frames, counted from the first frame."""
    whole = -(-stream_of(value).delay // factor)
    value = ctx.align(value, whole * factor)
    fact = stream_of(value)
    length = fact.length // factor
    if fact.length * Fraction(1, factor) != length:
        ctx.same_length([length * factor, fact.length], node)
    out = fact.on(shape=shape, axis=axis, rate=fact.rate / factor, delay=whole, length=length, affine=None)
    return _emit(ctx, node, value, out, fact.prefix)


def _emit(ctx: Context, node: Node, value: Value, out: Stream, prefix: np.ndarray | None) -> Value:
    dims = np.array([-1 if i == out.axis else d for i, d in enumerate(out.shape)], np.int64)
    made = ctx.emit.node("Reshape", [ctx.use(value), ctx.emit.const(dims)], outputs=node.outputs, label=node.name)[0]
    affine = None
    if out.affine is not None and out.affine.table.size == np.prod(
        [d for i, d in enumerate(out.shape) if i != out.axis]
    ):
        affine = Affine(
            out.affine.step, out.affine.table.reshape([1 if i == out.axis else d for i, d in enumerate(out.shape)])
        )
    return Value(out.on(prefix=None if prefix is None else prefix.reshape(dims), affine=affine), made)


def _resolve(ctx: Context, node: Node, fact: Stream, target: list[Expr]) -> tuple[list[Expr], int]:
    """The target dims with -1 computed, and the one that depends on the signal."""
    total = product(fact.dims)
    free = [i for i, d in enumerate(target) if d == -1]
    try:
        known = product(d for d in target if d != -1)
        dims = [_quotient(total, known) if i in free else d for i, d in enumerate(target)]
    except NotAffine:
        raise ctx.misfit(node, f"{_show(fact.dims)} reshaped to {_show(tuple(target))}") from None
    moving = [i for i, d in enumerate(dims) if not d.constant]
    if len(moving) > 1:
        raise two_axes(node, moving)
    try:
        sizes = [int(d) for i, d in enumerate(dims) if i not in moving]
    except NotAffine:
        sizes = [0]
    if len(free) > 1 or not moving or min(sizes, default=1) < 1:
        if not moving and not free:
            raise PulseError(
                "length-mismatch",
                node=node.label,
                required="a shape that follows the signal's length",
                found=f"{_show(fact.dims)} reshaped to {_show(tuple(target))}",
                remedy="the model was exported for one signal length: export it with a dynamic axis",
            )
        raise ctx.misfit(node, f"{_show(fact.dims)} reshaped to {_show(tuple(target))}")
    rest = prod(sizes)
    per_frame = prod(d for i, d in enumerate(fact.shape) if i != fact.axis)
    if dims[moving[0]] * rest != fact.length * per_frame:
        # (S//4, 4) for S, say: the model itself only runs where the sizes agree
        ctx.same_length([dims[moving[0]] * rest, fact.length * per_frame], node)
    return dims, moving[0]


def _quotient(total: Expr, known: Expr) -> Expr:
    """What -1 stands for. Where another entry follows the signal, it is their ratio in the long run: `(S//2, -1)`."""
    if known.constant or total.ratio(known) is not None:
        return total / known
    return Expr.of(total.slope / known.slope)


def _show(dims: tuple[Expr, ...]) -> str:
    return "[" + ",".join(str(d) for d in dims) + "]"
