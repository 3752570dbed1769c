"""Ops that work along axes of their own: fine on every axis but the signal's."""

from __future__ import annotations

from pulse.errors import PulseError
from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.facts import Const, Stream, Value
from pulse.streaming.rules import Inputs, rule


def stream_of(value: Value | None) -> Stream:
    assert value is not None
    assert isinstance(value.fact, Stream)
    return value.fact


def normal_axis(axis: int, rank: int) -> int:
    return axis + rank if axis < 0 else axis


def const_ints(ctx: Context, node: Node, value: Value | None, what: str) -> list[int] | None:
    """The integers of a constant input, None where it is absent. Refuses what is only known at run time."""
    if value is None:
        return None
    if not isinstance(value.fact, Const) or value.fact.symbolic:
        raise PulseError(
            "depends-on-length",
            node=node.label,
            required=f"constant {what}",
            found=str(value.fact),
            remedy="export the model with constant parameters",
        )
    return [int(v) for v in value.fact.value.reshape(-1)]


def axes_of(ctx: Context, node: Node, inputs: Inputs, rank: int) -> list[int] | None:
    """The axes of a reduction or squeeze, from the attribute or the second input; None if not given."""
    given = node.attrs.get("axes")
    if given is None and len(inputs) > 1:
        given = const_ints(ctx, node, inputs[1], "axes")
    return None if given is None else [normal_axis(a, rank) for a in given]


def refuse_mixing(node: Node, code: str, what: str) -> PulseError:
    return PulseError(
        code,
        node=node.label,
        required=f"{what} over axes other than the signal's",
        found=f"{what} over the whole signal",
        remedy="replace it by a causal or windowed form (for example a convolution or a recurrent average), or leave "
        "this output out with --outputs",
    )


@rule("Softmax", "LogSoftmax", "Hardmax")
def softmax(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    if normal_axis(node.attrs.get("axis", -1), len(fact.shape)) == fact.axis:
        raise refuse_mixing(node, "softmax-over-stream", node.op)
    return ctx.per_frame(node, inputs, fact.axis)


@rule("LayerNormalization", "RMSNormalization")
def layer_norm(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """Normalises from `axis` to the last."""
    fact = stream_of(inputs[0])
    if normal_axis(node.attrs.get("axis", -1), len(fact.shape)) <= fact.axis:
        raise refuse_mixing(node, "reduce-over-stream", node.op)
    return ctx.per_frame(node, inputs, fact.axis)


@rule("BatchNormalization")
def batch_norm(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    if node.attrs.get("training_mode") or fact.axis == 1:
        raise refuse_mixing(node, "reduce-over-stream", node.op)
    return ctx.per_frame(node, inputs, fact.axis)


@rule("InstanceNormalization", "GroupNormalization", "LpNormalization", "LRN")
def whole_norm(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """Statistics over the spatial axes, channel groups, or given axes."""
    fact = stream_of(inputs[0])
    rank = len(fact.shape)
    if node.op == "LpNormalization":
        axes = [normal_axis(node.attrs.get("axis", -1), rank)]
    elif node.op == "LRN":
        axes = [1]
    else:
        axes = list(range(1, rank))
    if fact.axis in axes:
        raise refuse_mixing(node, "reduce-over-stream", node.op)
    return ctx.per_frame(node, inputs, fact.axis)


@rule(
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
def reduce(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    axes = axes_of(ctx, node, inputs, len(fact.shape))
    if axes is None or not axes:
        if node.attrs.get("noop_with_empty_axes"):
            return ctx.per_frame(node, inputs, fact.axis)
        axes = list(range(len(fact.shape)))
    return ctx.per_frame(node, inputs, _kept_axis(node, fact, axes, "reduce-over-stream"))


@rule("ArgMax", "ArgMin")
def arg_reduce(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    axes = [normal_axis(node.attrs.get("axis", 0), len(fact.shape))]
    return ctx.per_frame(node, inputs, _kept_axis(node, fact, axes, "sort-over-stream"))


def _kept_axis(node: Node, fact: Stream, axes: list[int], code: str) -> int:
    if fact.axis in axes:
        raise refuse_mixing(node, code, node.op)
    return fact.axis if node.attrs.get("keepdims", 1) else fact.axis - sum(a < fact.axis for a in axes)


@rule("TopK")
def top_k(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    if normal_axis(node.attrs.get("axis", -1), len(fact.shape)) == fact.axis:
        raise refuse_mixing(node, "sort-over-stream", node.op)
    return ctx.per_frame(node, inputs, fact.axis)


@rule("Dropout")
def dropout(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """At inference it does nothing."""
    training = inputs[2] if len(inputs) > 2 else None
    if training is not None and not (isinstance(training.fact, Const) and not training.fact.value.any()):
        raise refuse_mixing(node, "stateful-random", "Dropout in training mode")
    run = Node("Dropout", node.inputs[:1], node.outputs, {}, node.name)
    return ctx.per_frame(run, inputs[:1], stream_of(inputs[0]).axis)


@rule("QuantizeLinear", "DequantizeLinear")
def quantize(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """Per tensor or per channel, with scales known beforehand."""
    fact = stream_of(inputs[0])
    if any(v is not None and isinstance(v.fact, Stream) for v in inputs[1:]):
        raise refuse_mixing(node, "dynamic-quantisation", "quantisation by scales taken from the signal")
    scale = inputs[1]
    if scale is not None and len(scale.fact.dims) and node.attrs.get("block_size", 0):  # type: ignore[union-attr]
        raise refuse_mixing(node, "no-rule", "blocked quantisation")
    return ctx.per_frame(node, inputs, fact.axis)


@rule("DynamicQuantizeLinear")
def dynamic_quantize(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    raise refuse_mixing(node, "dynamic-quantisation", "quantisation by the range of the signal")


@rule("OneHot")
def one_hot(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    axis = normal_axis(node.attrs.get("axis", -1), len(fact.shape) + 1)
    return ctx.per_frame(node, inputs, fact.axis + (axis <= fact.axis))


@rule("DFT")
def dft(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """Over an axis given as attribute (opset 17) or third input (20)."""
    fact = stream_of(inputs[0])
    given = const_ints(ctx, node, inputs[2], "axis") if len(inputs) > 2 else None
    axis = given[0] if given else node.attrs.get("axis", 1 if ctx.opset < 20 else -2)
    if normal_axis(axis, len(fact.shape)) == fact.axis:
        raise refuse_mixing(node, "reduce-over-stream", node.op)
    return ctx.per_frame(node, inputs, fact.axis)


@rule("Trilu")
def trilu(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    if fact.axis >= len(fact.shape) - 2:
        raise refuse_mixing(node, "attention-unbounded", "a triangle")
    return ctx.per_frame(node, inputs, fact.axis)
