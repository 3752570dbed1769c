"""Positions: Range over a length, tables cut to a length, and what is looked up by them."""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from pulse.errors import PulseError
from pulse.graph.expr import Expr
from pulse.graph.ir import Node
from pulse.graph.limits import frames, grain
from pulse.streaming.context import Context
from pulse.streaming.emit import np_type
from pulse.streaming.facts import Affine, Const, Stream, Uniform, Value
from pulse.streaming.rules import Inputs, rule


def frame_numbers(ctx: Context, length: Expr) -> Value:
    """The int64 stream 0, 1, 2, ... of that length, emitted as early as its frames are certain to exist."""
    rate = length.slope
    grain(rate, "a rate")
    delay = ctx.ahead(rate, length, lcm(ctx.granularity, rate.denominator))
    prefix = np.arange(frames(-delay, "a start"), dtype=np.int64) if delay < 0 else None
    fact = Stream(7, (0,), 0, rate, delay, length, prefix, Affine(1, np.zeros(1, np.int64)))
    return Value(fact, ctx.number_frames(rate, delay))


@rule("Range", uniform=True)
def range_(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """start, limit, delta: only the limit may follow the signal."""
    parts: list[Any] = []
    for value in inputs:
        if value is None or not isinstance(value.fact, Const):
            raise ctx.depends(node.label)
        parts.append(value.fact.value.reshape(-1)[0])
    start, limit, delta = parts
    dtype = inputs[1].fact.dtype  # type: ignore[union-attr]
    if any(isinstance(p, Expr) and not p.constant for p in (start, delta)):
        raise PulseError(
            "from-the-end",
            node=node.label,
            required="positions counted from the start of the signal in fixed steps",
            found=f"from {start} by {delta}",
            remedy="positions counted from the end are not known while a stream runs: leave this output out",
        )
    start, delta = (int(p) if float(p).is_integer() else float(p) for p in (start, delta))
    if delta <= 0:
        raise ctx.depends(node.label)
    numbers = frame_numbers(ctx, ((Expr.of(limit) - _exact(start)) / _exact(delta)).ceil().clamp())
    fact = numbers.fact
    assert isinstance(fact, Stream)
    name = numbers.name
    kind = np_type(dtype)
    if dtype != 7:
        name = ctx.emit.node("Cast", [name], {"to": dtype}, [f"{node.outputs[0]}.cast"])[0]
    if delta != 1:
        name = ctx.emit.node("Mul", [name, ctx.emit.const(np.array(delta, kind))], outputs=node.outputs)[0]
    if start:
        name = ctx.emit.node("Add", [name, ctx.emit.const(np.array(start, kind))], outputs=node.outputs)[0]
    affine = Affine(delta, np.array([start])) if isinstance(delta, int) and isinstance(start, int) else None
    prefix = None if fact.prefix is None else (fact.prefix * delta + start).astype(kind)
    return [Value(fact.on(dtype=dtype, prefix=prefix, affine=affine), name)]


def _exact(value: float) -> Fraction:
    return Fraction(value).limit_denominator(1 << 16)


@rule("NonZero", uniform=True)
def non_zero(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """Older exporters count frames as the non-zero entries of ones."""
    fact = inputs[0].fact if inputs[0] is not None else None
    if isinstance(fact, Uniform) and len(fact.shape) == 1 and fact.frame is not None and fact.frame.all():
        numbers = frame_numbers(ctx, fact.length)
        run = Node("Unsqueeze", ["x", "axes"], node.outputs, {}, node.name)
        axes = Value(Const.of(np.zeros(1, np.int64)), "axes")
        return ctx.per_frame(run, [numbers, axes], 1)
    raise data_dependent(node)


@rule("Compress", "Unique", "ReverseSequence", "NonMaxSuppression", "StringSplit")
def data_dependent_op(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    raise data_dependent(node)


def data_dependent(node: Node) -> PulseError:
    return PulseError(
        "data-dependent-shape",
        node=node.label,
        required="operators whose result has a size that is known beforehand",
        found=f"{node.op}, whose size depends on the values of the signal",
        remedy="leave this output out with --outputs, and select frames outside the model",
    )


def table_rows(ctx: Context, node: Node, table: Const, axis: int, start: int, length: Expr) -> Value:
    """Rows `start, start + 1, ...` of a constant table along an axis, as a stream of that length."""
    numbers = frame_numbers(ctx, length)
    fact = numbers.fact
    assert isinstance(fact, Stream)
    rows = table.value.shape[axis]
    name = numbers.name
    if start:
        name = ctx.emit.node("Add", [name, ctx.emit.const(np.array(start, np.int64))], outputs=["rows"])[0]
    name = clamped(ctx, name, 0, rows - 1)
    made = ctx.emit.node("Gather", [ctx.emit.const(table.value), name], {"axis": axis}, node.outputs, label=node.name)[
        0
    ]
    shape = tuple(0 if i == axis else d for i, d in enumerate(table.value.shape))
    prefix = None
    if fact.prefix is not None:
        prefix = np.take(table.value, np.minimum(fact.prefix + start, rows - 1), axis=axis)
    return Value(Stream(table.dtype, shape, axis, fact.rate, fact.delay, length, prefix), made)


def clamped(ctx: Context, name: str, low: int, high: int, dtype: int = 7) -> str:
    """Indices kept inside a table: frames that are not signal may hold anything."""
    kind = np_type(dtype)
    name = ctx.emit.node("Max", [name, ctx.emit.const(np.array(low, kind))], outputs=["rows.low"])[0]
    return ctx.emit.node("Min", [name, ctx.emit.const(np.array(high, kind))], outputs=["rows.clamped"])[0]
