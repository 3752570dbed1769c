"""GRU, LSTM and RNN. Along the signal they keep their state; over another axis the signal is their batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pulse.errors import PulseError
from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.emit import np_type, rate_attrs
from pulse.streaming.facts import Const, Poison, Static, Stream, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.framewise import refuse_mixing, stream_of

_TIME = 0  # axis of X that a recurrence runs along (layout 0)


@dataclass(frozen=True)
class Cell:
    """Input positions of a recurrent op: X W R B sequence_lens initial_h [initial_c peepholes]."""

    states: tuple[int, ...]
    peepholes: int | None = None


CELLS = {"GRU": Cell((5,)), "RNN": Cell((5,)), "LSTM": Cell((5, 6), 7)}


@rule("GRU", "LSTM", "RNN")
def recurrent(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    fact = stream_of(inputs[0])
    cell = CELLS[node.op]
    ins: list[Value | None] = list(inputs) + [None] * (8 - len(inputs))
    _check_lengths(node, ins[4], fact)
    ins[4] = None
    if node.attrs.get("layout"):
        return _batch_first(ctx, node, ins, cell)
    if fact.axis == 1:
        return _over_other_axis(ctx, node, ins, cell)
    if fact.axis != _TIME:
        raise refuse_mixing(node, "reduce-over-stream", "the input product of a recurrence")
    if node.attrs.get("direction", "forward") != "forward":
        raise PulseError(
            "recurrence-reversed",
            node=node.label,
            required="a recurrence that runs forward along the signal",
            found=f"direction `{node.attrs['direction']}`",
            remedy="train the model with a forward recurrence: a reverse one needs the end of the signal first",
        )
    return _along_stream(ctx, node, ins, cell)


def _check_lengths(node: Node, lengths: Value | None, fact: Stream) -> None:
    """sequence_lens may be given if it says what is the case anyway."""
    if lengths is None:
        return
    full = fact.length if fact.axis == (1 if node.attrs.get("layout") else 0) else None
    if isinstance(lengths.fact, Const):
        wanted = full if full is not None else fact.shape[1 if node.attrs.get("layout") else 0]
        if all(v == wanted for v in lengths.fact.value.reshape(-1)):
            return
    raise PulseError(
        "sequence-lens",
        node=node.label,
        required="no sequence_lens, or the length of the signal itself",
        found=str(lengths.fact),
        remedy="export the model without sequence_lens: the end of a stream is told by flush",
    )


def _batch_first(ctx: Context, node: Node, ins: list[Value | None], cell: Cell) -> list[Value]:
    """Layout 1 by transposes into layout 0, which engines run everywhere."""
    attrs = {k: v for k, v in node.attrs.items() if k != "layout"}
    plain = Node(node.op, node.inputs, node.outputs, attrs, node.name)
    for i in (0, *cell.states):
        ins[i] = _transposed(ctx, ins[i], node.input(i), (1, 0, 2))
    outputs = recurrent(ctx, plain, ins)
    perms = [(2, 0, 1, 3), (1, 0, 2), (1, 0, 2)]
    return [_transposed(ctx, v, n, p) or v for v, n, p in zip(outputs, node.outputs, perms, strict=False)]


def _transposed(ctx: Context, value: Value | None, name: str, perm: tuple[int, ...]) -> Value | None:
    if value is None or isinstance(value.fact, Poison):
        return value
    if isinstance(value.fact, Const):
        return Value(Const(np.transpose(value.fact.value, perm), value.fact.dtype), f"{name}.layout0")
    flip = Node("Transpose", [name], [f"{name}.layout"], {"perm": list(perm)}, f"{name}.layout")
    if isinstance(value.fact, Static):
        shape = tuple(value.fact.shape[p] for p in perm)
        made = ctx.emit.node("Transpose", [ctx.use(value)], flip.attrs, flip.outputs)[0]
        return Value(Static(value.fact.dtype, shape), made)
    return ctx.per_frame(flip, [value], perm.index(stream_of(value).axis))[0]


def _over_other_axis(ctx: Context, node: Node, ins: list[Value | None], cell: Cell) -> list[Value]:
    """The signal is the batch: every frame has its own recurrence, in either direction."""
    last = max(i for i, v in enumerate(ins) if v is not None)
    run = Node(node.op, node.inputs, node.outputs[:1], node.attrs, node.name)
    for i in cell.states:
        state = ins[i]
        if state is not None and not isinstance(state.fact, Stream):
            raise ctx.misfit(node, "an initial state of fixed batch size beside the signal")
    values: list[Value] = []
    if node.outputs[0]:
        values = ctx.per_frame(run, ins[: last + 1], 2)
    else:
        values = [Value(stream_of(ins[0]))]
    for name in node.outputs[1:]:
        if not name:
            values.append(values[0])
            continue
        kept = [n if n == name else "" for n in node.outputs]
        values.append(_last_state(ctx, node, ins[: last + 1], kept))
    return values


def _last_state(ctx: Context, node: Node, ins: list[Value | None], outputs: list[str]) -> Value:
    """Y_h or Y_c of a recurrence over another axis: a stream on axis 1."""
    run = Node(node.op, node.inputs, outputs, node.attrs, node.name)
    aligned, length = ctx.join([v for v in ins if v is not None and isinstance(v.fact, Stream)], node)
    fresh = iter(aligned)
    ins = [next(fresh) if v is not None and isinstance(v.fact, Stream) else v for v in ins]
    lead = stream_of(aligned[0])
    index = next(i for i, n in enumerate(outputs) if n)
    dtype, shape = ctx.shapes(run, ins)[index]
    names = ctx.emit.node(
        node.op, [ctx.use(v) for v in ins], node.attrs, outputs, label=f"{node.name}:{outputs[index]}"
    )
    prefix = None
    if lead.delay < 0:
        arrays = [None if v is None else _array(v) for v in ins]
        prefix = ctx.evaluate(run, arrays)[index]
    cut = tuple(0 if i == 1 else d for i, d in enumerate(shape))
    return Value(Stream(dtype, cut, 1, lead.rate, lead.delay, length, prefix), names[index])


def _array(value: Value) -> np.ndarray | None:
    return value.fact.value if isinstance(value.fact, Const) else stream_of(value).prefix


def _along_stream(ctx: Context, node: Node, ins: list[Value | None], cell: Cell) -> list[Value]:
    value = ins[0]
    fact = stream_of(value)
    assert value is not None
    found = ctx.shapes(Node(node.op, node.inputs, _three(node), node.attrs, node.name), ins)
    dtype, shape = found[0]
    hidden = (shape[1], shape[2], shape[3])
    starts: list[np.ndarray | str | None] = []
    for i in cell.states:
        given = ins[i]
        if given is not None and isinstance(given.fact, Stream):
            raise ctx.misfit(node, "an initial state that is a stream")
        constant = None if given is None else given.fact.value if isinstance(given.fact, Const) else given.name
        starts.append(np.broadcast_to(constant, hidden) if isinstance(constant, np.ndarray) else constant)
    prefix = None
    if fact.delay < 0:
        prefix, starts = _after_prefix(ctx, node, ins, cell, fact, starts)
    states = [
        ctx.emit.open_state(f"{node.outputs[0] or node.name}.{n}", hidden, dtype)
        for n, _ in zip("hc", starts, strict=False)
    ]
    now = [ctx.emit.current(s, start) for s, start in zip(states, starts, strict=True)]
    names = _emit(ctx, node, ins, cell, value, now, hidden)
    for state, name in zip(states, names[1:], strict=True):
        ctx.emit.finish(state, name)
    out = Stream(dtype, (0, *hidden), _TIME, fact.rate, fact.delay, fact.length, prefix)
    return [Value(out, names[0]), *(Value(Poison(last_state(node, n), droppable=True)) for n in node.outputs[1:])]


def _three(node: Node) -> list[str]:
    return ["y", "y_h", "y_c"] if node.op == "LSTM" else ["y", "y_h"]


def _after_prefix(ctx: Context, node: Node, ins: list[Value | None], cell: Cell, fact: Stream, starts: list[Any]):  # type: ignore[no-untyped-def]
    """The outputs over the prefix, and the states after it."""
    arrays = [None if v is None else v.fact.value if isinstance(v.fact, Const) else None for v in ins]
    arrays[0] = fact.prefix
    for i, start in zip(cell.states, starts, strict=True):
        arrays[i] = start
    results = ctx.evaluate(Node(node.op, node.inputs, _three(node), node.attrs), arrays)
    return results[0], results[1:]


def _emit(
    ctx: Context, node: Node, ins: list[Value | None], cell: Cell, value: Value, now: list[str], hidden: tuple[int, ...]
) -> list[str]:
    fact = stream_of(value)
    attrs = {k: v for k, v in node.attrs.items() if k != "direction"}
    outputs = [node.outputs[0] or f"{node.name}.y", *(f"{n}.next" for n in now)]
    weights = [ctx.use(ins[1]), ctx.use(ins[2]), ctx.use(ins[3])]
    peepholes = ctx.use(ins[cell.peepholes]) if cell.peepholes else ""
    if fact.delay <= 0:
        inputs = [ctx.use(value), *weights, "", *now] + ([peepholes] if peepholes else [])
        return ctx.emit.node(node.op, inputs, attrs, outputs, label=node.name)
    if not weights[2]:
        gates = {"GRU": 6, "LSTM": 8, "RNN": 2}[node.op]
        weights[2] = ctx.emit.const(np.zeros((hidden[0], gates * hidden[2]), np_type(fact.dtype)), "no_bias")
    if cell.peepholes and not peepholes:
        peepholes = ctx.emit.const(np.zeros((hidden[0], 3 * hidden[2]), np_type(fact.dtype)), "no_peepholes")
    inputs = [ctx.use(value), *weights, *now] + ([peepholes] if cell.peepholes else []) + [ctx.emit.position()]
    clock = rate_attrs(_TIME, fact.rate, fact.delay)
    del clock["axis"]
    return ctx.emit.call(node.op, inputs, {**attrs, **clock}, outputs, label=node.name)


def last_state(node: Node, output: str) -> PulseError:
    """The refusal of a state after the last frame."""
    return PulseError(
        "last-state",
        node=output or node.label,
        required="an output with a frame for every few frames of input",
        found="the state after the last frame of the signal",
        remedy="a state is kept inside the stream; leave this output out with --outputs",
    )
