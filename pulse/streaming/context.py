"""What rules work with: streams aligned, masked, given a history, or run frame by frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from pulse.errors import PulseError
from pulse.graph import limits
from pulse.graph.expr import Expr, agreement, most_ahead
from pulse.graph.infer import evaluate, infer
from pulse.graph.ir import Node
from pulse.streaming.emit import Emitter, np_type, rate_attrs
from pulse.streaming.facts import Affine, Const, Stream, Uniform, Value

_LINEAR = {"Add", "Sub", "Mul", "Cast", "Identity", "Unsqueeze", "Squeeze", "Transpose", "Expand"}
TOKEN = 7919  # stands for the frames of a block in shape inference: a prime that no other dim is likely to have


@dataclass(frozen=True)
class Tail:
    """A masked end that may turn out to be of no consequence: `matters` tells for a number of emitted frames within
    which `result`, the op's own emission, is read. `plain` is what to read instead of `masked`."""

    masked: str
    plain: str
    result: str
    matters: Callable[[Expr], bool]


class Context:
    """One conversion under way.

    `granularity`: pulses are multiples of it. `promise`: the user's word that the signal's length is a multiple of it.
    """

    def __init__(self, emit: Emitter, opset: int, granularity: int = 1, promise: int = 1) -> None:
        self.emit, self.opset, self.granularity, self.promise = emit, opset, granularity, promise
        self.multiple = promise  # lengths must be a multiple of this for the source model to be defined
        self.reads: dict[str, list[Expr]] = {}  # emitted frames, counted from the first, within which each is read
        self.tails: list[Tail] = []
        self.needed_masks: set[str] = set()
        self.outer: dict[str, Value] = {}  # the source's values by name, for what bodies of Scan read from outside
        self.label = ""  # of the node under way
        self._memo: dict[tuple[Any, ...], Any] = {}

    # -- names ---------------------------------------------------------------------------------------------------
    def use(self, value: Value | None) -> str:
        """The name by which nodes read a value; constants become initialisers here."""
        if value is None:
            return ""
        self.read(value)
        if isinstance(value.fact, Const):
            if value.fact.symbolic:
                raise self.depends(self.label or value.name)
            return self.emit.const(value.fact.value, value.name)
        if isinstance(value.fact, Uniform) and value.fact.frame is not None:
            return self.emit.const(value.fact.frame, value.name)
        return value.name

    def read(self, value: Value) -> None:
        """Notes that the frames of a stream within its length matter to somebody."""
        if isinstance(value.fact, Stream):
            # Slices and pads rename frames: counted from the first one emitted, the end is at length + delay.
            self.reads.setdefault(value.name, []).append(value.fact.length + value.fact.delay)

    # -- alignment -----------------------------------------------------------------------------------------------
    def align(self, value: Value, delay: int) -> Value:
        """The same stream with a larger delay."""
        fact = value.fact
        assert isinstance(fact, Stream)
        assert delay >= fact.delay
        if delay == fact.delay:
            return value
        self.read(value)
        key = ("align", value.name, fact.axis, fact.delay, delay)
        if key not in self._memo:
            frames = delay - fact.delay
            state = self.emit.open_state(f"{value.name}.delay", fact.block(frames), fact.dtype)
            initial = fact.frames(max(-delay, 0), max(-fact.delay, 0))
            lead = np.zeros(fact.block(frames - initial.shape[fact.axis]), np_type(fact.dtype))
            start = np.concatenate([lead, initial], axis=fact.axis)
            hist = self.emit.current(state, start)
            attrs = {"axis": fact.axis, "frames": frames}
            y, out = self.emit.call("Delay", [value.name, hist], attrs, [f"{value.name}.delayed", f"{state.input}.out"])
            self.emit.finish(state, out)
            prefix = fact.frames(0, -delay) if delay < 0 else None
            self._memo[key] = Value(fact.on(delay=delay, prefix=prefix), y)
        found: Value = self._memo[key]
        # The same emitted stream may be known by facts that differ in length.
        return Value(found.fact.on(length=fact.length), found.name)  # type: ignore[union-attr]

    def join(self, values: Sequence[Value], node: Node) -> tuple[list[Value], Expr]:
        """Streams brought to the largest of their delays, and their common length. Refuses rates or lengths at odds."""
        facts = [v.fact for v in values]
        assert facts
        assert all(isinstance(f, Stream) for f in facts)
        streams: list[Stream] = facts  # type: ignore[assignment]
        length = self.same_length([s.length for s in streams], node)
        delay = max(s.delay for s in streams)
        return [self.align(v, delay) for v in values], length

    def same_length(self, lengths: Sequence[Expr], node: Node) -> Expr:
        """The length that streams share, for the lengths of signal for which the source model is defined."""
        first = lengths[0]
        for other in lengths[1:]:
            if first.slope != other.slope:
                raise PulseError(
                    "rate-mismatch",
                    node=node.label,
                    required="streams of one rate",
                    found=f"lengths {first} and {other} for a signal of S frames",
                    remedy="resample one of them in the model before they meet",
                )
            multiple = agreement(first, other)
            if multiple is None:
                raise PulseError(
                    "length-mismatch",
                    node=node.label,
                    required="streams of equal length",
                    found=f"lengths {first} and {other} for a signal of S frames",
                    remedy="pad or crop one of them in the model, so that the lengths agree",
                )
            self.multiple = lcm(self.multiple, multiple)
        return min(lengths, key=lambda e: len(str(e)))

    def settle(self, value: Value) -> Value:
        """Delays a stream until no frame leaves before it is certain to exist."""
        fact = value.fact
        if not isinstance(fact, Stream):
            return value
        limits.frames(fact.delay, "a delay")
        if 0 in limits.numbers(fact.block(1), "a frame"):
            raise ValueError(f"frames without a number in them, of shape {list(fact.block(1))}")
        limits.grain(fact.rate, "a rate")
        step = lcm(self.granularity, fact.rate.denominator)
        return self.align(value, max(fact.delay, self.ahead(fact.rate, fact.length, step)))

    def ahead(self, rate: Fraction, length: Expr, step: int) -> int:
        key = ("ahead", rate, length, step)
        if key not in self._memo:
            self._memo[key] = most_ahead(rate, length, step)
        found: int = self._memo[key]
        return found

    # -- edges ---------------------------------------------------------------------------------------------------
    def masked(self, value: Value, fill: Any, *, start: bool, end: bool, tail: bool = False) -> str:
        """The block of a stream in which frames before the signal (`start`) or past its end read as `fill`.

        `tail`: the caller adds a `Tail`, so that the mask goes where the end turns out not to matter.
        """
        self.read(value)
        fact = value.fact
        assert isinstance(fact, Stream)
        start = start and fact.delay > 0
        if not start and not end:
            return value.name
        name = "Mask" if start and end else "MaskEnd" if end else "MaskStart"
        constant = np.array([fill], dtype=np_type(fact.dtype)).reshape(())
        key = ("mask", value.name, name, constant.tobytes(), str(fact.length), fact.delay, fact.axis)
        if key not in self._memo:
            attrs = rate_attrs(fact.axis, fact.rate, fact.delay)
            attrs["shape"] = [-1 if i == fact.axis else 1 for i in range(len(fact.shape))]
            attrs["value"] = constant
            inputs = [value.name, self.emit.position()] + ([self.emit.length(fact.length)] if end else [])
            self._memo[key] = self.emit.call(name, inputs, attrs, [f"{value.name}.masked"])[0]
        masked: str = self._memo[key]
        if not tail:
            self.needed_masks.add(masked)
        return masked

    def history(self, name: str, fact: Stream, frames: int, fill: Any) -> str:
        """A block preceded by the `frames` frames before it; a negative count drops frames from its front."""
        if frames == 0:
            return name
        if frames < 0:
            ints = [self.emit.const(np.array([v], np.int64)) for v in (-frames, np.iinfo(np.int64).max, fact.axis)]
            return self.emit.node("Slice", [name, *ints], outputs=[f"{name}.cut"])[0]
        state = self.emit.open_state(f"{name}.history", fact.block(frames), fact.dtype)
        ready = max(-fact.delay, 0)
        known = fact.frames(max(ready - frames, 0), ready)
        lead = np.full(fact.block(frames - known.shape[fact.axis]), fill, np_type(fact.dtype))
        hist = self.emit.current(state, np.concatenate([lead, known], axis=fact.axis))
        attrs = {"axis": fact.axis, "frames": frames}
        y, out = self.emit.call("History", [name, hist], attrs, [f"{name}.window", f"{state.input}.out"])
        self.emit.finish(state, out)
        return y

    def number_frames(self, rate: Fraction, delay: int) -> str:
        """Emits the indices of the frames that a stream of this rate and delay has in this pulse."""
        clock, axis, factor = self.emit.clock
        attrs = {**rate_attrs(axis, rate, delay), "per": factor}
        return self.emit.call("Frames", [clock, self.emit.position()], attrs, ["frame.numbers"])[0]

    def materialise(self, value: Value) -> Value:
        """A uniform value as a stream of frames."""
        fact = value.fact
        assert isinstance(fact, Uniform)
        key = ("spread", value.name, id(fact))
        if key not in self._memo:
            clock, axis, factor = self.emit.clock
            rate = fact.rate / factor
            attrs = {
                "axis": axis,
                "num": rate.numerator,
                "den": rate.denominator,
                "onehot": [int(i == fact.axis) for i in range(len(fact.shape))],
            }
            name = self.emit.call("Spread", [clock, self.use(value)], attrs, [f"{value.name}.spread"])[0]
            shape = tuple(0 if i == fact.axis else d for i, d in enumerate(fact.shape))
            delay = self.ahead(fact.rate, fact.length, lcm(self.granularity, fact.rate.denominator))
            if fact.frame is None:
                delay = max(delay, 0)
            prefix = np.repeat(fact.frame, -delay, axis=fact.axis) if delay < 0 and fact.frame is not None else None
            stream = Stream(fact.dtype, shape, fact.axis, fact.rate, delay, fact.length, prefix)
            self._memo[key] = Value(stream, name)
        found: Value = self._memo[key]
        return found

    # -- running a node ------------------------------------------------------------------------------------------
    def shapes(
        self, node: Node, inputs: Sequence[Value | None], frames: int = TOKEN
    ) -> list[tuple[int, tuple[int, ...]]]:
        """(type, shape) of the outputs for blocks of `frames` frames. Refuses where the op cannot take the inputs."""
        types: list[tuple[int, tuple[int, ...]] | None] = []
        data: list[np.ndarray | None] = []
        for value in inputs:
            fact = None if value is None else value.fact
            data.append(fact.value if isinstance(fact, Const) else None)
            if fact is None:
                types.append(None)
            elif isinstance(fact, Stream):
                types.append((fact.dtype, fact.block(frames)))
            elif isinstance(fact, Const):
                types.append((fact.dtype, fact.value.shape))
            else:
                types.append((fact.dtype, fact.shape))  # type: ignore[union-attr]
        try:
            return infer(node, types, data, self.opset)
        except ValueError as error:
            raise self.misfit(node, error) from None

    def per_frame(
        self,
        node: Node,
        inputs: Sequence[Value | None],
        axis: int | Callable[[Stream], int],
        attrs: dict[str, Any] | None = None,
    ) -> list[Value]:
        """Runs a node on each block by itself: the op leaves the stream axis alone and delivers it at `axis`.

        Joins the streams among the inputs. `axis` may map an input's fact to the output axis (None inputs are absent).
        """
        streams = [v for v in inputs if v is not None and isinstance(v.fact, Stream)]
        aligned, length = self.join(streams, node)
        mapping = iter(aligned)
        ins = [next(mapping) if v is not None and isinstance(v.fact, Stream) else v for v in inputs]
        lead = aligned[0].fact
        assert isinstance(lead, Stream)
        out_axis = axis if isinstance(axis, int) else axis(lead)
        run = Node(node.op, node.inputs, node.outputs, node.attrs if attrs is None else attrs, node.name)
        found = self.shapes(run, ins)
        for (_, shape), name in zip(found, node.outputs, strict=True):
            if name and (out_axis >= len(shape) or shape[out_axis] != TOKEN or shape.count(TOKEN) != 1):
                raise self.misfit(node, f"the signal's axis is not axis {out_axis} of the result")
        names = self.emit.node(node.op, [self.use(v) for v in ins], run.attrs, node.outputs, label=node.name)
        prefixes: list[np.ndarray | None] = [None] * len(names)
        if lead.delay < 0:
            arrays = [None if v is None else _prefix(v) for v in ins]
            prefixes = list(self.evaluate(run, arrays))
        affine = self._affine(run, ins, out_axis)
        values = []
        for name, (dtype, shape), prefix in zip(names, found, prefixes, strict=True):
            cut = tuple(0 if i == out_axis else d for i, d in enumerate(shape))
            values.append(Value(Stream(dtype, cut, out_axis, lead.rate, lead.delay, length, prefix, affine), name))
        if all(v is streams[0] for v in streams) and (mirror := streams[0].mirror) is not None:
            # An op on frames before padding by frames is one behind it: a window op may still look past the padding.
            within = self.per_frame(node, [mirror.source if v is streams[0] else v for v in inputs], axis, attrs)
            values = [replace(v, mirror=replace(mirror, source=w)) for v, w in zip(values, within, strict=True)]
        return values

    def _affine(self, node: Node, inputs: Sequence[Value | None], axis: int) -> Affine | None:
        """Positions stay positions under what is linear: found by running the node on frames 0 and 1."""
        if node.op not in _LINEAR:
            return None
        blocks: list[np.ndarray | None] = []
        for value in inputs:
            fact = None if value is None else value.fact
            if isinstance(fact, Stream):
                if fact.affine is None or np_type(fact.dtype).kind != "i":
                    return None
                steps = np.arange(2).reshape([-1 if i == fact.axis else 1 for i in range(len(fact.shape))])
                block = fact.affine.step * steps + fact.affine.table
                blocks.append(np.broadcast_to(block, fact.block(2)).astype(np_type(fact.dtype)))
            elif fact is None or isinstance(fact, Const):
                blocks.append(None if fact is None else fact.value)
            else:
                return None
        first, second = np.split(self.evaluate(node, blocks)[0].astype(np.int64), 2, axis=axis)
        moved = np.unique(second - first)
        return Affine(int(moved[0]), first) if moved.size == 1 else None

    def evaluate(self, node: Node, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        """Output arrays of a node at conversion time: what prefixes are made of."""
        try:
            return evaluate(node, arrays, self.opset)
        except limits.TooLarge:
            raise
        except ValueError as error:
            raise self.misfit(node, error) from None

    # -- refusals ------------------------------------------------------------------------------------------------
    @staticmethod
    def misfit(node: Node, error: object) -> PulseError:
        return PulseError(
            "contradicting-shape",
            node=node.label,
            required="inputs whose shapes fit the operator",
            found=str(error)[:300],
            remedy="check the shapes given with --input, or the model's own",
        )

    @staticmethod
    def depends(label: str) -> PulseError:
        return PulseError(
            "depends-on-length",
            node=label,
            required="values that do not change with the signal's length",
            found="a value computed from the length",
            remedy="a stream has no length until it ends: leave this part out of the streaming model",
        )


def _prefix(value: Value) -> np.ndarray | None:
    if isinstance(value.fact, Stream):
        return value.fact.prefix
    if isinstance(value.fact, Const):
        return value.fact.value
    assert isinstance(value.fact, Uniform)
    return value.fact.frame
