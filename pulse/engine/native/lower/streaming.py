"""The streaming functions: histories and delays in place, tails that overlap."""

from __future__ import annotations

from pulse.engine.native.lower.context import Context, Unsupported
from pulse.engine.native.lower.elementwise import run_chain
from pulse.engine.native.passes.formulas import Instruction
from pulse.graph.ir import Node


def history(ctx: Context, node: Node) -> None:
    """pulse.History: the frames lie behind those kept, in a window that slides."""
    whole, own = ctx.window(node)
    x = ctx.view(node.inputs[0])
    if not x.same_place(own):
        ctx.copy(x, own)
    ctx.views[node.outputs[0]] = whole


def delay(ctx: Context, node: Node) -> None:
    """pulse.Delay: the same window, read from its start."""
    whole, own = ctx.window(node)
    x = ctx.view(node.inputs[0])
    if not x.same_place(own):
        ctx.copy(x, own)
    axis = node.attrs["axis"]
    ctx.put(node.outputs[0], whole.slice(axis, 0, own.shape[axis]))


def overlap_add(ctx: Context, node: Node) -> None:
    """pulse.OverlapAdd: the tail is added in place to the head of what its only reader gets."""
    name, tail = node.inputs
    axis, frames = node.attrs["axis"], node.attrs["frames"]
    full = ctx.view(name)
    if len(ctx.uses[name]) != 1 or name in ctx.net.results:
        raise Unsupported("an overlapping tail of a value that is read elsewhere")
    head = full.slice(axis, 0, frames)
    run_chain(ctx, [Instruction("add", (0, 1))], [head, ctx.view(tail)], head)
    rest = full.shape[axis] - frames
    ctx.put(node.outputs[0], full.slice(axis, 0, rest))
    if len(node.outputs) > 1 and node.outputs[1]:
        ctx.views[node.outputs[1]] = full.slice(axis, rest, frames)


def spread(ctx: Context, node: Node) -> None:
    """pulse.Spread: one frame for all of the pulse."""
    ctx.put(node.outputs[0], ctx.view(node.inputs[1]).expand(ctx.net.shape(node.outputs[0])))
