"""The pulsed graph under construction: nodes, constants, state pairs, position and length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from pulse.graph.expr import Expr
from pulse.graph.ir import Node
from pulse.graph.limits import numbers
from pulse.streaming.functions import DOMAIN


@dataclass(frozen=True)
class State:
    """A state pair: a required input and the output which is its next value. All start as zeros."""

    input: str
    output: str
    shape: tuple[int, ...]
    dtype: int


class Emitter:
    """Collects the nodes of the pulsed graph. Names are unique; `reserved` are names that only their owner may get,
    `outputs` those that no state may have: the graph's inputs and outputs keep their names to the end."""

    def __init__(self, reserved: Sequence[str], outputs: Sequence[str] = ()) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray] = {}
        self.states: list[State] = []
        self.functions: set[str] = set()
        self.names = set(reserved)
        self._outputs = frozenset(outputs)
        self.position_input = ""
        self.length_input = ""
        self._frames = ""
        self._pool: dict[tuple[Any, ...], str] = {}
        self._counts: dict[str, int] = {}
        self._clock: tuple[str, int, int] | None = None  # an input, its stream axis and factor: what counts frames

    def unique(self, hint: str, port: bool = False) -> str:
        """A free name near the hint; `port`: for an input or output that the source does not have."""
        hint = hint or "value"
        if hint.startswith("_inlfunc_"):  # reserved by ONNX Runtime's inliner
            hint = "v" + hint
        name = hint
        while name in self.names or (port and name in self._outputs):
            self._counts[hint] = self._counts.get(hint, 0) + 1
            name = f"{hint}.{self._counts[hint]}"
        self.names.add(name)
        return name

    def node(
        self,
        op: str,
        inputs: Sequence[str],
        attrs: dict[str, Any] | None = None,
        outputs: Sequence[str] = ("",),
        *,
        label: str = "",
        domain: str = "",
    ) -> list[str]:
        """Adds a node; `outputs` are hints for the names of its outputs, which are returned."""
        names = [self.unique(o or f"{op.lower()}") for o in outputs]
        self.nodes.append(Node(op, list(inputs), names, dict(attrs or {}), label or f"{op}:{names[0]}", domain))
        return names

    def call(
        self, function: str, inputs: Sequence[str], attrs: dict[str, Any], outputs: Sequence[str], label: str = ""
    ) -> list[str]:
        """Calls a streaming function."""
        self.functions.add(function)
        return self.node(function, inputs, attrs, outputs, label=label, domain=DOMAIN)

    def const(self, value: np.ndarray, hint: str = "const") -> str:
        """An initialiser; equal small ones are shared."""
        value = np.ascontiguousarray(value) if value.ndim else value
        key = (value.dtype.str, value.shape, value.tobytes()) if value.size <= 64 else (id(value),)
        if key not in self._pool:
            name = self.unique(hint)
            self._pool[key] = name
            self.constants[name] = value
        return self._pool[key]

    # -- state ---------------------------------------------------------------------------------------------------
    def open_state(self, hint: str, shape: tuple[int, ...], dtype: int) -> State:
        """A new state pair. Read it by `current`; `finish` gives it its next value. Raises TooLarge."""
        numbers(shape, "a state")
        name = self.unique(hint, port=True)
        state = State(name, self.unique(f"{name}.next", port=True), shape, dtype)
        self.states.append(state)
        return state

    def current(self, state: State, initial: np.ndarray | str | None) -> str:
        """The state's value in this pulse: `initial` at the start, what was kept from then on."""
        if initial is None or (isinstance(initial, np.ndarray) and not np.any(initial)):
            return state.input
        start = initial if isinstance(initial, str) else self.const(initial, f"{state.input}.initial")
        return self.where(self.at_start(), start, state.input, state.dtype, f"{state.input}.now")

    def where(self, condition: str, yes: str, no: str, dtype: int, hint: str) -> str:
        """`Where`, which ONNX Runtime has for numbers only."""
        if dtype != TensorProto.BOOL:
            return self.node("Where", [condition, yes, no], outputs=[hint])[0]
        first = self.node("And", [condition, yes], outputs=[f"{hint}.yes"])[0]
        other = self.node("Not", [condition], outputs=[f"{hint}.not"])[0]
        second = self.node("And", [other, no], outputs=[f"{hint}.no"])[0]
        return self.node("Or", [first, second], outputs=[hint])[0]

    def finish(self, state: State, value: str) -> None:
        """Makes `value`, which nothing else reads, the state's next value."""
        for node in reversed(self.nodes):
            if value in node.outputs:
                node.outputs[node.outputs.index(value)] = state.output
                return
        raise KeyError(value)

    # -- clock ---------------------------------------------------------------------------------------------------
    def set_clock(self, name: str, axis: int, factor: int) -> None:
        self._clock = (name, axis, factor)

    @property
    def clock(self) -> tuple[str, int, int]:
        """A source input, its stream axis, and how many of its frames make one source frame."""
        assert self._clock is not None
        return self._clock

    def position(self) -> str:
        """Source frames consumed before this pulse, an int64 scalar state which the graph advances."""
        if not self.position_input:
            state = self.open_state("position", (), TensorProto.INT64)
            self.position_input = state.input
            name, axis, factor = self.clock
            shape = self.node("Shape", [name], outputs=["frames.shape"])[0]
            frames = self.node("Gather", [shape, self._int(axis)], outputs=["frames"])[0]
            if factor != 1:
                frames = self.node("Div", [frames, self._int(factor)], outputs=["frames"])[0]
            self._frames = frames
            total = self.node("Add", [state.input, frames], outputs=["position.total"])[0]
            self.finish(state, total)
        return self.position_input

    def fix_width(self, pulse: int) -> None:
        """Makes the frames of a pulse a constant. Counted in the graph, they are no int64 to tract."""
        if self._frames:
            self.nodes = [n for n in self.nodes if self._frames not in n.outputs]
            self.constants[self._frames] = np.array(pulse, np.int64)

    def at_start(self) -> str:
        """A bool scalar: this is the first pulse."""
        return self._cached(
            ("start",), lambda: self.node("Equal", [self.position(), self._int(0)], outputs=["at_start"])[0]
        )

    def length(self, expr: Expr) -> str:
        """The length of a value, an int64 scalar; negative while the end of the signal is unknown."""
        return self._cached(("length", expr), lambda: self._emit_length(expr))

    def _emit_length(self, expr: Expr) -> str:
        if not self.length_input:
            self.length_input = self.unique("length", port=True)
        # 0 says unknown and a negative length says that the signal was empty.
        known = self._cached(
            ("signal",),
            lambda: self.node("Max", [self.length_input, self._int(0)], outputs=["signal.length"])[0],
        )
        value = self._scalar(expr, known)
        unknown = self._cached(
            ("open",), lambda: self.node("Equal", [self.length_input, self._int(0)], outputs=["open"])[0]
        )
        return self.node("Where", [unknown, self._int(-1), value], outputs=["length.of"])[0]

    def _scalar(self, expr: Expr, signal: str) -> str:
        """Nodes that compute an integer expression."""
        scale = expr.denominator
        total = ""
        for atom, coefficient in expr.terms:
            value = signal
            if atom.arg is not None:
                value = self._scalar(atom.arg, signal) if atom.kind == "max" else self._floor(atom.arg, signal)
                if atom.kind == "max":
                    value = self.node("Max", [value, self._int(0)], outputs=["clamped"])[0]
            factor = int(coefficient * scale)
            if factor != 1:
                value = self.node("Mul", [value, self._int(factor)], outputs=["scaled"])[0]
            total = self.node("Add", [total, value], outputs=["sum"])[0] if total else value
        constant = int(expr.const * scale)
        if not total:
            return self._int(constant // scale)
        if constant:
            total = self.node("Add", [total, self._int(constant)], outputs=["sum"])[0]
        return total

    def _floor(self, expr: Expr, signal: str) -> str:
        """`floor(expr)`: ONNX's integer Div truncates, so the numerator is kept from being negative."""
        scale = expr.denominator
        lowest = int((expr * scale).at(np.arange(1024)).min())
        shift = -(lowest // scale) if lowest < 0 else 0
        numerator = self._scalar((expr + shift) * scale, signal)
        value = self.node("Div", [numerator, self._int(scale)], outputs=["quotient"])[0]
        return self.node("Sub", [value, self._int(shift)], outputs=["floor"])[0] if shift else value

    def _int(self, value: int) -> str:
        return self.const(np.array(value, dtype=np.int64))

    def _cached(self, key: tuple[Any, ...], make: Any) -> str:
        if key not in self._pool:
            self._pool[key] = make()
        return self._pool[key]


def rate_attrs(axis: int, rate: Fraction, delay: int) -> dict[str, Any]:
    """The attributes by which a function knows which frames it sees."""
    return {"axis": axis, "num": rate.numerator, "den": rate.denominator, "delay": delay}


def np_type(dtype: int) -> np.dtype[Any]:
    return np.dtype(helper.tensor_dtype_to_np_dtype(dtype))
