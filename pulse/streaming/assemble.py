"""From the walk's findings to an ordinary ONNX model: outputs at delay 0 or more, dead nodes gone, a manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import onnx

from pulse import manifest as mf
from pulse.graph.export import to_model
from pulse.graph.expr import Expr
from pulse.graph.ir import Graph, Node, Port, captured, reading
from pulse.graph.signature import Input
from pulse.streaming.context import Context
from pulse.streaming.emit import Emitter, State
from pulse.streaming.facts import Stream, Uniform, Value
from pulse.streaming.functions import DOMAIN, build
from pulse.streaming.transform import Analysis

_OPTIONAL_OUTPUTS = {"GRU", "LSTM", "RNN", "MaxPool", "Dropout", "LayerNormalization", "BatchNormalization"}


@dataclass(frozen=True)
class Identity:
    """Where a model came from: file name, SHA-256 of its bytes, the name of its signal's length."""

    name: str
    sha256: str
    symbol: str


def assemble(
    found: Analysis, inputs: Sequence[Input], outputs: Sequence[str], pulse: int | str, origin: Identity
) -> tuple[onnx.ModelProto, mf.Manifest]:
    """The pulsed model and its manifest, for outputs that are streams."""
    emit, context = found.emit, found.context
    finals: dict[str, Stream] = {}
    delivered: list[tuple[str, Value]] = []
    for name in outputs:
        value = found.values[name]
        if isinstance(value.fact, Uniform):
            value = context.materialise(value)
        assert isinstance(value.fact, Stream)
        value = context.align(value, max(value.fact.delay, 0))
        assert isinstance(value.fact, Stream)
        context.read(value)
        finals[name] = value.fact
        delivered.append((name, value))
    _drop_idle_masks(context)
    if isinstance(pulse, int):
        emit.fix_width(pulse)
    renamed: dict[str, str] = {}
    for name, value in delivered:
        _deliver(emit, found, value.name, name, renamed)
    states = _prune(emit, list(outputs))
    wires = {name for node in emit.nodes for name in captured(node)}
    length = emit.length_input if emit.length_input in wires else None
    position = emit.position_input if any(s.input == emit.position_input for s in states) else None
    used = [i for i in inputs if i.name in wires or i.name in outputs]
    manifest = mf.Manifest(
        origin.name,
        origin.sha256,
        origin.symbol,
        pulse,
        found.granularity,
        context.multiple,
        [_input_port(i, pulse) for i in used],
        [_output_port(n, f, pulse) for n, f in finals.items()],
        [mf.StatePort(s.input, s.output, s.shape, s.dtype) for s in states],
        length,
        position or None,
    )
    return _model(emit, manifest, context.opset, origin), manifest


def _drop_idle_masks(context: Context) -> None:
    """A conv padded at its end whose surplus frames are cut off later needs no mask there."""
    needed = context.needed_masks | {
        t.masked for t in context.tails if any(t.matters(n) for n in context.reads.get(t.result, ()))
    }
    idle = {t.masked: t.plain for t in context.tails if t.masked not in needed}
    for node in context.emit.nodes:
        node.inputs = [idle.get(i, i) for i in node.inputs]


def _deliver(emit: Emitter, found: Analysis, value: str, name: str, renamed: dict[str, str]) -> None:
    """Gives an emitted value the name of the source's output. `renamed` holds what earlier calls did."""
    value = renamed.get(value, value)
    if value == name:
        found.delivered.add(name)
        return
    if any(name in node.outputs for node in emit.nodes) or name in emit.constants:
        # Another value holds the output's name: the same before its delay line, say.
        _rename(emit, found, name, emit.unique(f"{name}.early"), renamed)
    producers = {o for node in emit.nodes for o in node.outputs}
    taken = {s.output for s in emit.states} | found.delivered
    if value in producers and value not in taken:
        _rename(emit, found, value, name, renamed)
    else:
        emit.nodes.append(Node("Identity", [value], [name], {}, f"Identity:{name}"))
    emit.names.add(name)
    found.delivered.add(name)


