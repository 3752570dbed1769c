"""Concat: streams joined on another axis; along the signal, constant frames before or behind it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pulse.errors import PulseError
from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.emit import np_type
from pulse.streaming.facts import Const, Stream, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.elementwise import two_axes
from pulse.streaming.rules.framewise import normal_axis, stream_of
from pulse.streaming.rules.ramp import clamped


@rule("Concat")
def concat(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    streams = [stream_of(v) for v in inputs if v is not None and isinstance(v.fact, Stream)]
    axes = sorted({s.axis for s in streams})
    if len(axes) > 1:
        raise two_axes(node, axes)
    axis = normal_axis(node.attrs["axis"], len(streams[0].shape))
    if axis == axes[0]:
        return [_along_stream(ctx, node, inputs, axis)]
    if len(streams) < sum(v is not None for v in inputs):
        raise ctx.misfit(node, "a constant of fixed length beside the signal")
    return ctx.per_frame(node, inputs, axes[0])


def _joined_in_time(node: Node, several: bool) -> PulseError:
    kept = "if these are a cache, export the model without it: pulse adds and keeps the state itself"
    return PulseError(
        "concat-over-stream",
        node=node.label,
        required="along the stream axis, one signal and constants",
        found="two signals, end to end" if several else "a signal and values known only at run time",
        remedy="join them on another axis, or leave this output out with --outputs" if several else kept,
    )


def _along_stream(ctx: Context, node: Node, inputs: Inputs, axis: int) -> Value:
    """Frames ahead are a prefix; frames behind take the place of what comes past the end."""
    places = [i for i, v in enumerate(inputs) if v is not None and isinstance(v.fact, Stream)]
    others = [v for i, v in enumerate(inputs) if i not in places]
    if len(places) > 1 or any(v is None or not isinstance(v.fact, Const) for v in others):
        raise _joined_in_time(node, several=len(places) > 1)
    value = inputs[places[0]]
    fact = stream_of(value)
    assert value is not None
    before = _frames(inputs[: places[0]], fact, axis)
    after = _frames(inputs[places[0] + 1 :], fact, axis)
    b, a = before.shape[axis], after.shape[axis]
    ctx.read(value)
    delay = fact.delay - b
    name = value.name
    out = fact.on(delay=delay, length=fact.length + b + a, prefix=None, affine=None)
    if fact.delay > 0 and b:
        number = ctx.number_frames(fact.rate, delay)
        name = _instead(ctx, node, name, before, out, number, "Less", ctx.emit.const(np.array(b, np.int64)))
    if a:
        length = ctx.emit.length(fact.length + b)
        number = ctx.number_frames(fact.rate, delay)
        past = ctx.emit.node("Sub", [number, length], outputs=["past"])[0]
        # while the length is unknown (negative), no frame is past it
        known = ctx.emit.node("GreaterOrEqual", [length, ctx.emit.const(np.array(0, np.int64))], outputs=["known"])[0]
        late = ctx.emit.node("GreaterOrEqual", [past, ctx.emit.const(np.array(0, np.int64))], outputs=["late"])[0]
        chosen = ctx.emit.node("And", [known, late], outputs=["behind"])[0]
        name = _choose(ctx, node, name, after, out, past, chosen)
    if delay < 0:
        known_frames = fact.frames(0, max(-fact.delay, 0))
        lead = np.take(before, np.arange(min(b, -delay)), axis=axis)
        out = out.on(prefix=np.concatenate([lead, known_frames], axis=axis))
    return Value(out, name)


def _frames(values: Sequence[Value | None], fact: Stream, axis: int) -> np.ndarray:
    arrays = [v.fact.value for v in values if v is not None]  # type: ignore[union-attr]
    return np.concatenate([np.zeros(fact.block(0), np_type(fact.dtype)), *arrays], axis=axis)


def _instead(
    ctx: Context, node: Node, name: str, frames: np.ndarray, out: Stream, number: str, test: str, bound: str
) -> str:
    chosen = ctx.emit.node(test, [number, bound], outputs=["ahead"])[0]
    return _choose(ctx, node, name, frames, out, number, chosen)


def _choose(ctx: Context, node: Node, name: str, frames: np.ndarray, out: Stream, number: str, chosen: str) -> str:
    """`frames[number]` where chosen, else the block as it is."""
    emit = ctx.emit
    rows = clamped(ctx, number, 0, frames.shape[out.axis] - 1)
    table = emit.node("Gather", [emit.const(frames), rows], {"axis": out.axis}, [f"{node.outputs[0]}.frames"])[0]
    column = emit.const(np.array([-1 if i == out.axis else 1 for i in range(len(out.shape))], np.int64))
    mask = emit.node("Reshape", [chosen, column], outputs=["chosen"])[0]
    return emit.node("Where", [mask, table, name], outputs=node.outputs, label=node.name)[0]
