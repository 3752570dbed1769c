"""Operators that are made of simpler ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pulse.engine.native.net import Net
from pulse.engine.native.passes.spectra import dft, stft
from pulse.graph.infer import evaluate, infer
from pulse.graph.ir import Node


class Maker:
    """Adds nodes in place of one; every call returns the name of a new value."""

    def __init__(self, net: Net, node: Node) -> None:
        self.net, self.node = net, node
        self.made: list[Node] = []

    def __call__(self, op: str, inputs: Sequence[str], attrs: dict[str, Any] | None = None) -> str:
        name, count = f"{self.node.outputs[0]}.{op}", 0
        while name in self.net.types:
            count += 1
            name = f"{self.node.outputs[0]}.{op}.{count}"
        made = Node(op, list(inputs), [name], dict(attrs or {}), f"{self.node.name}.{op}")
        types = [self.net.types[i] if i else None for i in inputs]
        data = [self.net.constants.get(i) if i else None for i in inputs]
        self.net.types[name] = infer(made, types, data, self.net.opset)[0]
        self.made.append(made)
        return name

    def constant(self, value: np.ndarray) -> str:
        return self.net.add_constant(f"{self.node.outputs[0]}.constant", value)

    def done(self, name: str) -> list[Node]:
        """The new nodes, the value `name` being what the old node made."""
        self.made[-1].outputs = [self.node.outputs[0]]
        assert self.net.types[name] == self.net.types[self.node.outputs[0]], (self.node.label, name)
        return self.made


def decompose(net: Net) -> None:
    """Promises: no Gemm with a scale, an addend or a transposed first operand, no GlobalAveragePool, GlobalMaxPool,
    ReduceL2, ReduceLogSum, ReduceLogSumExp, InstanceNormalization, GroupNormalization, DepthToSpace, SpaceToDepth,
    MeanVarianceNormalization, and no Resize by constant scales, no STFT or DFT of constant length is left."""
    done: list[Node] = []
    for node in net.nodes:
        rule = _RULES.get(node.op) if not node.domain else None
        made = rule(Maker(net, node), net, node) if rule else None
        done.extend(made or [node])
    net.nodes = done


def _gemm(make: Maker, net: Net, node: Node) -> list[Node] | None:
    a, b, c = node.inputs[0], node.inputs[1], node.input(2)
    alpha, beta = float(node.attrs.get("alpha", 1.0)), float(node.attrs.get("beta", 1.0))
    if node.attrs.get("transA"):
        a = make("Transpose", [a], {"perm": [1, 0]})
    if node.attrs.get("transB"):
        if b in net.constants:
            b = make.constant(np.ascontiguousarray(net.constants[b].T))
        else:
            b = make("Transpose", [b], {"perm": [1, 0]})
    y = make("MatMul", [a, b])
    if alpha != 1.0:
        y = make("Mul", [y, make.constant(np.array(alpha, np.float32))])
    if c:
        if beta != 1.0 and c in net.constants:
            c = make.constant((net.constants[c] * np.float32(beta)).astype(np.float32))
        elif beta != 1.0:
            c = make("Mul", [c, make.constant(np.array(beta, np.float32))])
        y = make("Add", [y, c])
    return make.done(y)


def _global_pool(make: Maker, net: Net, node: Node) -> list[Node] | None:
    axes = list(range(2, len(net.shape(node.inputs[0]))))
    op = "ReduceMean" if node.op == "GlobalAveragePool" else "ReduceMax"
    return make.done(_reduced(make, net, op, node.inputs[0], axes))


def _reduced(make: Maker, net: Net, op: str, x: str, axes: list[int], keep: int = 1) -> str:
    """A reduction in the form of the net's opset."""
    if net.opset >= 18 or (op == "ReduceSum" and net.opset >= 13):
        return make(op, [x, make.constant(np.array(axes, np.int64))], {"keepdims": keep})
    return make(op, [x], {"axes": axes, "keepdims": keep})


def _of_reduction(before: str | None, op: str, after: str) -> Callable[[Maker, Net, Node], list[Node] | None]:
    def run(make: Maker, net: Net, node: Node) -> list[Node] | None:
        x = node.inputs[0] if before is None else make(before, [node.inputs[0]])
        return make.done(make(after, [make(op, [x, *node.inputs[1:]], node.attrs)]))

    return run


def _log_sum_exp(make: Maker, net: Net, node: Node) -> list[Node] | None:
    """With the largest value taken out, so that nothing overflows."""
    x, rest = node.inputs[0], node.inputs[1:]
    if any(i not in net.constants for i in rest if i):
        return None
    top = make("ReduceMax", [x, *rest], {**node.attrs, "keepdims": 1})
    kept = make("ReduceMax", [x, *rest], node.attrs)
    total = make(
        "ReduceSum", [make("Exp", [make("Sub", [x, top])]), *_sum_axes(make, net, node)], _sum_attrs(net, node)
    )
    return make.done(make("Add", [make("Log", [total]), kept]))


def _sum_axes(make: Maker, net: Net, node: Node) -> list[str]:
    """ReduceSum takes its axes as an input from opset 13, the others from 18."""
    if node.input(1):
        return [node.inputs[1]]
    axes = node.attrs.get("axes")
    return [make.constant(np.array(axes, np.int64))] if axes and net.opset >= 13 else []


def _sum_attrs(net: Net, node: Node) -> dict[str, Any]:
    return {k: v for k, v in node.attrs.items() if k != "axes" or net.opset < 13}


