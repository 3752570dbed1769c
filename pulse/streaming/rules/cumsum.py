"""CumSum along the signal carries its last sum on; along another axis it is each frame's own affair."""

from __future__ import annotations

import numpy as np

from pulse.errors import PulseError
from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.emit import np_type
from pulse.streaming.facts import Const, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.framewise import const_ints, normal_axis, stream_of


@rule("CumSum")
def cumsum(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    value = inputs[0]
    fact = stream_of(value)
    assert value is not None
    axis = normal_axis((const_ints(ctx, node, inputs[1], "axis") or [0])[0], len(fact.shape))
    # Exporters write an axis of shape [1], which runtimes take and the standard does not.
    number = Value(Const.of(np.array(axis, np.int64)), "axis")
    if axis != fact.axis:
        return ctx.per_frame(node, [value, number], fact.axis)
    if node.attrs.get("reverse"):
        raise PulseError(
            "reversed-axis",
            node=node.label,
            required="a sum that runs forward along the signal",
            found="a sum from the end",
            remedy="a stream cannot be read backwards: leave this output out with --outputs",
        )
    # Frames before the signal must not be summed; what comes past the end does no harm.
    block = ctx.masked(value, 0, start=True, end=False)
    state = ctx.emit.open_state(f"{node.outputs[0]}.sum", fact.block(1), fact.dtype)
    prefix, carried = None, None
    if fact.delay < 0:
        prefix = np.cumsum(fact.frames(0, -fact.delay), axis=axis, dtype=np_type(fact.dtype))
        carried = np.take(prefix, [-1], axis=axis)
    current = ctx.emit.current(state, carried)
    name = f"{node.outputs[0]}.own"
    sums = ctx.emit.node("CumSum", [block, ctx.use(number)], {}, [name], label=node.name)[0]
    made = ctx.emit.node("Add", [sums, current], outputs=node.outputs)[0]
    ctx.emit.finish(state, _last(ctx, made, axis))
    out = fact.on(prefix=prefix, affine=None)
    if node.attrs.get("exclusive"):
        # The sum of what came before is the last frame's sum: the same frames, each counted one later.
        zero = np.zeros(fact.block(1), np_type(fact.dtype))
        prefix = np.concatenate([zero, out.frames(0, max(-fact.delay, 0))], axis=axis) if fact.delay < 1 else None
        out = out.on(delay=fact.delay - 1, prefix=prefix)
    return [Value(out, made)]


def _last(ctx: Context, name: str, axis: int) -> str:
    ints = [ctx.emit.const(np.array([v], np.int64)) for v in (-1, np.iinfo(np.int64).max, axis)]
    return ctx.emit.node("Slice", [name, *ints], outputs=[f"{name}.last"])[0]
