"""Padding whose values are the signal's own: edge repeats its first or last frame, reflect mirrors it there.

Padded frame `j` shows source frame `g(j)`, where `g` folds `j - before` back into the signal. With reflection in front
the first frame out needs frame `before` of the source; behind, up to `after` frames are read a second time.
"""

from __future__ import annotations

from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.facts import Mirror, Value
from pulse.streaming.mirror import mirrored
from pulse.streaming.rules.framewise import stream_of


def pad_from_signal(ctx: Context, node: Node, value: Value, pads: tuple[int, int], mode: str) -> Value:
    """Pads (before, after), both at least 0, by frames of the signal."""
    value = ctx.align(value, max(stream_of(value).delay, 0))
    fact = stream_of(value)
    mirror = Mirror(value, *pads, reflect=mode == "reflect")
    delay = fact.delay + mirror.place(0)
    name = mirrored(ctx, mirror, delay, 0, node.outputs[0])
    out = fact.on(delay=delay, length=fact.length + sum(pads), prefix=None, affine=None)
    return Value(out, name, mirror)
