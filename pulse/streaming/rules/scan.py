"""Scan along the signal keeps its state between pulses; Loop has no streaming form."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from pulse.errors import PulseError
from pulse.graph.expr import Expr
from pulse.graph.ir import Node, closed, reading, subgraph_reads
from pulse.streaming.context import Context
from pulse.streaming.facts import Const, Poison, Static, Stream, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.framewise import normal_axis, stream_of
from pulse.streaming.rules.recurrent import last_state


@rule("Loop")
def loop(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    raise PulseError(
        "loop-over-stream",
        node=node.label,
        required="operators that run on a part of the signal",
        found="a Loop, which runs over the whole of it",
        remedy="express the recurrence by Scan, GRU, LSTM or RNN, or leave this output out with --outputs",
    )


@rule("Scan")
def scan(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """State inputs first, then scanned inputs; outputs likewise."""
    scanned = node.attrs["num_scan_inputs"]
    states, streams = list(inputs[: len(inputs) - scanned]), list(inputs[len(inputs) - scanned :])
    _check(ctx, node, states, streams)
    ready = [v for v in streams if v is not None]
    if not _runs_ahead(ctx, node, states):  # then frames known beforehand are run like any other
        ready = [ctx.align(v, max(stream_of(v).delay, 0)) for v in ready]
    aligned, length = ctx.join(ready, node)
    return _emit(ctx, node, states, aligned, length)


def _runs_ahead(ctx: Context, node: Node, states: list[Value | None]) -> bool:
    """Whether frames known beforehand can be run at conversion time."""
    axes = [*(node.attrs.get("scan_input_axes") or []), *(node.attrs.get("scan_output_axes") or [])]
    known = all(v is not None and isinstance(v.fact, Const) for v in states)
    return known and not any(axes) and len(_outer_constants(ctx, node)) == len(subgraph_reads(node.attrs["body"]))


def _outer_constants(ctx: Context, node: Node) -> dict[str, np.ndarray]:
    """What the body reads from outside and is known, by its name in the source."""
    facts = {name: ctx.outer[name].fact for name in subgraph_reads(node.attrs["body"])}
    return {name: fact.value for name, fact in facts.items() if isinstance(fact, Const)}


def _after_prefix(
    ctx: Context, node: Node, states: list[Value | None], streams: list[Value]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """States after the frames that are known beforehand, and the outputs of those."""
    arrays = [v.fact.value for v in states if v is not None and isinstance(v.fact, Const)]
    arrays += [p for v in streams if (p := stream_of(v).prefix) is not None]
    outputs = [o or f"output{i}" for i, o in enumerate(node.outputs)]
    attrs = {**node.attrs, "body": closed(node.attrs["body"], _outer_constants(ctx, node))}
    made = ctx.evaluate(Node("Scan", node.inputs, outputs, attrs, node.name), arrays)
    return made[: len(states)], made[len(states) :]


def _check(ctx: Context, node: Node, states: list[Value | None], streams: list[Value | None]) -> None:
    axes = node.attrs.get("scan_input_axes") or [0] * len(streams)
    for value, axis in zip(streams, axes, strict=True):
        fact = None if value is None else value.fact
        if not isinstance(fact, Stream) or normal_axis(axis, len(fact.shape)) != fact.axis:
            raise PulseError(
                "no-rule",
                node=node.label,
                required="a Scan whose scanned inputs are all the signal, along its own axis",
                found=f"axis {axis} of {fact}",
                remedy="leave this output out with --outputs",
            )
    for key in ("scan_input_directions", "scan_output_directions"):
        if any(node.attrs.get(key) or []):
            raise PulseError(
                "recurrence-reversed",
                node=node.label,
                required="a recurrence that runs forward along the signal",
                found="a Scan that runs backwards",
                remedy="a reverse recurrence needs the end of the signal first: leave this output out with --outputs",
            )
    if any(v is None or not isinstance(v.fact, (Const, Static)) for v in states):
        raise ctx.misfit(node, "an initial state that is a stream")
    for name in sorted(subgraph_reads(node.attrs["body"])):
        fact = ctx.outer[name].fact
        if not isinstance(fact, (Const, Static)) or (isinstance(fact, Const) and fact.symbolic):
            raise PulseError(
                "loop-over-stream",
                node=node.label,
                required="a body that reads, of the signal, the frames it scans",
                found=f"`{name}`, read from outside: the whole of it at every frame",
                remedy="make it a scanned input, or leave this output out with --outputs",
            )


def _emit(ctx: Context, node: Node, states: list[Value | None], streams: list[Value], length: Expr) -> list[Value]:
    lead = stream_of(streams[0])
    count = len(states)
    body = _renamed(ctx, node.attrs["body"])
    found = _shapes(ctx, node, body, [*states, *streams])
    started, prefixes = _after_prefix(ctx, node, states, streams) if lead.delay < 0 else ([], [])
    kept = []
    for i, value in enumerate(states):
        dtype, shape = found[i]
        state = ctx.emit.open_state(f"{node.name or node.outputs[-1]}.state", shape, dtype)
        assert value is not None
        initial = started[i] if started else value.fact.value if isinstance(value.fact, Const) else value.name
        kept.append((state, ctx.emit.current(state, initial)))
    blocks = [ctx.use(v) for v in streams]
    skip = _Skip(ctx, lead) if lead.delay > 0 else None
    if skip is not None:
        blocks = [skip.cut(n, stream_of(v).axis) for n, v in zip(blocks, streams, strict=True)]
    attrs = {**node.attrs, "body": body}
    outputs = [f"{s.input}.run" for s, _ in kept]
    outputs += [o or f"{node.name}.unused" for o in node.outputs[count:]]
    names = ctx.emit.node("Scan", [*(now for _, now in kept), *blocks], attrs, outputs, label=node.name)
    for (state, now), name in zip(kept, names, strict=False):
        ctx.emit.finish(state, name if skip is None else skip.keep(now, name))
    axes = node.attrs.get("scan_output_axes") or [0] * (len(node.outputs) - count)
    results = [Value(Poison(last_state(node, n), droppable=True)) for n in node.outputs[:count]]
    for i, (name, (dtype, shape), axis) in enumerate(zip(names[count:], found[count:], axes, strict=True)):
        at = normal_axis(axis, len(shape))
        if skip is not None:
            name = skip.refill(name, at, len(shape))
        cut = tuple(0 if i == at else d for i, d in enumerate(shape))
        prefix = prefixes[i] if prefixes else None
        results.append(Value(Stream(dtype, cut, at, lead.rate, lead.delay, length, prefix), name))
    return results


def _shapes(
    ctx: Context, node: Node, body: onnx.GraphProto, inputs: list[Value | None]
) -> list[tuple[int, tuple[int, ...]]]:
    """(type, shape) of the outputs: those that ONNX infers, not what the body declares, which may be stale."""
    bare = closed(body, {ctx.use(ctx.outer[n]): a for n, a in _outer_constants(ctx, node).items()})
    for output in bare.output:
        output.type.tensor_type.ClearField("shape")
    outputs = [f"output{i}" for i in range(len(body.output))]  # those that nobody reads, too
    run = Node("Scan", node.inputs, outputs, {**node.attrs, "body": bare}, node.name)
    try:
        found = ctx.shapes(run, inputs)
    except PulseError:  # values from outside that are known at run time only have no shapes here
        run.attrs["body"] = body
        return ctx.shapes(run, inputs)
    states = len(inputs) - node.attrs["num_scan_inputs"]
    axes = [None] * states + list(node.attrs.get("scan_output_axes") or [0] * (len(found) - states))
    for output, (dtype, shape), axis in zip(body.output, found, axes, strict=True):
        dims = [d for i, d in enumerate(shape) if axis is None or i != normal_axis(axis, len(shape))]
        output.type.CopyFrom(helper.make_tensor_type_proto(dtype, dims))
    return found


def _renamed(ctx: Context, body: onnx.GraphProto) -> onnx.GraphProto:
    """The body, what it reads from outside under the names that the pulsed graph uses."""
    out = reading(body, {n: ctx.use(ctx.outer[n]) for n in subgraph_reads(body)})
    _own_outputs(out)
    return out


def _own_outputs(body: onnx.GraphProto) -> None:
    """Every output made by a node, once: ONNX Runtime 1.32 leaves memory unwritten where a body hands on its input, or
    one value twice."""
    made = {o for n in body.node for o in n.output}
    taken: set[str] = set()
    for i, output in enumerate(body.output):
        if output.name in taken or output.name not in made:
            name = f"{output.name}/handed_on{i}"
            body.node.append(helper.make_node("Identity", [output.name], [name], name))
            output.name = name
        taken.add(output.name)


class _Skip:
    """Frames before the signal, kept away from the state: `k` of them are cut off, at least one frame is always run."""

    def __init__(self, ctx: Context, fact: Stream) -> None:
        self.emit = ctx.emit
        zero, one = self._ints(0), self._ints(1)
        numbers = ctx.number_frames(fact.rate, fact.delay)
        count = self._op("Shape", [numbers])
        early = self._op("Less", [numbers, self.emit.const(np.array(0, np.int64))])
        as_int = self._op("Cast", [early], {"to": 7})
        skipped = self._op("ReduceSum", [as_int, zero], {"keepdims": 1})
        most = self._op("Sub", [count, one])
        self.k = self._op("Min", [skipped, most])
        self.none = self._op("Less", [most, skipped])

    def _ints(self, value: int) -> str:
        return self.emit.const(np.array([value], np.int64))

    def _op(self, op: str, inputs: list[str], attrs: dict[str, Any] | None = None) -> str:
        return self.emit.node(op, inputs, attrs, [f"skip.{op.lower()}"])[0]

    def cut(self, name: str, axis: int) -> str:
        return self._op("Slice", [name, self.k, self._ints(np.iinfo(np.int64).max), self._ints(axis)])

    def keep(self, before: str, after: str) -> str:
        """The state: as it was, if no frame of this pulse was signal."""
        return self._op("Where", [self.none, before, after])

    def refill(self, name: str, axis: int, rank: int) -> str:
        """As many frames as came in, zeros for those cut off."""
        ahead = [self.emit.const(np.zeros(n, np.int64)) for n in (axis, 2 * rank - 1 - axis)]
        parts = [p for p, n in zip((ahead[0], self.k, ahead[1]), (axis, 1, 2 * rank - 1 - axis), strict=True) if n]
        return self._op("Pad", [name, self._op("Concat", parts, {"axis": 0})])
