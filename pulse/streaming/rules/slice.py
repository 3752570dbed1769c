"""Slice: along the signal it renames frames (from k), shortens the signal (to -k) or strides."""

from __future__ import annotations

import numpy as np

from pulse.errors import PulseError
from pulse.graph.expr import Expr
from pulse.graph.ir import Node
from pulse.graph.limits import frames, grain
from pulse.streaming.context import Context
from pulse.streaming.facts import Const, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.framewise import normal_axis, stream_of
from pulse.streaming.rules.ramp import table_rows
from pulse.streaming.window import Window, slide

FAR = 1 << 31  # from here on a bound means "to the end" (exporters write INT_MAX or INT64_MAX)


@rule("Slice")
def slice_(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    value = inputs[0]
    if value is not None and isinstance(value.fact, Const):
        return [_table(ctx, node, inputs, value.fact)]
    fact = stream_of(value)
    assert value is not None
    starts, ends, axes, steps = _parameters(node, inputs, len(fact.shape), ctx)
    rest = [i for i, a in enumerate(axes) if a != fact.axis]
    own = [i for i, a in enumerate(axes) if a == fact.axis]
    if own:
        value = _along_stream(ctx, node, value, starts[own[0]], ends[own[0]], int(steps[own[0]]))
    if not rest:
        return [value]
    arrays = [[int(p[i]) for i in rest] for p in (starts, ends, axes, steps)]
    names = ["starts", "ends", "axes", "steps"]
    constants = [Value(Const.of(np.array(a, np.int64)), n) for a, n in zip(arrays, names, strict=True)]
    run = Node("Slice", [node.inputs[0], *names], node.outputs, {}, node.name)
    return ctx.per_frame(run, [value, *constants], fact.axis)


def _table(ctx: Context, node: Node, inputs: Inputs, table: Const) -> Value:
    """A constant cut to the signal's length: position embeddings."""
    starts, ends, axes, steps = _parameters(node, inputs, len(table.value.shape), ctx)
    moving = [i for i, e in enumerate(ends) if isinstance(e, Expr) and not e.constant]
    if len(moving) != 1 or len(ends) != 1 or int(steps[0]) != 1:
        raise ctx.depends(node.label)
    start, end = Expr.of(starts[0]), Expr.of(ends[0])
    if not start.constant or int(start) < 0:
        raise ctx.depends(node.label)
    return table_rows(ctx, node, table, axes[0], int(start), (end - start).clamp())


def _parameters(node: Node, inputs: Inputs, rank: int, ctx: Context):  # type: ignore[no-untyped-def]
    lists = []
    for i in range(1, 5):
        value = inputs[i] if i < len(inputs) else None
        if value is not None and not isinstance(value.fact, Const):
            raise ctx.depends(node.label)
        lists.append(None if value is None else list(value.fact.value.reshape(-1)))  # type: ignore[union-attr]
    starts, ends, axes, steps = lists
    assert starts is not None
    assert ends is not None
    axes = [normal_axis(int(a), rank) for a in (axes if axes is not None else range(len(starts)))]
    return starts, ends, axes, steps if steps is not None else [1] * len(starts)


def _along_stream(ctx: Context, node: Node, value: Value, start: Expr, end: Expr, step: int) -> Value:
    fact = stream_of(value)
    if step < 0:
        raise PulseError(
            "reversed-axis",
            node=node.label,
            required="the signal read forwards",
            found=f"a slice with step {step} along the signal",
            remedy="a stream cannot be read backwards: leave this output out with --outputs",
        )
    first = frames(_from_start(node, Expr.of(start), fact.length), "a cut")
    grain(step, "a stride")
    length = _until(node, Expr.of(end), fact.length)
    length = (length - first).clamp()
    delay = fact.delay + first
    prefix = fact.frames(first, -fact.delay) if delay < 0 else None
    moved = fact.on(delay=delay, length=length, prefix=prefix, affine=None)
    out = Value(moved, value.name)
    if step == 1:
        return out
    window = Window(1, step, 0, ((length - 1) // step + 1).clamp())
    ints = [ctx.emit.const(np.array([v], np.int64)) for v in (0, np.iinfo(np.int64).max, fact.axis, step)]

    def run(block: str) -> str:
        return ctx.emit.node("Slice", [block, *ints], outputs=node.outputs, label=node.name)[0]

    def compute(block: np.ndarray) -> np.ndarray:
        return np.take(block, np.arange(0, block.shape[fact.axis], step), axis=fact.axis)

    return slide(ctx, out, window, 0, run, compute, fact.shape, fact.dtype)


def _from_start(node: Node, start: Expr, length: Expr) -> int:
    """Frames cut from the start. Refuses starts counted from the end."""
    if start.constant and 0 <= int(start) < FAR:
        return int(start)
    if start.constant and int(start) <= -FAR:
        return 0
    raise PulseError(
        "from-the-end",
        node=node.label,
        required="a slice that starts at a fixed frame",
        found=f"start {start} of a signal of {length} frames",
        remedy="the last frames of a signal are no stream: leave this output out with --outputs",
    )


def _until(node: Node, end: Expr, length: Expr) -> Expr:
    """Frames up to the end of the slice. Refuses ends counted from the start of the signal."""
    if end.constant and int(end) >= FAR:
        return length
    if end.constant and int(end) < 0:
        return (length + frames(int(end), "a cut")).clamp()
    if end.slope == length.slope:
        return length - (length - end).clamp()
    raise PulseError(
        "first-frames-only",
        node=node.label,
        required="a slice that goes on to the end of the signal, or to a fixed number of frames before it",
        found=f"end {end} of a signal of {length} frames",
        remedy="a fixed number of frames is no stream: leave this output out with --outputs",
    )