def _rename(emit: Emitter, found: Analysis, old: str, new: str, renamed: dict[str, str]) -> None:
    for node in emit.nodes:
        node.inputs = [new if i == old else i for i in node.inputs]
        node.outputs = [new if o == old else o for o in node.outputs]
        for key, graph in node.attrs.items():
            if isinstance(graph, onnx.GraphProto):
                node.attrs[key] = reading(graph, {old: new})
    if old in emit.constants:
        emit.constants[new] = emit.constants.pop(old)
    for key, kept in found.values.items():
        if kept.name == old:
            found.values[key] = Value(kept.fact, new)
    for key in [k for k, v in renamed.items() if v == old]:
        renamed[key] = new
    renamed[old] = new


def _prune(emit: Emitter, outputs: list[str]) -> list[State]:
    """Drops nodes that no output needs. A state lives if something that lives reads it."""
    producer = {o: node for node in emit.nodes for o in node.outputs if o}
    states = {s.input: s for s in emit.states}
    alive: set[str] = set()
    todo = list(outputs)
    while todo:
        name = todo.pop()
        if name in alive:
            continue
        alive.add(name)
        if name in states:
            todo.append(states[name].output)
        if name in producer:
            todo.extend(captured(producer[name]))
    emit.nodes = [node for node in emit.nodes if any(o in alive for o in node.outputs)]
    for node in emit.nodes:
        if node.op in _OPTIONAL_OUTPUTS and not node.domain:
            node.outputs = [o if o in alive else "" for o in node.outputs]
            while not node.outputs[-1]:
                node.outputs.pop()
    emit.constants = {n: a for n, a in emit.constants.items() if n in alive}
    return [s for s in emit.states if s.input in alive]


def _dim(rate: Fraction, pulse: int | str) -> int | str:
    """Frames of one pulse at a rate; symbolic for a dynamic model, and another symbol for another rate."""
    if isinstance(pulse, int):
        return int(pulse * rate)
    text = "P" if rate.numerator == 1 else f"{rate.numerator}*P"
    return text if rate.denominator == 1 else f"{text}/{rate.denominator}"


def _input_port(item: Input, pulse: int | str) -> mf.Port:
    if item.axis is None:
        return mf.Port(item.name, item.dtype, item.shape, None, Fraction(0), 0, Expr.of(0))
    rate = item.length.slope
    shape = tuple(_dim(rate, pulse) if i == item.axis else d for i, d in enumerate(item.shape))
    return mf.Port(item.name, item.dtype, shape, item.axis, rate, 0, item.length)


def _output_port(name: str, fact: Stream, pulse: int | str) -> mf.Port:
    shape = tuple(_dim(fact.rate, pulse) if i == fact.axis else d for i, d in enumerate(fact.shape))
    return mf.Port(name, fact.dtype, shape, fact.axis, fact.rate, fact.delay, fact.length)


def _model(emit: Emitter, manifest: mf.Manifest, opset: int, origin: Identity) -> onnx.ModelProto:
    states = manifest.states
    inputs = [Port(p.name, p.dtype, p.shape) for p in manifest.inputs]
    inputs += [Port(s.input, s.dtype, s.shape) for s in states]
    if manifest.length:
        inputs.append(Port(manifest.length, onnx.TensorProto.INT64, ()))
    outputs = [Port(p.name, p.dtype, p.shape) for p in manifest.outputs]
    outputs += [Port(s.output, s.dtype, s.shape) for s in states]
    name = origin.name.removesuffix(".onnx") + ".pulsed"
    functions = [build(op, opset) for op in sorted({n.op for n in emit.nodes if n.domain == DOMAIN})]
    graph = Graph(name, opset, inputs, outputs, emit.nodes, emit.constants)
    return to_model(graph, functions, {mf.KEY: manifest.dumps()})
