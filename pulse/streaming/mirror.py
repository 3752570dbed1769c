"""Frames of a signal padded by itself, taken from its history by position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pulse.streaming.context import Context
from pulse.streaming.facts import Mirror, Stream, Value

if TYPE_CHECKING:
    from pulse.streaming.window import Window


def mirrored(ctx: Context, mirror: Mirror, delay: int, extra: int, hint: str) -> str:
    """Emits the padded frames from index `rate*N - delay` on: as many as the pulse has, and `extra` more (or fewer)."""
    emit = ctx.emit
    fact = mirror.source.fact
    assert isinstance(fact, Stream)
    ctx.read(mirror.source)
    history = max(delay - fact.delay + mirror.before + mirror.after * (2 if mirror.reflect else 1), 0)
    block = ctx.history(mirror.source.name, fact, history, 0)

    def number(v: int) -> str:
        return emit.const(np.array(v, np.int64))

    def op(name: str, *inputs: str) -> str:
        return emit.node(name, inputs, outputs=[f"{hint}.{name.lower()}"])[0]

    numbers = ctx.number_frames(fact.rate, delay)
    first = emit.node("ReduceMin", [numbers], {"keepdims": 0}, [f"{hint}.first"])[0]
    place = numbers  # j
    if extra:
        count = op("Add", op("Gather", op("Shape", numbers), number(0)), number(extra))
        place = op("Add", op("Range", number(0), count, number(1)), first)
    if mirror.before:
        place = op("Sub", place, number(mirror.before))
        place = op("Abs", place) if mirror.reflect else op("Max", place, number(0))
    if mirror.after:
        # 2*(length - 1) - j on the far side of the last frame; nothing while the length is unknown
        length = emit.length(fact.length)
        last = op("Sub", length, number(1))
        folded = op("Sub", op("Add", last, last), place) if mirror.reflect else last
        unknown = op("Less", length, number(0))
        place = op("Where", unknown, place, op("Min", place, folded))
    # counted from the first frame of the block, which is source frame rate*N - (source delay) - history
    origin = op("Add", first, number(delay - fact.delay - history))
    frames = op("Gather", op("Shape", block), number(fact.axis))
    inside = op("Min", op("Max", op("Sub", place, origin), number(0)), op("Sub", frames, number(1)))
    return emit.node("Gather", [block, inside], {"axis": fact.axis}, [f"{hint}.mirrored"])[0]


def window_over(ctx: Context, value: Value, window: Window, hint: str) -> tuple[str, int] | None:
    """The block that a window op reads of a mirrored signal, and the op's output delay; None if it must not look
    behind the padding. This saves the delay of the padding: its frames need not pass one by one."""
    mirror, fact = value.mirror, value.fact
    if mirror is None or window.before or not isinstance(fact, Stream) or window.reads_past_end(fact.length):
        return None
    source = mirror.source.fact
    assert isinstance(source, Stream)
    stride = window.stride
    # The first window waits longest: from one to the next, what is read moves on by a stride at most.
    newest = max(mirror.place(0), mirror.place(window.extent - 1))
    delay = max(-(-(newest + source.delay + 1) // stride) - 1, 0)
    return mirrored(ctx, mirror, delay * stride, window.extent - stride, hint), delay
