"""Types of the native module, built from kernels/."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

def isas() -> list[str]: ...
def best_isa() -> str: ...
def kernels(isa: str) -> list[tuple[str, str, int, int, int, int]]: ...
def panel_heights(panel: int, m: int) -> list[int]: ...
def peak_flops(isa: str, rounds: int = 20000) -> float: ...

class Packed:
    def __init__(self, a: Floats, panel: int, copies: int = 1) -> None: ...
    @property
    def panel(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def read_bandwidth(self, isa: str, repeats: int) -> float: ...

class Product:
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
        offsets: NDArray[np.int32] | None = None,
        bias: Floats | None = None,
        slope: Floats | None = None,
        act: str = "none",
        alpha: float = 0.0,
        accumulate: bool = False,
    ) -> None: ...
    def run(self, kernel: str) -> None: ...
    def time(self, kernel: str, repeats: int) -> float: ...
