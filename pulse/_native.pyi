"""Types of the native module, built from kernels/; arrays are contiguous unless said otherwise."""

from collections.abc import Callable, Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]

# -- kernels: binding.cpp

def isas() -> list[str]: ...
def best_isa() -> str: ...
def kernels(isa: str, dtype: str = "f32") -> list[tuple[str, str, int, int, int, int]]: ...
def panel_heights(panel: int, m: int) -> list[int]: ...
def peak_flops(isa: str, rounds: int = 20000) -> float: ...

class Packed:
    """Weights `a` (m, k), of any strides, in panels of `panel` rows, as "f32" or "bf16"."""

    def __init__(self, a: Floats, panel: int, copies: int = 1, dtype: str = "f32") -> None: ...
    @property
    def panel(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def read_bandwidth(self, isa: str, repeats: int) -> float: ...

class Product:
    """One product C = act(A B + bias) on flat arrays; strides in elements."""

    def __init__(
        self,
        a: Packed,
        b: Floats,
        c: Floats,
        n: int,
        *,
        ldb: int,
        bn: int,
        cm: int,
        cn: int,
        offsets: Ints32 | None = None,
        bias: Floats | None = None,
        slope: Floats | None = None,
        act: str = "none",
        alpha: float = 0.0,
        accumulate: bool = False,
    ) -> None: ...
    def run(self, kernel: str) -> None: ...
    def time(self, kernel: str, repeats: int) -> float: ...

# -- programs: binding_program.cpp

def step_fields() -> dict[str, list[str]]: ...
def chain_ops() -> dict[str, int]: ...
def scalar_ops() -> list[str]: ...
def packed_floats(panel: int, m: int, k: int, dtype: str = "f32") -> int: ...

class Arena:
    """Zeroed floats at a multiple of 64 bytes."""

    def __init__(self, count: int, huge: bool) -> None: ...
    @property
    def array(self) -> Floats: ...
    def pack(self, offset: int, panel: int, a: Floats, dtype: str = "f32") -> None: ...

class State:
    """What one stream keeps: a block of floats, windows as pairs (frame, history), scalars."""

    def __init__(self, floats: int, windows: Sequence[tuple[int, int]], scalars: int) -> None: ...
    def clear(self) -> None: ...
    @property
    def block(self) -> Floats: ...
    def history(self, window: int) -> Floats: ...
    @property
    def scalars(self) -> list[int]: ...
    @scalars.setter
    def scalars(self, given: Sequence[int], /) -> None: ...

class Program:
    """A pulse of one width as a flat list of steps."""

    def __init__(
        self,
        isa: str,
        code: Ints,
        tables: Ints32,
        arena: int,
        ports: Ints,
        advances: Ints,
        scalars: Ints,
        scalar_steps: Ints,
        kept: Ints,
        length: int,
        shared: Arena,
        own: Arena,
    ) -> None: ...

class Runner:
    """A program with a state and arrays for its inputs and outputs; times in nanoseconds."""

    def __init__(
        self, program: Program, state: State, huge: bool, names: list[str], shapes: Sequence[Sequence[int]], inputs: int
    ) -> None: ...
    def step(self, inputs: object, outputs: object, length: int) -> bool: ...
    def run_on(self, inputs: object, outputs: object, length: int) -> bool: ...
    def run(self, length: int) -> None: ...
    def time(self, length: int, repeats: int) -> float: ...
    def profile(self, length: int) -> list[float]: ...

# -- timing for the cost model: binding_gather.cpp

class _Machine(TypedDict):
    cpu: str
    caches: tuple[int, int, int]  # bytes of the three levels

def machine() -> _Machine: ...
def gather(
    samples: Sequence[str],
    path: str,
    isas: Sequence[str],
    tool: str,
    rounds: int,
    slice_us: float,
    core: int,
    tell: Callable[[int, int, float, float, str], bool],
) -> tuple[str, str, str, str] | None: ...
