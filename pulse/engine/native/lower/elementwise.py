"""Chains of elementwise operations, and masks."""

from __future__ import annotations

from pulse.engine.native.lower.context import Context, Unsupported, merged
from pulse.engine.native.memory import View
from pulse.engine.native.passes.chains import assign
from pulse.engine.native.passes.formulas import Instruction
from pulse.engine.native.plan import Field, Ref, chain_codes
from pulse.graph.ir import Node

LONG = 64  # values from which copying beats reading with a stride


def chain(ctx: Context, node: Node) -> None:
    """native.Chain"""
    name = node.outputs[0]
    shape = ctx.net.shape(name)
    inputs = [ctx.view(n).expand(shape) for n in node.inputs]
    y = ctx.out(name, _order(inputs, shape))
    run_chain(ctx, node.attrs["code"], inputs, y)


def run_chain(ctx: Context, code: list[Instruction], inputs: list[View], y: View) -> None:
    """y = the last instruction's result, of inputs expanded to its shape. y may be one of the inputs."""
    inputs = [_aligned(ctx, x, y) for x in inputs]
    dims = merged(y.shape, y.strides, *(x.strides for x in inputs))
    if any(d[0] == 0 for d in dims):
        return
    if len(dims) > 4:
        raise Unsupported("an elementwise operation over more than four axes that do not merge")
    dims = [(1, *[0] * (1 + len(inputs)))] * (4 - len(dims)) + dims
    registers, _ = assign(code, len(inputs))
    tail: list[Field] = []
    for i, x in enumerate(inputs):
        tail += [Ref(x.buffer, x.offset), *(d[2 + i] for d in dims)]
    tail += [registers[-1], Ref(y.buffer, y.offset), *(d[1] for d in dims)]
    for item, to in zip(code, registers, strict=True):
        args = [a if a < len(inputs) else registers[a - len(inputs)] for a in item.args]
        tail += [chain_codes()[item.op], to, *(*args, 0, 0)[:3], float(item.p), float(item.q)]
    fields: dict[str, Field] = {"inputs": len(inputs), "outputs": 1, "instructions": len(code)}
    ctx.step("elementwise", fields | {f"n{i}": d[0] for i, d in enumerate(dims)}, tail)


def _order(inputs: list[View], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The order of axes of the first input that has them all."""
    for x in inputs:
        if all(s or d == 1 for s, d in zip(x.strides, shape, strict=True)):
            return tuple(sorted(range(len(shape)), key=lambda i: -abs(x.strides[i]) if shape[i] > 1 else -(1 << 40)))
    return None


def _aligned(ctx: Context, x: View, y: View) -> View:
    """The input, or a copy in the order of the output where its values would have to be gathered one by one."""
    inner = [i for i, d in enumerate(y.shape) if d > 1 and y.strides[i] == 1]
    if not inner or x.strides[inner[0]] in (0, 1) or x.size < LONG:
        return x
    own = tuple(d if s else 1 for d, s in zip(x.shape, x.strides, strict=True))
    order = sorted(range(len(own)), key=lambda i: -abs(y.strides[i]) if own[i] > 1 else -(1 << 40))
    made = ctx.fresh(own, order)
    ctx.copy(View(x.buffer, x.offset, own, x.strides), made)
    return made.expand(x.shape)


def mask(ctx: Context, node: Node) -> None:
    """pulse.Mask, MaskStart, MaskEnd: in place where nothing else reads what is masked."""
    x, y = node.inputs[0], node.outputs[0]
    attrs = node.attrs
    alone = len(ctx.uses[x]) == 1 and x not in ctx.net.results
    if alone and ctx.view(x).buffer.kind not in ("input", "weights", "state"):
        ctx.put(y, ctx.view(x))
    else:
        target = ctx.out(y, _order([ctx.view(x)], ctx.net.shape(x)))
        ctx.copy(ctx.view(x), target)
    view = ctx.views[y]
    axis = attrs["axis"]
    others = [(view.shape[i], view.strides[i]) for i in range(len(view.shape)) if i != axis and view.shape[i] > 1]
    if len(others) > 3:
        raise Unsupported("a mask over more than four axes")
    others = [(1, 0)] * (3 - len(others)) + others
    args: dict[str, Field] = {
        "y": Ref(view.buffer, view.offset), "frames": view.shape[axis], "yt": view.strides[axis],
        "position": ctx.slot(node.inputs[1]), "num": attrs["num"], "den": attrs["den"], "delay": attrs["delay"],
        "start": int(node.op != "MaskEnd"), "length": None if node.op == "MaskStart" else ctx.slot(node.inputs[2]),
        "value": float(attrs["value"].reshape(-1)[0]),
    }  # fmt: skip
    for i, (count, stride) in enumerate(others):
        args |= {f"n{i}": count, f"y{i}": stride}
    ctx.step("mask", args)
