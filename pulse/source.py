"""A source model as seen by the transformer: its graph, the signature of its inputs, the outputs that stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from pulse.errors import PulseError
from pulse.graph.ir import Graph, captured
from pulse.graph.load import to_graph, to_one_opset
from pulse.graph.signature import Input, declared_sizes, read_signature
from pulse.streaming.facts import Poison, Stream, Uniform
from pulse.streaming.transform import Analysis, analyse


@dataclass(frozen=True)
class SourceModel:
    """A graph, its inputs, the symbol of the signal's length, and what the walk finds."""

    graph: Graph
    signature: list[Input]
    symbol: str
    walk: Analysis

    @property
    def granularity(self) -> int:
        return self.walk.granularity


def analyse_source(
    proto: onnx.ModelProto,
    label: str,
    inputs: Mapping[str, str] | None,
    outputs: Sequence[str] | None,
    promise: int,
) -> SourceModel:
    """What holds for every value that the given outputs (all by default) need. Refuses where there is no signal."""
    graph = to_graph(to_one_opset(proto, label), label)
    if outputs is not None:
        known = [o.name for o in graph.outputs]
        for name in outputs:
            if name not in known:
                raise PulseError(
                    "unknown-output",
                    node=name,
                    required="the name of an output of the model",
                    found=f"`{name}`",
                    remedy=f"the outputs are {', '.join(known)}",
                )
        _restrict(graph, outputs)
    signature, symbol = read_signature(graph, inputs)
    signature = _used(graph, signature)
    if not any(i.axis is not None for i in signature):
        raise PulseError(
            "no-streaming-output",
            node=", ".join(o.name for o in graph.outputs),
            required="an output that depends on the signal",
            found="outputs that no input with a stream axis reaches",
            remedy="name another output with --outputs, or the signal's axis with --input",
        )
    return SourceModel(graph, signature, symbol, analyse(graph, signature, promise))


def streaming_part(
    proto: onnx.ModelProto,
    label: str,
    inputs: Mapping[str, str] | None,
    outputs: Sequence[str] | None,
    promise: int,
) -> tuple[SourceModel, list[str]]:
    """The part of a source that streams, and a note for each output left out.

    Refuses where no output streams, or one asked for does not.
    """
    found = analyse_source(proto, label, inputs, outputs, promise)
    try:
        kept, notes = _choose_outputs(found, outputs)
    except PulseError as error:
        raise _by_shapes_given(error, proto, label, inputs, outputs, promise) from None
    if len(kept) == len(found.graph.outputs):
        return found, notes
    _restrict(found.graph, kept)
    signature = _used(found.graph, found.signature)
    walk = analyse(found.graph, signature, promise)
    return SourceModel(found.graph, signature, found.symbol, walk), notes


def _choose_outputs(model: SourceModel, asked: Sequence[str] | None) -> tuple[list[str], list[str]]:
    names = [o.name for o in model.graph.outputs]
    values = model.walk.values
    facts = {n: values[n].fact if n in values else None for n in names}
    streams = [n for n in names if isinstance(facts[n], (Stream, Uniform))]
    notes: list[str] = []
    for name in names:
        fact = facts[name]
        if name in streams:
            continue
        if isinstance(fact, Poison):
            droppable, error = fact.droppable, fact.error
        else:
            droppable, error = True, _not_a_stream(name)
        if not droppable or not streams or asked is not None:
            if streams and asked is None:
                error.remedy += f"; the outputs that can stream: --outputs {','.join(streams)}"
            if not streams:  # leaving this one out would leave none
                error.remedy = error.remedy.removesuffix(", or leave this output out with --outputs")
            raise error
        notes.append(f"output `{name}` is left out: {error.found} ({error.code})")
    return streams, notes


def _by_shapes_given(
    error: PulseError,
    proto: onnx.ModelProto,
    label: str,
    inputs: Mapping[str, str] | None,
    outputs: Sequence[str] | None,
    promise: int,
) -> PulseError:
    """The refusal, or, if it goes away with the sizes that the model declares, one that blames those given instead."""
    given = dict(inputs or {})
    declared = declared_sizes(to_graph(proto, label), given)
    if error.code == "contradicting-shape" or not declared:
        return error
    try:
        _choose_outputs(analyse_source(proto, label, {**given, **declared}, outputs, promise), outputs)
    except PulseError as other:
        if (other.code, other.node) == (error.code, error.node):
            return error
    shown = " ".join(f"{name}={given[name]}" for name in declared)
    return PulseError(
        "contradicting-shape",
        node=", ".join(declared),
        required="sizes that fit the graph, such as " + " ".join(f"{n}={dims}" for n, dims in declared.items()),
        found=f"{shown}; at `{error.node}` these give: {error.found}",
        remedy="give the sizes which the model was built for",
    )


def _not_a_stream(name: str) -> PulseError:
    return PulseError(
        "no-streaming-output",
        node=name,
        required="an output that follows the signal",
        found="a value that does not depend on it",
        remedy="leave it out with --outputs",
    )


def _restrict(graph: Graph, outputs: Sequence[str]) -> None:
    graph.outputs = [o for o in graph.outputs if o.name in outputs]
    graph.nodes = list(graph.needed(outputs))


def _used(graph: Graph, signature: list[Input]) -> list[Input]:
    names = {n for node in graph.nodes for n in captured(node)} | {o.name for o in graph.outputs}
    return [i for i in signature if i.name in names]
