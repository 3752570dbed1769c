"""CumSum along the signal carries its last sum on; along another axis it is each frame's own affair."""

from __future__ import annotations

import numpy as np

from pulse.errors import PulseError
from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.facts import Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.framewise import const_ints, normal_axis, stream_of


@rule("CumSum")
def cumsum(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    value = inputs[0]
    fact = stream_of(value)
    assert value is not None
    axis = normal_axis((const_ints(ctx, node, inputs[1], "axis") or [0])[0], len(fact.shape))
    if axis != fact.axis:
        return ctx.per_frame(node, inputs, fact.axis)
    if node.attrs.get("reverse"):
        raise PulseError(
            "reversed-axis",
            node=node.label,
            required="a sum that runs forward along the signal",
            found="a sum from the end",
            remedy="a stream cannot be read backwards: leave this output out with --outputs",
        )
    exclusive = bool(node.attrs.get("exclusive"))
    # Frames before the signal must not be summed; what comes past the end does no harm.
    block = ctx.masked(value, 0, start=True, end=False)
    state = ctx.emit.open_state(f"{node.outputs[0]}.sum", fact.block(1), fact.dtype)
    prefix, carried = None, None
    if fact.delay < 0:
        known = fact.frames(0, -fact.delay)
        total = np.cumsum(known, axis=axis, dtype=known.dtype)
        carried = np.take(total, [-1], axis=axis)
        prefix = total - known if exclusive else total
    current = ctx.emit.current(state, carried)
    sums = ctx.emit.node(
        "CumSum", [block, ctx.use(inputs[1])], dict(node.attrs), [f"{node.outputs[0]}.own"], label=node.name
    )[0]
    made = ctx.emit.node("Add", [sums, current], outputs=node.outputs)[0]
    last = _last(ctx, made, axis)
    if exclusive:
        last = ctx.emit.node("Add", [last, _last(ctx, block, axis)], outputs=[f"{state.input}.out"])[0]
    ctx.emit.finish(state, last)
    return [Value(fact.on(prefix=prefix), made)]


def _last(ctx: Context, name: str, axis: int) -> str:
    ints = [ctx.emit.const(np.array([v], np.int64)) for v in (-1, np.iinfo(np.int64).max, axis)]
    return ctx.emit.node("Slice", [name, *ints], outputs=[f"{name}.last"])[0]
