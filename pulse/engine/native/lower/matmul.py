"""Products of two computed matrices."""

from __future__ import annotations

from pulse.engine.native.lower.context import Context, Unsupported, merged, ref
from pulse.engine.native.memory import View
from pulse.engine.native.plan import Field
from pulse.graph.ir import Node


def matmul(ctx: Context, node: Node) -> None:
    a, b = (ctx.view(n) for n in node.inputs)
    y = ctx.out(node.outputs[0])
    if min(len(a.shape), len(b.shape)) < 2:
        raise Unsupported("a MatMul with a vector")
    lead = y.shape[:-2]
    emit(ctx, a.expand((*lead, *a.shape[-2:])), b.expand((*lead, *b.shape[-2:])), y)


def einsum(ctx: Context, node: Node) -> None:
    """Two computed operands: batch letters, rows, one letter summed over, columns."""
    equation = node.attrs["equation"].replace(" ", "")
    if len(node.inputs) != 2 or "." in equation or "->" not in equation:
        raise Unsupported("an Einsum of another form than two operands and a result")
    operands, result = equation.split("->")
    first, second = operands.split(",")
    inner = [c for c in first if c in second and c not in result]
    batch = [c for c in result if c in first and c in second]
    rows = [c for c in result if c in first and c not in second]
    columns = [c for c in result if c in second and c not in first]
    letters = (len(set(t)) == len(t) for t in (first, second, result))
    if (
        len(inner) > 1
        or len(rows) > 1
        or len(columns) > 1
        or not all(letters)
        or len(first + second) != 2 * len(batch + inner) + len(rows + columns)
    ):
        raise Unsupported(f"the Einsum {equation} of computed operands")

    def arranged(view: View, text: str, last: tuple[list[str], list[str]]) -> View:
        order = [*batch, *last[0], *last[1]]
        view = view.transpose([text.index(c) for c in order])
        for missing, at in zip(last, (len(batch), len(batch) + 1), strict=True):
            if not missing:
                view = view.insert(at)
        return view

    a = arranged(ctx.view(node.inputs[0]), first, (rows, inner))
    b = arranged(ctx.view(node.inputs[1]), second, (inner, columns))
    emit(ctx, a, b, arranged(ctx.out(node.outputs[0]), result, (rows, columns)))


def emit(ctx: Context, a: View, b: View, y: View) -> None:
    """y = a b over the last two axes, all others in step."""
    rest = range(len(y.shape) - 2)
    loops = merged(y.shape[:-2], *([v.strides[i] for i in rest] for v in (y, a, b)))
    if len(loops) > 2:
        raise Unsupported("a product of matrices over more than two axes that do not merge")
    loops = [(1, 0, 0, 0)] * (2 - len(loops)) + loops
    m, k, n = y.shape[-2], a.shape[-1], y.shape[-1]
    args: dict[str, Field] = {
        "a": ref(a), "b": ref(b), "c": ref(y), "m": m, "k": k, "n": n, "am": a.strides[-2], "ak": a.strides[-1],
        "bk": b.strides[-2], "bn": b.strides[-1], "cm": y.strides[-2], "cn": y.strides[-1],
    }  # fmt: skip
    for i, (count, cs, as_, bs) in enumerate(loops):
        args |= {f"n{i}": count, f"c{i}": cs, f"a{i}": as_, f"b{i}": bs}
    count = loops[0][0] * loops[1][0]
    ctx.step(
        "matmul", args, m=m, k=k, n=n, count=count, kernel="matmul", picked_by="-", macs=m * k * n * count, bytes=0
    )
