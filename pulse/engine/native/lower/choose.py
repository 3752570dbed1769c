"""The kernel of a product, and the height of the panels its weights are packed in."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pulse.engine.pick import DOT_ROWS, LANES, PER_CYCLE, Kernel, Picks, cycles, kernels

READ = 5  # floats of weights per cycle from the second cache level, beside the sums
FIRST_LEVEL = 24 << 10  # bytes of a panel that stay in the first cache level beside all else
SCATTER = 2.0  # cycles per value of C that a tile must store one by one


@dataclass(frozen=True)
class Shape:
    """What a kernel must cope with: sizes and strides.

    Attributes:
        columns_contiguous: in B and in C; rows_contiguous: of B along k; scattered: C is not contiguous along m.
        widths: the columns at the usual pulse widths, so that the panel height suits them all.
        layout: the same strides in the words of the cost model; act: the activation in the store.
    """

    m: int
    k: int
    n: int
    columns_contiguous: bool
    rows_contiguous: bool
    scattered: bool
    widths: tuple[int, ...]
    layout: str = "frame"
    act: str = "none"

    def takes(self, kernel: Kernel) -> bool:
        if kernel.family == "nl":
            return self.columns_contiguous
        if kernel.family == "dot":
            return self.rows_contiguous and self.m <= DOT_ROWS
        # Low panels are as fast from the second cache level, but not from the third.
        return kernel.mr >= min(3 * LANES[kernel.isa], self.m // 16 * 16)


@dataclass(frozen=True)
class Choice:
    """A kernel, its number in the table of its instruction set (all types, float32 first), and who picked it."""

    kernel: Kernel
    index: int
    picked_by: str


def layout_of(m: int, n: int, offsets: bool, ldb: int, bn: int, cm: int, cn: int) -> str:
    """How B and C of these strides lie, in the words of the cost model: see `pulse.costmodel.shapes.Product`."""
    columns = n > 1 and bn == 1
    if columns and cn == 1 and (cm != 1 or m == 1):
        return "conv" if offsets else "channel"
    if columns:
        return "turn"
    return "frame" if ldb == 1 and not offsets else "taps"


def choose_panel(shape: Shape, isa: str, picker: Picks | None = None) -> int:
    """The panel height that serves all widths."""
    found = picker and picker.panel(shape.m, shape.k, shape.widths, layout=shape.layout, act=shape.act)
    if found:
        return found
    fitting = [kernel for kernel in kernels(isa) if shape.takes(kernel)]
    shapes = [replace(shape, n=n) for n in shape.widths]
    best = [min(cost(s, kernel) for kernel in fitting) for s in shapes]

    def loss(panel: int) -> float:
        own = [kernel for kernel in fitting if kernel.panel == panel]
        return sum(min(cost(s, kernel) for kernel in own) / b for s, b in zip(shapes, best, strict=True))

    return min(sorted({kernel.panel for kernel in fitting}, reverse=True), key=loss)


def choose(shape: Shape, panel: int, isa: str, picker: Picks | None = None) -> Choice:
    """The kernel for weights packed to this height: as the picker knows, or by the rule."""
    picked = picker and picker.find(shape.m, shape.k, shape.n, layout=shape.layout, act=shape.act, panel=panel)
    if picked:
        index = next(i for i, kernel in enumerate(kernels(isa)) if kernel.name == picked.kernel)
        return Choice(kernels(isa)[index], index, picked.by)
    fitting = [(i, k) for i, k in enumerate(kernels(isa)) if k.panel == panel and shape.takes(k)]
    index, kernel = min(fitting, key=lambda item: (cost(shape, item[1]), shape.n % item[1].nr != 0, -item[1].nr))
    return Choice(kernel, index, "rule")


def halved(choice: Choice, isa: str) -> Choice | None:
    """The bf16 kernel nearest to the one chosen for float32 weights: in the height of its panels, then in its columns,
    then in its sums along k. None where there is none of that family."""
    chosen, first = choice.kernel, len(kernels(isa))
    found = [(i, kernel) for i, kernel in enumerate(kernels(isa, "bf16")) if kernel.family == chosen.family]
    if not found:
        return None

    def distance(item: tuple[int, Kernel]) -> tuple[int, int, int, int]:
        kernel = item[1]
        far = abs(kernel.panel - chosen.panel)
        return far, abs(kernel.nr - chosen.nr), -kernel.nr, abs(kernel.ks - chosen.ks)

    index, kernel = min(found, key=distance)
    return Choice(kernel, first + index, choice.picked_by)


def cost(shape: Shape, kernel: Kernel) -> float:
    """Cycles by the rule of `pick`, and what this place adds: reading panels again that the first cache level does not
    hold, and storing C against the grain."""
    m, k, n = shape.m, shape.k, shape.n
    total = cycles(kernel, m, k, n)
    if kernel.family == "dot":
        return total
    if kernel.family == "mmm":
        lanes, rate = LANES[kernel.isa], PER_CYCLE[kernel.isa]
        if 4 * kernel.mr * k > FIRST_LEVEL:
            vectors = kernel.mr * kernel.nr / lanes
            busy = max(vectors / rate, 4 / kernel.ks) * k
            total += (-(-n // kernel.nr) - 1) * (m // kernel.mr) * max(0.0, kernel.mr * k / READ - busy)
        if shape.scattered:
            total += SCATTER * m * n
    return total
