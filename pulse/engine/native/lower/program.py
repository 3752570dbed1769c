"""From a net to a plan: ports, states and scalars, then every node in order, then states that must be put back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx

from pulse.engine.native.lower import (
    conv_transpose,
    depthwise,
    elementwise,
    integers,
    matmul,
    pool,
    product,
    recurrent,
    reduce,
    shapes,
    streaming,
)
from pulse.engine.native.lower.context import INTEGERS, SLIDING, Context, Unsupported, refuse
from pulse.engine.native.lower.integers import integer
from pulse.engine.native.memory import ALIGN, Buffer, View, dense
from pulse.engine.native.net import Net
from pulse.engine.native.passes.canonical import NATIVE
from pulse.engine.native.passes.chains import FLOATS
from pulse.engine.native.plan import Plan, WeightStore
from pulse.engine.pick import Picks
from pulse.errors import PulseError
from pulse.graph.ir import Node
from pulse.streaming.functions import DOMAIN

Rule = Callable[[Context, Node], None]
RULES: dict[tuple[str, str], Rule] = {
    (NATIVE, "Linear"): product.linear,
    (NATIVE, "Conv"): depthwise.convolution,
    (NATIVE, "ConvTranspose"): conv_transpose.conv_transpose,
    (NATIVE, "Chain"): elementwise.chain,
    ("", "GRU"): recurrent.gru,
    (DOMAIN, "GRU"): recurrent.gru,
    (DOMAIN, "History"): streaming.history,
    (DOMAIN, "Frames"): integers.frames,
    (DOMAIN, "Spread"): streaming.spread,
    (DOMAIN, "Delay"): streaming.delay,
    (DOMAIN, "OverlapAdd"): streaming.overlap_add,
    (DOMAIN, "Mask"): elementwise.mask,
    (DOMAIN, "MaskStart"): elementwise.mask,
    (DOMAIN, "MaskEnd"): elementwise.mask,
    ("", "Reshape"): shapes.reshape,
    ("", "Transpose"): shapes.transpose,
    ("", "Concat"): shapes.concat,
    ("", "Split"): shapes.split,
    ("", "Slice"): shapes.slice_,
    ("", "Expand"): shapes.expand,
    ("", "Gather"): shapes.gather,
    ("", "Pad"): shapes.pad,
    ("", "Tile"): shapes.tile,
    ("", "LSTM"): recurrent.lstm,
    (DOMAIN, "LSTM"): recurrent.lstm,
    ("", "RNN"): recurrent.rnn,
    (DOMAIN, "RNN"): recurrent.rnn,
    **{("", op): reduce.reduce for op in reduce.KINDS},
    ("", "CumSum"): reduce.cumsum,
    ("", "Softmax"): reduce.softmax,
    ("", "LogSoftmax"): reduce.softmax,
    ("", "LayerNormalization"): reduce.layer_norm,
    ("", "RMSNormalization"): reduce.layer_norm,
    ("", "LpNormalization"): reduce.lp_norm,
    ("", "MaxPool"): pool.pool,
    ("", "AveragePool"): pool.pool,
    ("", "MatMul"): matmul.matmul,
    ("", "Einsum"): matmul.einsum,
}
# Integers and truths that depend on position and length only.
SCALARS = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Mod": "mod", "Min": "min", "Max": "max", "Less": "less",
    "Equal": "equal", "Where": "where", "And": "and", "Or": "or",
}  # fmt: skip
_WHOLE = (*INTEGERS, onnx.TensorProto.BOOL)
_KNOWN = (*FLOATS, *INTEGERS)


@dataclass
class Layout:
    """Where a stream's state lies: what programs of all widths must agree on.

    Attributes:
        block: floats outside windows; windows: (floats per frame, frames) each.
        homes: per state its view, in a buffer of kind "state" or "window"; scalars: states that are integers.
        initials: what states start as where that is constant and not zero.
    """

    block: int
    windows: list[tuple[int, int]]
    homes: dict[str, View]
    scalars: list[str]
    initials: dict[str, np.ndarray]


def lower(net: Net, isa: str, weights: WeightStore, picker: Picks | None = None) -> tuple[Plan, Layout]:
    """The plan of a net. Raises PulseError `engine-unsupported` at the first node without a native form."""
    ctx = Context(net, isa, weights, picker)
    _ports(ctx)
    layout = _states(ctx)
    _starts(ctx)
    for node in net.nodes:
        ctx.at(node)
        try:
            if not _scalar(ctx, node) and not integer(ctx, node):
                rule = RULES.get((node.domain, node.op))
                if rule is None or any(net.types[o][0] not in _KNOWN for o in node.outputs if o):
                    raise Unsupported(node.op)
                rule(ctx, node)
        except Unsupported as error:
            raise refuse(node, str(error)) from None
    _finish(ctx)
    layout.homes = ctx.homes
    layout.windows = _window_shapes(ctx)
    return ctx.plan, layout


def _ports(ctx: Context) -> None:
    info = ctx.net.info
    for number, port in enumerate([*info.inputs, *info.outputs]):
        if port.dtype != onnx.TensorProto.FLOAT:
            raise PulseError(
                "engine-unsupported",
                node=port.name,
                required="inputs and outputs of float32",
                found=onnx.TensorProto.DataType.Name(port.dtype),
                remedy="choose --engine onnxruntime for this model",
            )
        kind = "input" if number < len(info.inputs) else "output"
        shape = tuple(port.frames(ctx.net.width) if i == port.axis else int(d) for i, d in enumerate(port.shape))
        buffer = Buffer(kind, int(np.prod(shape, dtype=np.int64)), index=number)
        ctx.plan.ports.append(buffer)
        if kind == "input":
            ctx.views[port.name] = dense(buffer, shape, range(len(shape)))


def _states(ctx: Context) -> Layout:
    info, plan = ctx.net.info, ctx.plan
    scalars: list[str] = []
    for state in info.states:
        uses = ctx.uses.get(state.input, [])
        if state.dtype == onnx.TensorProto.INT64 and not state.shape:
            ctx.slots[state.input] = plan.scalars.slot()
            scalars.append(state.input)
        elif state.dtype != onnx.TensorProto.FLOAT:
            raise PulseError(
                "engine-unsupported",
                node=state.input,
                required="states of float32",
                found=onnx.TensorProto.DataType.Name(state.dtype),
                remedy="choose --engine onnxruntime for this model",
            )
        elif uses and all(n.domain == DOMAIN and n.op in SLIDING and n.inputs[1] == state.input for n in uses):
            ctx.window_of[state.input] = len(plan.windows)
            plan.windows.append(Buffer("window", 0))
            plan.advances.append(0)
        else:
            size = int(np.prod(state.shape, dtype=np.int64))
            start, ctx.block.size = ctx.block.size, ctx.block.size + -(-size // ALIGN) * ALIGN
            view = dense(ctx.block, state.shape, range(len(state.shape)), offset=start)
            ctx.homes[state.input] = ctx.views[state.input] = view
    if info.length:
        ctx.slots[info.length] = plan.length = plan.scalars.slot()
    initials = {s: v for s, v in ctx.net.initials.items() if isinstance(v, np.ndarray)}
    return Layout(ctx.block.size, [], {}, scalars, initials)


def _starts(ctx: Context) -> None:
    """States that start as an input: copied in before the first pulse's steps."""
    for state, initial in ctx.net.initials.items():
        if not isinstance(initial, str):
            continue
        if state in ctx.window_of:
            node = ctx.uses[state][0]
            ctx.at(node)
            ctx.window(node)
        assert ctx.net.info.position is not None
        start = ctx.plan.scalars.compute("equal", ctx.slot(ctx.net.info.position), ctx.plan.scalars.constant(0))
        ctx.copy(ctx.view(initial).expand(ctx.homes[state].shape), ctx.homes[state], start)


