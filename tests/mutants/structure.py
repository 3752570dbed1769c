"""Parts of a model left out, doubled, renamed, put in another order; other operators and versions."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import defs

from mutants.draw import Rng, drop_one, pick, some_graph, some_node

NAMES = ("", "x", "y", "a", "position", "length", "_inlfunc_a", "a b/c:d", "S", "é")
ALL_OPS = sorted({s.name for s in defs.get_all_schemas()} | {"History", "Nonsense"})
OPSETS = (-1, 0, 1, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18, 20, 21, 22, 24, 27, 28, 29, 99, 2**40)


def drop_item(model: onnx.ModelProto, rng: Rng) -> None:
    graph = some_graph(model, rng)
    fields = [graph.node, graph.input, graph.output, graph.initializer, model.opset_import, model.functions]
    fields += [model.metadata_props]
    drop_one(pick(rng, [f for f in fields if len(f)]), rng)


def drop_of_node(model: onnx.ModelProto, rng: Rng) -> None:
    node = some_node(model, rng)
    drop_one(pick(rng, [f for f in (node.input, node.output, node.attribute) if len(f)]), rng)


def clear_field(model: onnx.ModelProto, rng: Rng) -> None:
    graph = some_graph(model, rng)
    holders: list[Any] = [model, graph, *graph.node, *graph.initializer, *graph.input, *graph.output]
    holders += [*model.opset_import]
    holders += [i.type for i in graph.input] + [i.type.tensor_type for i in graph.input]
    holder = pick(rng, holders)
    if fields := [f.name for f, _ in holder.ListFields()]:
        holder.ClearField(pick(rng, fields))


def duplicate(model: onnx.ModelProto, rng: Rng) -> None:
    graph = some_graph(model, rng)
    items = pick(rng, [f for f in (graph.node, graph.initializer, graph.input, graph.output) if len(f)])
    items.append(pick(rng, items))


def shuffle(model: onnx.ModelProto, rng: Rng) -> None:
    graph = some_graph(model, rng)
    nodes = [graph.node[int(i)] for i in rng.permutation(len(graph.node))]
    copies = [onnx.NodeProto() for _ in nodes]
    for copy, node in zip(copies, nodes, strict=True):
        copy.CopyFrom(node)
    del graph.node[:]
    graph.node.extend(copies)


def rename(model: onnx.ModelProto, rng: Rng) -> None:
    """An input, output or name becomes another one that is there, or an odd one."""
    graph, node = some_graph(model, rng), some_node(model, rng)
    there = [o for n in graph.node for o in n.output] + [i.name for i in (*graph.input, *graph.initializer)]
    name = pick(rng, there if rng.random() < 0.7 else NAMES)
    place = int(rng.integers(5))
    if place == 0 and node.input:
        node.input[int(rng.integers(len(node.input)))] = name
    elif place == 1 and node.output:
        node.output[int(rng.integers(len(node.output)))] = name
    elif place == 2:
        pick(rng, [*graph.input, *graph.output, *graph.initializer]).name = name
    elif place == 3:
        node.input.append(name)
    else:
        node.name = name


def cycle(model: onnx.ModelProto, rng: Rng) -> None:
    """A node reads what a later one makes."""
    nodes = some_graph(model, rng).node
    early, late = sorted(rng.integers(len(nodes), size=2))
    nodes[int(early)].input[0] = nodes[int(late)].output[0]


def other_op(model: onnx.ModelProto, rng: Rng) -> None:
    node = some_node(model, rng)
    names = ALL_OPS
    node.op_type = pick(rng, names)
    if rng.random() < 0.2:
        node.domain = pick(rng, ("pulse", "ai.onnx", "com.microsoft", "ai.onnx.ml", "?"))


def odd_version(model: onnx.ModelProto, rng: Rng) -> None:
    if rng.random() < 0.3:
        model.ir_version = pick(rng, (0, 1, 3, 4, 7, 10, 11, 13, 99, 2**40, -1))
    elif rng.random() < 0.3:
        model.opset_import.add(domain=pick(rng, ("", "ai.onnx", "pulse")), version=pick(rng, OPSETS))
    else:
        pick(rng, model.opset_import).version = pick(rng, OPSETS)


def odd_function(model: onnx.ModelProto, rng: Rng) -> None:
    function = pick(rng, model.functions)
    how = int(rng.integers(5))
    if how == 0:
        node = function.node.add(op_type=function.name, domain=function.domain)  # it calls itself
        node.input.extend(function.input)
        node.output.append("again")
    elif how == 1:
        drop_one(pick(rng, [f for f in (function.input, function.output, function.node, function.attribute) if f]), rng)
    elif how == 2:
        function.name = pick(rng, ("", "History", "Conv"))
    elif how == 3:
        function.domain = pick(rng, ("", "ai.onnx", "other"))
    else:
        model.functions.add().CopyFrom(function)
