"""Products: the signal's axis may be a row or batch axis of one operand, never the axis that is summed over."""

from __future__ import annotations

from pulse.errors import PulseError
from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.facts import Stream, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.framewise import refuse_mixing


def _refuse_square(node: Node) -> PulseError:
    return PulseError(
        "attention-unbounded",
        node=node.label,
        required="the signal on one axis of a product",
        found="a value of size S x S: every frame with every other",
        remedy="attention needs a finite window to stream: use a model with a limited context",
    )


@rule("MatMul", "MatMulInteger", "QLinearMatMul")
def matmul(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    second = inputs[3 if node.op == "QLinearMatMul" else 1]
    first = inputs[0]
    assert first is not None
    assert second is not None
    ranks = [len(v.fact.dims) for v in (first, second)]  # type: ignore[union-attr]
    if 1 in ranks and (ranks != [1, 1]):
        return _vector(ctx, node, inputs, first, second, ranks)
    rank = max(ranks)
    found = set()
    for operand, summed in ((first, -1), (second, -2)):
        fact = operand.fact
        if isinstance(fact, Stream):
            from_right = fact.axis - len(fact.shape)
            if from_right == summed or ranks == [1, 1]:
                raise _summed(node, first, second)
            found.add(rank + from_right)
    if len(found) > 1:
        raise _refuse_square(node)
    return ctx.per_frame(node, inputs, next(iter(found)))


def _vector(ctx: Context, node: Node, inputs: Inputs, first: Value, second: Value, ranks: list[int]) -> list[Value]:
    """One operand is a vector: it is summed away, and the result has one axis less."""
    matrix = second if ranks[0] == 1 else first
    vector = first if ranks[0] == 1 else second
    fact = matrix.fact
    if isinstance(vector.fact, Stream) or not isinstance(fact, Stream):
        raise _summed(node, first, second)
    gone = len(fact.shape) - (2 if matrix is second else 1)
    if fact.axis == gone:
        raise _summed(node, first, second)
    return ctx.per_frame(node, inputs, fact.axis - (fact.axis > gone))


def _summed(node: Node, first: Value, second: Value) -> PulseError:
    return refuse_mixing(node, "reduce-over-stream", f"the sum of a {node.op}")


@rule("Gemm")
def gemm(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    found = set()
    for operand, flag, summed in ((inputs[0], "transA", 1), (inputs[1], "transB", 0)):
        if operand is not None and isinstance(operand.fact, Stream):
            axis = 1 - operand.fact.axis if node.attrs.get(flag) else operand.fact.axis
            if axis == summed:
                raise refuse_mixing(node, "reduce-over-stream", "the sum of a Gemm")
            found.add(axis)
    bias = inputs[2] if len(inputs) > 2 else None
    if bias is not None and isinstance(bias.fact, Stream):
        found.add(bias.fact.axis + 2 - len(bias.fact.shape))
    if len(found) > 1:
        raise _refuse_square(node)
    return ctx.per_frame(node, inputs, next(iter(found)))


@rule("Einsum")
def einsum(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    equation = node.attrs["equation"].replace(" ", "")
    terms, _, result = equation.partition("->")
    if "->" not in equation:
        letters = terms.replace(",", "")
        result = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if "." in equation:
        raise PulseError(
            "no-rule",
            node=node.label,
            required="an Einsum without an ellipsis",
            found=f"`{equation}`",
            remedy="write the axes out in the model",
        )
    letters = set()
    for term, value in zip(terms.split(","), inputs, strict=True):
        if value is not None and isinstance(value.fact, Stream):
            if term.count(term[value.fact.axis]) > 1:
                raise refuse_mixing(node, "reduce-over-stream", "the diagonal of an Einsum")
            letters.add(term[value.fact.axis])
    if len(letters) > 1:
        raise _refuse_square(node)
    letter = next(iter(letters))
    if letter not in result:
        raise refuse_mixing(node, "reduce-over-stream", "the sum of an Einsum")
    return ctx.per_frame(node, inputs, result.index(letter))
