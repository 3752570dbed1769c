"""How a kernel cuts a product into cells: the tiles it computes one after the other, and what each step of one reads.

This follows the loops of kernels/isa (panels.hpp, lanes.hpp, dots.hpp), remainders included: a tile of exact width
finishes the columns, lower panels finish the rows. Where a kernel changes its cutting, change it here and gather anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pulse.costmodel.shapes import Product

from pulse.engine.pick import GRAMMAR, LANES, Kernel

REGISTERS = {"v2": 16, "v3": 16, "v4": 32, "neon": 32}
CHAINS = {"v2": 8, "v3": 8, "v4": 4, "neon": 8}  # accumulators that hide the latency of a multiply-add


@dataclass(frozen=True)
class Cells:
    """`count` equal cells.

    Attributes:
        kind: what identifies their machine code, e.g. "16x4", "16x2k4", "nl8x16", "dot4x1".
        main: the kernel's own tile, as against what finishes rows and columns left over.
        vectors: accumulators per split of k; `ks`: splits.
        loads: vectors and broadcasts loaded per step.
        steps: along k, one multiply-add per accumulator each.
        a, b: bytes of weights and of B that each step reads; b counts whole cache lines.
        fresh: cells among `count` which read weights that this product has not read before.
        again: bytes of weights read between two visits to the same ones: decides which cache still holds them.
    """

    kind: str
    main: bool
    count: int
    vectors: float
    ks: int
    loads: float
    steps: float
    a: float
    b: float
    fresh: int
    again: int


def kernel_from_name(name: str) -> Kernel:
    """The kernel that a name of the grammar stands for, whether this build has it or not. Raises ValueError."""
    match = GRAMMAR.fullmatch(name)
    if not match:
        raise ValueError(f"`{name}` is no name of a kernel")
    family, mr, nr = match["family"], int(match["mr"]), int(match["nr"])
    return Kernel(name, match["isa"], family, mr, nr, int(match["ks"] or 1), 1 if family == "dot" else mr)


def acceptable(kernel: Kernel, product: Product) -> bool:
    """Whether the kernel can take B and C as they lie, as `accepts` in kernels/registry.cpp."""
    p = product
    if kernel.family == "nl":
        return p.scattered or p.n == 1
    if kernel.family == "dot":
        return (not p.offsets and (p.by_frames or p.n == 1)) or p.k == 1
    return True


def panel_heights(panel: int, m: int) -> list[int]:
    """Heights of the panels that m rows are packed into; as kernels/pack.cpp."""
    full, left = divmod(m, panel)
    heights = [panel] * full
    while left > 0:
        small = 1 if left == 1 else 4 if left <= 4 else 8 if left <= 8 else 16
        heights.append(left // 16 * 16 if left >= 16 else min(panel, small))
        left -= heights[-1]
    return heights


def pieces(columns: int) -> Iterator[int]:
    """Widths of the cells that finish the columns left over: eights, fours, then exactly what remains."""
    for width in (8, 4):
        while columns >= width:
            yield width
            columns -= width
    if columns:
        yield columns


def cells(kernel: Kernel, product: Product) -> list[Cells]:
    """All cells of a kernel on a product."""
    cut = {"mmm": _panels, "nl": _lanes, "dot": _dots}[kernel.family]
    return [part for part in cut(kernel, product) if part.count > 0]


def _panels(kernel: Kernel, p: Product) -> Iterator[Cells]:
    lanes = LANES[kernel.isa]
    for height, panels in Counter(panel_heights(kernel.mr, p.m)).items():
        width = min(lanes, max(4, height))  # a panel lower than a vector is read by shorter ones
        mv = max(1, height // width)
        if height == kernel.mr:
            cut = [(kernel.nr, kernel.ks, p.n // kernel.nr)]
            cut += [(w, 1, c) for w, c in Counter(pieces(p.n % kernel.nr)).items()]
        elif kernel.ks > 1 and height == 1 and not p.offsets and (p.by_frames or p.n == 1):
            yield Cells("dot1x1k4", False, panels * p.n, 1, 4, 2, p.k / lanes, 4 * lanes, 0, panels, 4 * p.k)
            continue
        elif kernel.ks > 1 and mv < 8:
            split = 8 // mv
            cut = [(2, max(1, split // 2), p.n // 2), (1, split, p.n % 2)]
        else:
            fit = (REGISTERS[kernel.isa] - 1 - mv) // mv
            nr = 8 if fit >= 8 else 4 if fit >= 4 else max(1, fit)
            cut = [(nr, 1, p.n // nr)] + [(w, 1, c) for w, c in Counter(pieces(p.n % nr)).items()]
        fresh, again = panels, 4 * height * p.k
        for nr, ks, count in cut:
            if count:
                kind, main = f"{height}x{nr}" + (f"k{ks}" if ks > 1 else ""), height == kernel.mr and nr == kernel.nr
                yield Cells(
                    kind, main, panels * count, mv * nr, ks, mv + nr, p.k, 4 * height, _lines(p, nr), fresh, again
                )
                fresh = 0


def _lines(p: Product, columns: int) -> float:
    """Bytes of B that a step over so many columns touches: whole cache lines where rows lie apart."""
    return 4 * columns if p.by_frames else min(64.0, 4 * p.n) if 4 * columns < 64 else 4 * columns


def _lanes(kernel: Kernel, p: Product) -> Iterator[Cells]:
    lanes = LANES[kernel.isa]
    full, left = divmod(p.m, kernel.mr)
    # Blocks of columns whose rows of B stay in the first cache level: only the first panel reads B from afar.
    block = max(64, 6144 // (p.k + kernel.mr + 1) // 64 * 64)
    blocks = -(-p.n // block)
    near = 4 * p.k * min(block, p.n) <= 24 << 10
    for rows, panels in ((kernel.mr, full), (left, 1 if left else 0)):
        if not panels:
            continue
        whole = kernel.mr == rows
        fit = min(-(-2 * CHAINS[kernel.isa] // rows), (REGISTERS[kernel.isa] - 1) // (rows + 1))
        wide = kernel.nr // lanes if whole else max(1, fit)
        count, rest = divmod(p.n, wide * lanes)
        cut = [(wide * lanes, count), (lanes, rest // lanes)]
        rest %= lanes
        narrow = lanes // 2
        while whole and narrow >= 4:
            cut.append((narrow, rest // narrow))
            rest, narrow = rest % narrow, narrow // 2
        fresh = panels * blocks
        for width, number in cut:
            if not number:
                continue
            nv = max(1, width // lanes)
            b, main = 4.0 * width / (panels if near else 1), whole and width == kernel.nr
            again = 4 * rows * p.k
            yield Cells(
                f"nl{rows}x{width}", main, panels * number, rows * nv, 1, rows + nv, p.k, 4 * rows, b, fresh, again
            )
            fresh = 0
        height = panel_heights(kernel.mr, rows)[0]
        if height % 4 and height > 1:  # lanes along m would not fit: column by column
            yield Cells(
                f"nl{rows}x1", False, panels * rest, rows, 1, rows + 1, p.k, 4 * rows, 64, fresh, 4 * rows * p.k
            )
            continue
        for width in pieces(rest):
            vectors, again = max(1, height // lanes) * width, 4 * height * p.k
            kind, b = f"{height}x{width}", _lines(p, width)
            yield Cells(kind, False, panels, vectors, 1, width + 1, p.k, 4 * height, b, fresh, again)
            fresh = 0


def _dots(kernel: Kernel, p: Product) -> Iterator[Cells]:
    lanes = LANES[kernel.isa]
    columns, rest = divmod(p.n, kernel.nr)
    rows, single = divmod(p.m, kernel.mr)
    # The first column or group of columns reads A for the first time, all others again.
    cut = [(kernel.mr, kernel.nr, columns * rows, rows), (1, kernel.nr, columns * single, single)]
    cut.append((1, 1, rest * p.m, 0 if columns else p.m))
    for r, nr, count, fresh in cut:
        kind = f"dot{r}x{nr}" + (f"k{kernel.ks}" if kernel.ks > 1 else "")
        yield Cells(
            kind,
            r == kernel.mr,
            count,
            r * nr,
            kernel.ks,
            r + nr,
            p.k / lanes,
            4 * lanes * r,
            4 * lanes * nr,
            fresh,
            4 * p.m * p.k,
        )