def _scalar(ctx: Context, node: Node) -> bool:
    """Adds a node of integer arithmetic to the scalars; False if it is none."""
    net = ctx.net
    if node.domain or node.op not in SCALARS or net.types[node.outputs[0]][0] not in _WHOLE:
        return False
    names = [*node.inputs, node.outputs[0]]
    if any(net.types[n][0] not in _WHOLE or np.prod(net.shape(n)) != 1 for n in names):
        return False
    if any(n not in ctx.slots and n not in net.constants for n in node.inputs):
        return False
    ctx.slots[node.outputs[0]] = ctx.plan.scalars.compute(SCALARS[node.op], *(ctx.slot(n) for n in node.inputs))
    return True


def _finish(ctx: Context) -> None:
    """Outputs and states that lie elsewhere are copied to where they belong."""
    info, plan = ctx.net.info, ctx.plan
    for port in info.outputs:
        target = ctx.target(port.name)
        assert target is not None
        if not ctx.views[port.name].same_place(target):
            ctx.copy(ctx.views[port.name], target)
    moves = []
    for state in info.states:
        if state.input in ctx.slots:
            plan.kept += [ctx.slots[state.input], ctx.slot(state.output)]
        elif state.input not in ctx.window_of:
            view, home = ctx.view(state.output), ctx.homes[state.input]
            if not view.same_place(home):
                moves.append((view, home))
    aside = []
    for view, home in moves:
        if view.buffer is ctx.block:  # may be overwritten by another of these copies
            kept = ctx.fresh(view.shape)
            ctx.copy(view, kept)
            view = kept
        aside.append((view, home))
    for view, home in aside:
        ctx.copy(view, home)


def _window_shapes(ctx: Context) -> list[tuple[int, int]]:
    shapes: list[tuple[int, int]] = [(0, 0)] * len(ctx.plan.windows)
    for state, index in ctx.window_of.items():
        axis = next(n.attrs["axis"] for n in ctx.uses[state])
        view = ctx.homes[state]
        frames = view.shape[axis]
        frame = ctx.plan.windows[index].size // (frames + ctx.plan.advances[index])
        shapes[index] = (frame, frames)
    return shapes
