"""Which kernel computes a product C[m, n] = A[m, k] B[k, n].

The rule here needs no measurement: it counts the cycles that a kernel's tiles would take if nothing but the latency and
the throughput of multiply-adds and the reading of weights mattered. Exact tiles win over wasteful ones by themselves,
and so do dot products for a few rows and lanes along n for wide products.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol

from pulse.engine.isa import current, native
from pulse.errors import PulseError

Layout = Literal["frame", "channel"]  # what is contiguous in B: k (frame-major) or n (channel-major)

# The grammar of kernel names: instruction set, family, type of the weights, tile MRxNR, accumulators along k.
GRAMMAR = re.compile(
    r"(?P<isa>ref|v2|v3|v4|neon)_(?P<family>mmm|nl|dot)_(?P<type>f32|bf16)_(?P<mr>[1-9]\d*)x(?P<nr>[1-9]\d*)(k(?P<ks>[2-9]))?"
)

LATENCY = {"ref": 4, "v2": 8, "v3": 5, "v4": 4, "neon": 5}  # cycles from a multiply-add to one that needs its sum
FIRST_LEVEL = 6144  # weights that the first cache level holds beside the activations
FIRST_LEVEL_READ, SECOND_LEVEL_READ = 16, 8  # floats per cycle
DOT_ROWS = 12  # beyond so many, dot products leave each row's reading waiting for the row before
LANES = {"ref": 1, "v2": 4, "v3": 8, "v4": 16, "neon": 4}
OPERAND = {"ref": 0.0, "v2": 0.75, "v3": 0.25, "v4": 0.0, "neon": 0.0}  # cycles that loading one takes from the sums
PER_CYCLE = {"ref": 1, "v2": 1, "v3": 2, "v4": 1, "neon": 2}  # vector multiply-adds, on the cores at hand


@dataclass(frozen=True)
class Kernel:
    """One kernel of the native library.

    Attributes:
        name: by the grammar, e.g. "v4_mmm_f32_16x4".
        family: "mmm" (lanes along m), "nl" (along n) or "dot" (along k).
        mr, nr: rows and columns of a tile; other sizes are finished exactly.
        ks: accumulators that k is split over; 1 keeps the order of a plain sum.
        panel: panel height of the packed weights it reads.
    """

    name: str
    isa: str
    family: str
    mr: int
    nr: int
    ks: int
    panel: int


class Picked(Protocol):
    """A kernel by name, and who picked it: "hint", "cpu table", "isa table" or "rule"."""

    @property
    def kernel(self) -> str: ...
    @property
    def by(self) -> str: ...


class Picks(Protocol):
    """What picks the kernels of a model's products before the rule does, as `pulse.costmodel.pick.Picker`.

    Sizes and layouts are those of C (m, n) = act(A (m, k) * B (k, n)); None leaves it to the rule.
    """

    def panel(self, m: int, k: int, widths: Iterable[int], *, layout: str = "frame", act: str = "none") -> int | None:
        """The panel height for weights m x k that serve products of all these widths n."""
        ...

    def find(
        self, m: int, k: int, n: int, *, layout: str = "frame", act: str = "none", panel: int | None = None
    ) -> Picked | None:
        """The kernel, if given one that reads weights packed to this panel height."""
        ...


@cache
def kernels(isa: str, dtype: str = "f32") -> tuple[Kernel, ...]:
    """All kernels of one instruction set for weights of a type, "f32" or "bf16", in the order of their list."""
    return tuple(
        Kernel(name, isa, family, mr, nr, ks, panel) for name, family, mr, nr, ks, panel in native().kernels(isa, dtype)
    )


def takes(kernel: Kernel, n: int, layout: Layout) -> bool:
    """Whether the kernel reads B of this layout: nl wants columns contiguous, dot wants k contiguous."""
    return n == 1 or (layout == "channel" if kernel.family == "nl" else layout == "frame" or kernel.family != "dot")


def pick(
    m: int,
    k: int,
    n: int,
    dtype: str = "f32",
    isa: str | None = None,
    *,
    layout: Layout = "frame",
    panel: int | None = None,
) -> str:
    """The name of the kernel to compute an m x k by k x n product with.

    Args:
        dtype: how the weights are stored; "f32".
        isa: instruction set; by default the best, or what PULSE_ISA forces.
        layout: "frame" where the k values of a column are contiguous in B, "channel" where the n values of a row are.
        panel: only kernels that read weights packed to this panel height.

    Raises:
        PulseError: `usage` for sizes below 1, or a type, instruction set or panel height that there is no kernel for.
    """
    if min(m, k, n) < 1:
        raise PulseError("usage", node="pick", required="m, k and n of at least 1", found=f"{m} x {k} x {n}")
    if dtype != "f32":
        raise PulseError("usage", node="pick", required="weights of type f32", found=dtype)
    chosen = current(isa)
    fitting = [
        kernel
        for kernel in kernels(chosen)
        if takes(kernel, n, layout) and (kernel.panel == panel or (panel is None and _sane(kernel, m)))
    ]
    if not fitting:
        heights = sorted({kernel.panel for kernel in kernels(chosen)})
        raise PulseError("usage", node="pick", required=f"a panel height of {heights}", found=str(panel))
    return min(fitting, key=lambda kernel: cycles(kernel, m, k, n)).name


def pick_panel(m: int, k: int, widths: Iterable[int], isa: str | None = None, *, layout: Layout = "frame") -> int:
    """The panel height to pack weights m x k to when they serve products of all these widths n.

    The one whose best kernels lose least against the best of all, summed over the widths.
    """
    chosen = current(isa)
    total: dict[int, float] = {}
    for n in widths:
        best: dict[int, float] = {}
        for kernel in kernels(chosen):
            if takes(kernel, n, layout) and _sane(kernel, m):
                best[kernel.panel] = min(best.get(kernel.panel, float("inf")), cycles(kernel, m, k, n))
        least = min(best.values())
        for height in {kernel.panel for kernel in kernels(chosen)}:
            total[height] = total.get(height, 0.0) + best.get(height, float("inf")) / least
    return min(total, key=lambda height: total[height])


def cycles(kernel: Kernel, m: int, k: int, n: int) -> float:
    """Cycles by the rule; good for comparing kernels, not a forecast."""
    lanes, rate = LANES[kernel.isa], PER_CYCLE[kernel.isa]
    if kernel.family == "dot":
        columns, steps = -(-n // kernel.nr), -(-k // lanes)
        total = 0.0
        for rows, times in ((kernel.mr, m // kernel.mr), (1, m % kernel.mr)):
            sums = rows * kernel.nr
            total += times * columns * (steps * max(sums / rate, LATENCY[kernel.isa] / kernel.ks) + 6 + 4 * sums)
        return total

    def work(vectors: float, operands: float) -> float:
        """The steps along k of a tile of so many accumulators, each step loading so many operands."""
        return max(vectors / rate + OPERAND[kernel.isa] * operands, LATENCY[kernel.isa] / kernel.ks) * k

    def tile(vectors: float, operands: float) -> float:
        """A whole tile: starting and storing it overlap with its neighbours while it is small."""
        return work(vectors, operands) + 6 + vectors**2 / 16

    total = 0.0
    for height, panels in Counter(native().panel_heights(kernel.panel, m)).items():
        if kernel.family == "mmm":
            high = max(1.0, height / lanes)
            widths = [min(kernel.nr, n)] * (n // kernel.nr) + _pieces(n % kernel.nr)
            first = work(high * widths[0], high + widths[0])
            tiles = sum(count * tile(high * width, high + width) for width, count in Counter(widths).items())
        elif height == kernel.panel:
            wide = kernel.nr / lanes
            first = work(height * wide, height + wide)
            tiles = n // kernel.nr * tile(height * wide, height + wide)
            tiles += (n % kernel.nr // lanes + (n % lanes).bit_count()) * tile(height, height + 1)
        else:  # a few rows: as wide as it takes to keep eight sums in flight, and B is read for their sake alone
            first = work(8, height)
            tiles = max(max(1.0, height * n / lanes / 8) * tile(8, height), k * n / SECOND_LEVEL_READ)
        # The first pass over a panel waits for its weights.
        read = FIRST_LEVEL_READ if m * k <= FIRST_LEVEL else SECOND_LEVEL_READ
        total += panels * (tiles + max(0.0, height * k / read - first))
    return total


def _sane(kernel: Kernel, m: int) -> bool:
    return kernel.family != "dot" or m <= DOT_ROWS


def _pieces(columns: int) -> list[int]:
    """The smaller tiles that finish the columns left over: eights, fours, then exactly what remains."""
    eights, rest = divmod(columns, 8)
    fours, rest = divmod(rest, 4)
    return [8] * eights + [4] * fours + [rest] * (rest > 0)
