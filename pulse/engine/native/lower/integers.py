"""Positions and indices: int64 tensors, and gathering by them."""

from __future__ import annotations

from onnx import TensorProto

from pulse.engine.native.lower.context import INTEGERS, Context, Unsupported, merged, ref
from pulse.engine.native.memory import View
from pulse.engine.native.plan import INTEGER_OPS, Field
from pulse.graph.ir import Node

_BINARY = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Mod": "mod", "Min": "min", "Max": "max"}
_UNARY = {"Neg": "neg", "Abs": "abs"}
_COMPARE = {
    "Less": ("less", 1),
    "LessOrEqual": ("less_equal", 1),
    "Greater": ("less", -1),
    "GreaterOrEqual": ("less_equal", -1),
}
_REDUCE = {"ReduceMin": "min", "ReduceMax": "max", "ReduceSum": "add", "ReduceProd": "mul"}


def integer(ctx: Context, node: Node) -> bool:
    """Lowers a node that computes with integers; False if it does not."""
    net = ctx.net
    values = [node.outputs[0], *node.inputs[: 1 if node.op in _REDUCE else 2]]
    if node.domain or not any(n and net.types[n][0] in INTEGERS for n in values):
        return False
    name = node.outputs[0]
    if node.op in _BINARY:
        views = [ctx.view(n) for n in node.inputs]
        y = ctx.out(name)
        _emit(ctx, _BINARY[node.op], y, views[0], views[1 % len(views)])
        for other in views[2:]:
            _emit(ctx, _BINARY[node.op], y, y, other)
    elif node.op in _UNARY:
        _emit(ctx, _UNARY[node.op], ctx.out(name), ctx.view(node.inputs[0]))
    elif node.op in _COMPARE:
        op, way = _COMPARE[node.op]
        _emit(ctx, op, ctx.out(name), *(ctx.view(n) for n in node.inputs[::way]))
    elif node.op == "Equal":
        _emit(ctx, "equal", ctx.out(name), *(ctx.view(n) for n in node.inputs))
    elif node.op == "Where":
        _emit(ctx, "where", ctx.out(name), ctx.view(node.inputs[0]), *(ctx.view(n) for n in node.inputs[1:]))
    elif node.op == "Cast":
        _cast(ctx, node)
    elif node.op in _REDUCE:
        _reduce(ctx, node)
    else:
        return False
    return True


def _emit(ctx: Context, op: str, y: View, *operands: View) -> None:
    views = [v.expand(y.shape) for v in operands]
    dims = merged(y.shape, y.strides, *(v.strides for v in views))
    if any(d[0] == 0 for d in dims):
        return
    if len(dims) > 4:
        raise Unsupported("integers over more than four axes that do not merge")
    dims = [(1, *[0] * (1 + len(views)))] * (4 - len(dims)) + dims
    args: dict[str, Field] = {"op": INTEGER_OPS.index(op), "y": ref(y), "slot": 0, "x": None, "z": None, "w": None}
    args |= {f"n{i}": d[0] for i, d in enumerate(dims)} | {f"y{i}": d[1] for i, d in enumerate(dims)}
    for number, (letter, view) in enumerate(zip("xzw", views, strict=False)):
        args[letter] = ref(view)
        args |= {f"{letter}{i}": d[2 + number] for i, d in enumerate(dims)}
    ctx.step("integers", args)


def _cast(ctx: Context, node: Node) -> None:
    source, to = ctx.net.types[node.inputs[0]][0], node.attrs["to"]
    if source in INTEGERS and to in INTEGERS:
        ctx.put(node.outputs[0], ctx.view(node.inputs[0]))
    elif source in INTEGERS and to == TensorProto.FLOAT:
        _emit(ctx, "to_float", ctx.out(node.outputs[0]), ctx.view(node.inputs[0]))
    elif source in (TensorProto.FLOAT, TensorProto.BOOL) and to in INTEGERS:
        _emit(ctx, "from_float", ctx.out(node.outputs[0]), ctx.view(node.inputs[0]))
    else:
        raise Unsupported("Cast")


def _reduce(ctx: Context, node: Node) -> None:
    """One value after the other into the result."""
    from pulse.engine.native.lower.reduce import axes_of

    x, axes = ctx.view(node.inputs[0]), axes_of(ctx, node)
    y = ctx.out(node.outputs[0])
    kept = y.reshape(tuple(1 if i in axes else d for i, d in enumerate(x.shape)))
    if kept is None or len(axes) != 1 or not x.shape[axes[0]]:
        raise Unsupported("integers reduced over several axes")
    ctx.copy(x.slice(axes[0], 0, 1), kept)
    for at in range(1, x.shape[axes[0]]):
        _emit(ctx, _REDUCE[node.op], kept, kept, x.slice(axes[0], at, 1))


def frames(ctx: Context, node: Node) -> None:
    """pulse.Frames"""
    y, attrs = ctx.out(node.outputs[0]), node.attrs
    clock = {k: attrs[k] for k in ("num", "den", "delay")}
    args: dict[str, Field] = {
        "y": ref(y),
        "frames": y.shape[0],
        "yt": y.strides[0],
        "position": ctx.slot(node.inputs[1]),
    }
    ctx.step("frame_numbers", args | clock)


def gather(ctx: Context, node: Node) -> None:
    """Gather by indices that are computed."""
    x, index = ctx.view(node.inputs[0]), ctx.view(node.inputs[1])
    if x.unit > 1:
        raise Unsupported("a Gather from integers by computed indices")
    axis = node.attrs.get("axis", 0) % len(x.shape)
    y = ctx.out(node.outputs[0])
    flat = index.reshape((index.size,))
    between = (*x.shape[:axis], index.size, *x.shape[axis + 1 :])
    target = y.reshape(between)
    made = target if target is not None else ctx.fresh(between)
    if flat is None:
        flat = ctx.fresh((index.size,), unit=2)
        same = flat.reshape(index.shape)
        assert same is not None
        ctx.copy(index, same)
    rest = [i for i in range(len(x.shape)) if i != axis]
    loops = merged([x.shape[i] for i in rest], [made.strides[i] for i in rest], [x.strides[i] for i in rest])
    if len(loops) > 3:
        raise Unsupported("a Gather over axes that do not merge")
    loops = [(1, 0, 0)] * (3 - len(loops)) + loops
    args: dict[str, Field] = {
        "x": ref(x), "index": ref(flat), "y": ref(made), "count": index.size, "is": flat.strides[0],
        "size": x.shape[axis], "xs": x.strides[axis], "ys": made.strides[axis],
    }  # fmt: skip
    for i, (count, ys, xs) in enumerate(loops):
        args |= {f"n{i}": count, f"y{i}": ys, f"x{i}": xs}
    ctx.step("gather", args)
    if target is None:
        again = made.reshape(y.shape)
        assert again is not None
        ctx.copy(again, y)