def _norm(make: Maker, net: Net, node: Node) -> list[Node] | None:
    """InstanceNormalization, GroupNormalization: LayerNormalization per channel or group, then scale and bias."""
    x, scale, bias = node.inputs
    if scale not in net.constants or bias not in net.constants:
        return None
    shape = net.shape(x)
    groups = shape[1] if node.op == "InstanceNormalization" else node.attrs["num_groups"]
    flat = make("Reshape", [x, make.constant(np.array([shape[0], groups, -1], np.int64))])
    one = make.constant(np.ones(net.shape(flat)[2], np.float32))
    y = make("LayerNormalization", [flat, one], {"axis": -1, "epsilon": node.attrs.get("epsilon", 1e-5)})
    factor, shift = net.constants[scale], net.constants[bias]
    if len(factor) != shape[1]:  # per group, before opset 21
        factor, shift = (np.repeat(v, shape[1] // groups) for v in (factor, shift))
    column = (-1, *[1] * (len(shape) - 2))
    y = make("Reshape", [y, make.constant(np.array(shape, np.int64))])
    y = make("Mul", [y, make.constant(factor.reshape(column))])
    return make.done(make("Add", [y, make.constant(shift.reshape(column))]))


def _depth_to_space(make: Maker, net: Net, node: Node) -> list[Node] | None:
    n, c, h, w = net.shape(node.inputs[0])
    by = node.attrs["blocksize"]
    if node.op == "SpaceToDepth":
        split, perm, whole = (n, c, h // by, by, w // by, by), (0, 3, 5, 1, 2, 4), (n, c * by * by, h // by, w // by)
    elif node.attrs.get("mode", "DCR") == "DCR":
        split, perm, whole = (n, by, by, c // by**2, h, w), (0, 3, 4, 1, 5, 2), (n, c // by**2, h * by, w * by)
    else:
        split, perm, whole = (n, c // by**2, by, by, h, w), (0, 1, 4, 2, 5, 3), (n, c // by**2, h * by, w * by)
    y = make("Reshape", [node.inputs[0], make.constant(np.array(split, np.int64))])
    y = make("Transpose", [y], {"perm": list(perm)})
    return make.done(make("Reshape", [y, make.constant(np.array(whole, np.int64))]))


def _mean_variance(make: Maker, net: Net, node: Node) -> list[Node] | None:
    axes = [int(a) for a in node.attrs.get("axes", [0, 2, 3])]
    x = node.inputs[0]
    centred = make("Sub", [x, _reduced(make, net, "ReduceMean", x, axes)])
    variance = _reduced(make, net, "ReduceMean", make("Mul", [centred, centred]), axes)
    return make.done(make("Div", [centred, make("Sqrt", [variance])]))


def _resize(make: Maker, net: Net, node: Node) -> list[Node] | None:
    """Axis by axis: a Gather where every value is one of the input's, else a product with the weights of a line."""
    if any(i and i not in net.constants for i in node.inputs[1:]):
        return None
    x, old, new = node.inputs[0], net.shape(node.inputs[0]), net.shape(node.outputs[0])
    y = x
    for axis, (size, wanted) in enumerate(zip(old, new, strict=True)):
        weights = _line(net, node, axis, size, wanted)
        if weights is None:
            return None
        if size == wanted and np.array_equal(weights, np.eye(size, dtype=np.float32)):
            continue
        if ((weights == 0) | (weights == 1)).all() and (weights.sum(axis=1) == 1).all():
            y = make("Gather", [y, make.constant(weights.argmax(axis=1).astype(np.int64))], {"axis": axis})
            continue
        last = [*(i for i in range(len(old)) if i != axis), axis]
        y = make("Transpose", [y], {"perm": last})
        y = make("MatMul", [y, make.constant(np.ascontiguousarray(weights.T))])
        y = make("Transpose", [y], {"perm": [int(i) for i in np.argsort(last)]})
    return make.done(y) if y != x else None


def _line(net: Net, node: Node, axis: int, size: int, wanted: int) -> np.ndarray | None:
    """How each result along an axis is made of the values along it: the operator applied to every unit line."""
    rank = len(net.shape(node.inputs[0]))
    inputs: list[np.ndarray | None] = []
    for index, name in enumerate(node.inputs):
        value = net.constants.get(name) if name else None
        if index == 0:
            value = np.eye(size, dtype=np.float32)
        elif value is not None and value.size == rank:
            value = np.array([value.dtype.type(1 if index == 2 else size), value[axis]], value.dtype)
        elif value is not None and value.size == 2 * rank:  # roi
            value = np.array([0, value[axis], 1, value[rank + axis]], value.dtype)
        inputs.append(value)
    attrs = {k: v for k, v in node.attrs.items() if k != "axes"}
    if "axes" in node.attrs:
        return None
    try:
        lines = evaluate(Node("Resize", node.inputs, ["y"], attrs), inputs, net.opset)[0]
    except ValueError:
        return None
    return lines.T.astype(np.float32) if lines.shape == (size, wanted) else None


_RULES: dict[str, Callable[[Maker, Net, Node], list[Node] | None]] = {
    "Gemm": _gemm,
    "GlobalAveragePool": _global_pool,
    "GlobalMaxPool": _global_pool,
    "ReduceL2": _of_reduction(None, "ReduceSumSquare", "Sqrt"),
    "ReduceLogSum": lambda make, net, node: make.done(
        make("Log", [make("ReduceSum", [node.inputs[0], *_sum_axes(make, net, node)], _sum_attrs(net, node))])
    ),
    "ReduceLogSumExp": _log_sum_exp,
    "InstanceNormalization": _norm,
    "GroupNormalization": _norm,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _depth_to_space,
    "MeanVarianceNormalization": _mean_variance,
    "Resize": _resize,
    "STFT": stft,
    "DFT": dft,
}
