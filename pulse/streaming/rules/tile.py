"""Tile: copies on other axes frame by frame; along the signal only of what is the same in every frame."""

from __future__ import annotations

import numpy as np

from pulse.errors import PulseError
from pulse.graph.expr import Expr
from pulse.graph.ir import Node
from pulse.graph.limits import numbers
from pulse.streaming.context import Context
from pulse.streaming.facts import Const, Static, Stream, Uniform, Value
from pulse.streaming.rules import Inputs, rule


@rule("Tile", uniform=True)
def tile(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    value, repeats = inputs[0], inputs[1]
    if value is None or repeats is None or not isinstance(repeats.fact, Const):
        raise ctx.depends(node.label)
    counts = [r if isinstance(r, Expr) else Expr.of(int(r)) for r in repeats.fact.value.reshape(-1)]
    moving = [i for i, c in enumerate(counts) if not c.constant]
    fact = value.fact
    if isinstance(fact, (Const, Static)) and len(moving) == 1 and fact.dims[moving[0]] == 1:
        return [_spread(ctx, node, value, counts, moving[0])]
    if isinstance(fact, Uniform):
        value = ctx.materialise(value)
        fact = value.fact
    if moving or not isinstance(fact, Stream) or counts[fact.axis] != 1:
        raise PulseError(
            "depends-on-length",
            node=node.label,
            required="copies along axes other than the signal's",
            found=f"repeats {', '.join(map(str, counts))}",
            remedy="a signal repeated after its end is no stream: leave this output out with --outputs",
        )
    return ctx.per_frame(node, [value, repeats], fact.axis)


def _spread(ctx: Context, node: Node, value: Value, counts: list[Expr], axis: int) -> Value:
    """One frame as often as the signal is long."""
    once = np.array([1 if i == axis else int(c) for i, c in enumerate(counts)], np.int64)
    fact = value.fact
    shape = numbers([int(d) * int(n) for d, n in zip(fact.dims, once, strict=True)], "a constant")  # type: ignore[union-attr]
    if isinstance(fact, Const):
        return Value(Uniform(fact.dtype, shape, axis, counts[axis], np.tile(fact.value, once)), node.outputs[0])
    name = ctx.emit.node("Tile", [ctx.use(value), ctx.emit.const(once)], outputs=node.outputs, label=node.name)[0]
    return Value(Uniform(fact.dtype, shape, axis, counts[axis], None), name)  # type: ignore[union-attr]
