"""Constants whose size is the signal's: the same frame all along (ConstantOfShape, Expand), Identity aside."""

from __future__ import annotations

import numpy as np
from onnx import helper

from pulse.errors import PulseError
from pulse.graph.expr import Expr
from pulse.graph.ir import Node
from pulse.graph.limits import numbers
from pulse.streaming.context import Context
from pulse.streaming.facts import Const, Static, Stream, Uniform, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.elementwise import two_axes


@rule("ConstantOfShape", uniform=True)
def constant_of_shape(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    dims = _dims(ctx, node, inputs[0])
    value = node.attrs.get("value", np.zeros(1, np.float32)).reshape(-1)[0]
    axis = _moving(node, dims)
    shape = numbers([1 if i == axis else int(d) for i, d in enumerate(dims)], "a constant")
    frame = np.full(shape, value, dtype=value.dtype)
    dtype = helper.np_dtype_to_tensor_dtype(frame.dtype)
    return [Value(Uniform(dtype, frame.shape, axis, dims[axis], frame), node.outputs[0])]


@rule("Expand", uniform=True)
def expand(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """Broadcasts to a shape; the signal may come from the shape or from the data."""
    value = inputs[0]
    assert value is not None
    fact = value.fact
    dims = _dims(ctx, node, inputs[1])
    own = list(fact.dims)  # type: ignore[union-attr]
    rank = max(len(own), len(dims))
    own = [Expr.of(1)] * (rank - len(own)) + own
    dims = [Expr.of(1)] * (rank - len(dims)) + dims
    target = [o if d == 1 else d for o, d in zip(own, dims, strict=True)]
    axis = _moving(node, target)
    ones = np.array([1 if i == axis else int(d) for i, d in enumerate(target)], np.int64)
    shape = Value(Const.of(ones), f"{node.outputs[0]}.shape")
    run = Node("Expand", [node.inputs[0], "shape"], node.outputs, {}, node.name)
    if isinstance(fact, Stream):
        ctx.same_length([fact.length, target[axis]], node)
        return ctx.per_frame(run, [value, shape], axis)
    if isinstance(fact, Uniform):
        ctx.same_length([fact.length, target[axis]], node)
    if isinstance(fact, (Const, Static)) and own[axis] != 1:
        raise PulseError(
            "length-mismatch",
            node=node.label,
            required="data with one frame, to be spread along the signal",
            found=f"{own[axis]} frames",
            remedy="the model was exported for one signal length: export it with a dynamic axis",
        )
    block = numbers([int(d) for d in ones], "a constant")
    constant = fact.value if isinstance(fact, Const) else fact.frame if isinstance(fact, Uniform) else None
    if constant is not None:
        frame = np.broadcast_to(constant.reshape([int(d) if i != axis else 1 for i, d in enumerate(own)]), block)
        dtype = helper.np_dtype_to_tensor_dtype(frame.dtype)
        return [Value(Uniform(dtype, block, axis, target[axis], frame), node.outputs[0])]
    name = ctx.emit.node("Expand", [ctx.use(value), ctx.use(shape)], outputs=node.outputs, label=node.name)[0]
    return [Value(Uniform(fact.dtype, block, axis, target[axis], None), name)]  # type: ignore[union-attr]


def _dims(ctx: Context, node: Node, value: Value | None) -> list[Expr]:
    if value is None or not isinstance(value.fact, Const):
        raise ctx.depends(node.label)
    return [d if isinstance(d, Expr) else Expr.of(int(d)) for d in value.fact.value.reshape(-1)]


def _moving(node: Node, dims: list[Expr]) -> int:
    axes = [i for i, d in enumerate(dims) if not d.constant]
    if len(axes) > 1:
        raise two_axes(node, axes)
    return axes[0]
