"""Elementwise operators gathered into chains that pass over memory once."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from pulse.engine.native.net import Net
from pulse.engine.native.passes.canonical import NATIVE
from pulse.engine.native.passes.formulas import FORMULAS, Instruction, Writer
from pulse.graph.ir import Node

REGISTERS = 24  # of kernels/ops/elementwise.cpp
FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL)  # truth is 0.0 or 1.0


def make_chains(net: Net) -> None:
    """Promises: every elementwise operator on floats and truths is part of a `native.Chain`, and no chain alone reads
    another's only output of the same shape, unless both together need too many registers.

    A chain has `code` (see formulas.Instruction) and `made`, the register of its output.
    """
    for node in net.nodes:
        if not node.domain and node.op in FORMULAS and _fits(net, node):
            _convert(net, node)
    for node in list(net.nodes):
        if node.op == "Chain":
            _absorb(net, node)


def _fits(net: Net, node: Node) -> bool:
    names = [n for n in (*node.inputs, *node.outputs) if n]
    return all(net.types[n][0] in FLOATS for n in names)


def _convert(net: Net, node: Node) -> None:
    inputs: list[str] = []
    fresh: dict[float, int] = {}

    def constant(value: float) -> int:
        if value not in fresh:
            inputs.append(net.add_constant("number", np.array(value, np.float32)))
            fresh[value] = len(inputs) - 1
        return fresh[value]

    operands: list[Any] = []
    for name in node.inputs:
        value = net.constants.get(name)
        if not name:
            operands.append(None)
        elif value is not None and value.size == 1:
            operands.append(float(value.reshape(-1)[0]))
        else:
            if name not in inputs:
                inputs.append(name)
            operands.append(inputs.index(name))
    writer = Writer(0, constant)
    made = FORMULAS[node.op](writer, node, operands)
    if made >= 0:
        made = writer("affine", made, p=1.0, q=0.0)
    count = len(inputs)

    def final(register: int) -> int:
        return register if register >= 0 else count - register - 1

    code = [Instruction(i.op, tuple(final(a) for a in i.args), i.p, i.q) for i in writer.code]
    attrs = {"code": _short(code, count), "of": node.op}
    node.op, node.domain, node.inputs, node.attrs = "Chain", NATIVE, inputs, attrs


def _absorb(net: Net, node: Node) -> None:
    """Takes in the chains that only this one reads."""
    index = 0
    while index < len(node.inputs):
        name = node.inputs[index]
        uses = net.uses().get(name, [])
        maker = next((n for n in net.nodes if name in n.outputs), None)
        alone = maker is not None and all(u is node for u in uses) and name not in net.results
        if not alone or maker is None or maker.op != "Chain" or net.shape(name) != net.shape(node.outputs[0]):
            index += 1
            continue
        joined, inputs = _joined(maker, node, index)
        if registers_needed(joined, len(inputs)) > REGISTERS:
            index += 1
            continue
        node.inputs = inputs
        node.attrs = {"code": joined, "of": f"{maker.attrs['of']}+{node.attrs['of']}"}
        net.nodes.remove(maker)
        index = 0


def _joined(first: Node, second: Node, index: int) -> tuple[list[Instruction], list[str]]:
    inputs = [n for i, n in enumerate(second.inputs) if i != index]
    inputs += [n for n in first.inputs if n not in inputs]
    base, before = len(inputs), first.attrs["code"]
    made = base + len(before) - 1

    def of_first(register: int) -> int:
        count = len(first.inputs)
        return inputs.index(first.inputs[register]) if register < count else base + register - count

    def of_second(register: int) -> int:
        count = len(second.inputs)
        if register == index:
            return made
        return inputs.index(second.inputs[register]) if register < count else base + len(before) + register - count

    code = [Instruction(i.op, tuple(of_first(a) for a in i.args), i.p, i.q) for i in before]
    code += [Instruction(i.op, tuple(of_second(a) for a in i.args), i.p, i.q) for i in second.attrs["code"]]
    return _short(code, base), inputs


def _short(code: list[Instruction], inputs: int) -> list[Instruction]:
    """Scales and shifts that follow one another become one, likewise a product and a sum."""
    done: list[Instruction] = []
    place: list[int] = []  # where each instruction's result went
    reads = [a for i in code for a in i.args]
    for item in code:
        args = tuple(a if a < inputs else place[a - inputs] for a in item.args)
        previous = done[args[0] - inputs] if item.op == "affine" and args[0] >= inputs else None
        newest = args[0] - inputs == len(done) - 1 and reads.count(item.args[0]) == 1
        if newest and previous is not None and previous.op == "affine":
            done[-1] = Instruction("affine", previous.args, previous.p * item.p, previous.q * item.p + item.q)
            place.append(args[0])
            continue
        for side in (0, 1) if item.op == "add" else ():
            factor = done[args[side] - inputs] if args[side] >= inputs else None
            alone = args[side] - inputs == len(done) - 1 and reads.count(item.args[side]) == 1
            if alone and factor is not None and factor.op == "mul":
                done[-1] = Instruction("fma", (*factor.args, args[1 - side]))
                place.append(args[side])
                break
        else:
            done.append(Instruction(item.op, args, item.p, item.q))
            place.append(inputs + len(done) - 1)
    return done


def registers_needed(code: list[Instruction], inputs: int) -> int:
    return max(assign(code, inputs)[1], inputs)


def assign(code: list[Instruction], inputs: int) -> tuple[list[int], int]:
    """A register for each instruction's result, shared where lives do not overlap, and how many there are.

    Inputs keep theirs: a value that is the same for all elements is only put there once.
    """
    last: dict[int, int] = {}
    for number, item in enumerate(code):
        for a in item.args:
            last[a] = number
    last[inputs + len(code) - 1] = len(code)
    free: list[int] = []
    top = inputs
    chosen: list[int] = []
    for number, item in enumerate(code):
        # Instructions go value by value, so a result may take the place of what it is made from.
        for a in set(item.args):
            if a >= inputs and last[a] == number:
                free.append(chosen[a - inputs])
        if free:
            chosen.append(free.pop())
        else:
            chosen.append(top)
            top += 1
    return chosen, top
