"""Elementwise ops: every frame by itself, inputs broadcast against each other."""

from __future__ import annotations

import numpy as np

from pulse.errors import PulseError
from pulse.graph.expr import Expr
from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.facts import Const, Static, Stream, Uniform, Value
from pulse.streaming.rules import Inputs, rule

# fmt: off
UNARY = [
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Cast", "CastLike", "Ceil", "Celu", "Clip",
    "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN",
    "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin",
    "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu",
]
BROADCAST = [
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "PRelu", "Sub", "Sum", "Where", "Xor",
]
# fmt: on


@rule(*UNARY, *BROADCAST, uniform=True)
def elementwise(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """The stream axis, counted from the right, must be the same in all streams."""
    rank = max(len(v.fact.dims) for v in inputs if v is not None)  # type: ignore[union-attr]
    positions = {}
    for value in inputs:
        if value is not None and isinstance(value.fact, (Stream, Uniform)):
            positions[value.fact.axis + rank - len(value.fact.dims)] = value
    if not positions:  # numbers computed from the length alone, in a way that no expression has
        raise ctx.depends(node.label)
    if len(positions) > 1:
        raise two_axes(node, sorted(positions))
    axis = next(iter(positions))
    check_broadcast(ctx, node, inputs, axis, rank)
    streams = [v for v in inputs if v is not None and isinstance(v.fact, Stream)]
    if streams:
        uniforms = [v.fact.length for v in inputs if v is not None and isinstance(v.fact, Uniform)]
        first = streams[0].fact
        assert isinstance(first, Stream)
        ctx.same_length([first.length, *uniforms], node)
        return ctx.per_frame(node, inputs, axis)
    return _uniform(ctx, node, inputs, axis)


def _uniform(ctx: Context, node: Node, inputs: Inputs, axis: int) -> list[Value]:
    """No stream among the inputs: one frame says it all."""
    given = [v for v in inputs if v is not None]
    facts = [v.fact for v in given]
    length = ctx.same_length([f.length for f in facts if isinstance(f, Uniform)], node)
    found = ctx.shapes(node, inputs)
    if all(isinstance(f, Const) or (isinstance(f, Uniform) and f.frame is not None) for f in facts):
        arrays = [None if v is None else _frame(v) for v in inputs]
        frames = ctx.evaluate(node, arrays)
        return [
            Value(Uniform(dtype, shape, axis, length, f), name)
            for f, (dtype, shape), name in zip(frames, found, node.outputs, strict=True)
        ]
    names = ctx.emit.node(node.op, [ctx.use(v) for v in inputs], node.attrs, node.outputs, label=node.name)
    return [Value(Uniform(dtype, shape, axis, length, None), n) for n, (dtype, shape) in zip(names, found, strict=True)]


def _frame(value: Value) -> np.ndarray | None:
    return value.fact.value if isinstance(value.fact, Const) else value.fact.frame  # type: ignore[union-attr]


def check_broadcast(ctx: Context, node: Node, inputs: Inputs, axis: int, rank: int) -> None:
    """Constants may not have more than one frame where a stream has its signal axis."""
    for value in inputs:
        if value is None or not isinstance(value.fact, (Const, Static)):
            continue
        own = axis - (rank - len(value.fact.dims))
        if own >= 0 and value.fact.dims[own] != Expr.of(1):
            raise PulseError(
                "length-mismatch",
                node=node.label,
                required="a constant that is the same for every frame",
                found=f"a constant with {value.fact.dims[own]} frames along the signal's axis",
                remedy="the model was exported for one signal length: export it with a dynamic axis",
            )


def two_axes(node: Node, axes: list[int]) -> PulseError:
    return PulseError(
        "two-streaming-axes",
        node=node.label,
        required="the signal on one axis of the result",
        found=f"it would be on axes {' and '.join(map(str, axes))}",
        remedy="values of S x S size have no streaming form; limit the model's context, for example by convolutions",
    )
