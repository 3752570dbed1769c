"""A program as data: steps with named arguments, weights, scalars; and their form as flat arrays for native code."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from pulse.engine.isa import native
from pulse.engine.native.memory import ALIGN, Buffer, View, place

if TYPE_CHECKING:
    from pulse._native import Arena, Program

SHARED, OWN, TABLES, ARENA, STATE, FIRST_PORT = range(6)  # regions, as in kernels/program.hpp
SHIFT = 40
HALVED = 8192  # weights of a layer, 32 KiB: fewer stay float32 in any case
BYTES = {"f32": 4, "bf16": 2}  # of one weight
LARGEST_HALF = 3.38e38  # beyond it rounding to bf16 may give infinity


# What the step `integers` computes, as in kernels/ops/integers.cpp.
INTEGER_OPS = (
    "add", "sub", "mul", "div", "mod", "min", "max", "neg", "abs", "less", "less_equal", "equal", "where", "to_float",
    "from_float", "from_slot", "truth_of_slot",
)  # fmt: skip


@dataclass(frozen=True)
class Ref:
    """Where an operand starts."""

    buffer: Buffer
    offset: int = 0


Field = int | float | Ref | View | None


@cache
def step_fields() -> dict[str, list[str]]:
    """Argument names of every kind of step, from native code."""
    return {k: list(v) for k, v in native().step_fields().items()}


@cache
def chain_codes() -> dict[str, int]:
    return {name: i for i, name in enumerate(native().chain_ops())}


@cache
def scalar_codes() -> dict[str, int]:
    return {name: i for i, name in enumerate(native().scalar_ops())}


@dataclass
class Step:
    """One native step. `facts` says what a profile wants to know: m, k, n, count, kernel, picked_by, macs, bytes."""

    kind: str
    node: str
    args: dict[str, Field]
    tail: list[Field] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def operands(self) -> list[Buffer]:
        return [v.buffer for v in (*self.args.values(), *self.tail) if isinstance(v, (Ref, View))]


class WeightStore:
    """Weights of a model in order of use, packed once and shared by the programs of all widths.

    What the first program needs goes into the shared arena; what a later one needs besides goes into its own.
    """

    def __init__(self, huge: bool, dtype: str = "f32") -> None:
        """`dtype` is what large weights are to be stored in: "f32", or "bf16", which takes half the bytes."""
        self.huge = huge
        self.dtype = dtype
        self.shared: Arena | None = None
        self._known: dict[tuple[bytes, int, str], Buffer] = {}
        self._own: dict[tuple[bytes, int, str], Buffer] = {}
        self._pending: list[tuple[Buffer, np.ndarray, int, str]] = []
        self._end = 0

    def kept_as(self, weight: np.ndarray) -> str:
        """What to store a layer's weights in. Small ones stay float32, for they cost little; so do those beyond the
        largest finite bf16."""
        halved = self.dtype == "bf16" and weight.size >= HALVED and np.abs(weight).max() < LARGEST_HALF
        return "bf16" if halved else "f32"

    def bytes_of(self, weight: np.ndarray) -> int:
        """What a layer's weights take, without padding."""
        return BYTES[self.kept_as(weight)] * weight.size

    def put(self, array: np.ndarray, panel: int = 0, dtype: str = "f32") -> Buffer:
        """Memory that holds the array as it is, or matrices (groups, m, k), each packed in panels of a type."""
        array = np.ascontiguousarray(array, np.float32)
        key = (blake2b(array.tobytes(), digest_size=16, person=str(array.shape)[:16].encode()).digest(), panel, dtype)
        found = self._known.get(key) or self._own.get(key)
        if found is not None:
            return found
        size = native().packed_floats(panel, *array.shape[1:], dtype) * len(array) if panel else array.size
        buffer = Buffer("weights", size, index=SHARED if self.shared is None else OWN, offset=self._end)
        self._end += -(-size // ALIGN) * ALIGN
        (self._known if self.shared is None else self._own)[key] = buffer
        self._pending.append((buffer, array, panel, dtype))
        return buffer

    def finish(self) -> tuple[Arena, Arena]:
        """Packs what is new; the arena that all programs share, and the program's own."""
        arena: Arena = native().Arena(self._end, self.huge)
        for buffer, array, panel, dtype in self._pending:
            if panel:
                for group, matrix in enumerate(array):
                    arena.pack(buffer.offset + group * (buffer.size // len(array)), panel, matrix, dtype)
            else:
                arena.array[buffer.offset : buffer.offset + array.size] = array.reshape(-1)
        self._pending, self._own, self._end = [], {}, 0
        if self.shared is not None:
            return self.shared, arena
        self.shared = arena
        return arena, native().Arena(0, False)


class Scalars:
    """Integer arithmetic on lengths and positions: slots and the steps that fill them before all else."""

    def __init__(self) -> None:
        self.initial: list[int] = []
        self.steps: list[tuple[int, int, int, int, int]] = []
        self._constants: dict[int, int] = {}

    def slot(self, value: int = 0) -> int:
        self.initial.append(value)
        return len(self.initial) - 1

    def constant(self, value: int) -> int:
        if value not in self._constants:
            self._constants[value] = self.slot(value)
        return self._constants[value]

    def compute(self, op: str, *args: int) -> int:
        to = self.slot()
        x, y, z = (*args, 0, 0)[:3]
        self.steps.append((scalar_codes()[op], to, x, y, z))
        return to


@dataclass
class Plan:
    """Everything a native program is made from."""

    isa: str
    steps: list[Step] = field(default_factory=list)
    ports: list[Buffer] = field(default_factory=list)  # inputs, then outputs
    windows: list[Buffer] = field(default_factory=list)
    advances: list[int] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)  # of the arena
    tables: list[int] = field(default_factory=list)
    scalars: Scalars = field(default_factory=Scalars)
    kept: list[int] = field(default_factory=list)
    length: int = -1

    def table(self, values: np.ndarray) -> Ref:
        """Row offsets, as int32 in memory of their own."""
        at = len(self.tables)
        self.tables.extend(int(v) for v in values)
        return Ref(Buffer("tables", len(values)), at)

    def make(self, shared: Arena, own: Arena) -> Program:
        """The native program."""
        for number, step in enumerate(self.steps):
            for buffer in step.operands():
                if buffer.kind == "arena":
                    buffer.touch(number)
        arena = place(self.buffers)
        code: list[int] = []
        for step in self.steps:
            names = step_fields()[step.kind]
            unknown = set(step.args) - set(names)
            assert not unknown, f"{step.kind} has no {sorted(unknown)}"
            args = [self._number(step.args.get(n, 0)) for n in names] + [self._number(v) for v in step.tail]
            code += [list(step_fields()).index(step.kind), len(args), *args]
        ints = np.int64
        made: Program = native().Program(
            self.isa,
            np.array(code, ints),
            np.array(self.tables, np.int32),
            arena,
            np.array([b.size for b in self.ports], ints),
            np.array(self.advances, ints),
            np.array(self.scalars.initial, ints),
            np.array(self.scalars.steps, ints).reshape(-1),
            np.array(self.kept, ints),
            self.length,
            shared,
            own,
        )
        return made

    def _number(self, value: Field) -> int:
        if value is None:
            return -1
        if isinstance(value, float):
            return int(struct.unpack("<i", struct.pack("<f", value))[0])
        if isinstance(value, (Ref, View)):
            return self._region(value.buffer) << SHIFT | (value.buffer.offset + value.offset)
        return int(value)

    def _region(self, buffer: Buffer) -> int:
        kinds = {"weights": buffer.index, "tables": TABLES, "arena": ARENA, "state": STATE}
        if buffer.kind == "window":
            return FIRST_PORT + len(self.ports) + buffer.index
        return kinds[buffer.kind] if buffer.kind in kinds else FIRST_PORT + buffer.index
