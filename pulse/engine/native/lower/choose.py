"""The kernel of a product, and the height of the panels its weights are packed in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pulse.engine.pick import DOT_ROWS, Kernel, Layout, cycles, kernels, pick, pick_panel


@dataclass(frozen=True)
class Shape:
    """What a kernel must cope with: sizes, and which families the strides allow.

    `widths` are the columns at the usual pulse widths, so that the panel height suits them all.
    """

    m: int
    k: int
    n: int
    lanes_along_n: bool
    rows_contiguous: bool
    widths: tuple[int, ...]

    def takes(self, kernel: Kernel) -> bool:
        if kernel.family == "nl":
            return self.lanes_along_n
        if kernel.family == "dot":
            return self.rows_contiguous and self.m <= DOT_ROWS
        return True


@dataclass(frozen=True)
class Choice:
    """A kernel, its number in the table of its instruction set, and who picked it."""

    kernel: Kernel
    index: int
    picked_by: str


def choose_panel(shape: Shape, isa: str) -> int:
    """The panel height that serves all widths."""
    height = pick_panel(shape.m, shape.k, shape.widths, isa, layout=_layout(shape))
    if any(kernel.panel == height and shape.takes(kernel) for kernel in kernels(isa)):
        return height
    heights = {kernel.panel for kernel in kernels(isa) if shape.takes(kernel)}

    def loss(panel: int) -> float:
        return sum(min(_costs(shape, isa, panel, n)) for n in shape.widths)

    return min(sorted(heights), key=loss)


def choose(shape: Shape, panel: int, isa: str) -> Choice:
    """The kernel for weights packed to this height."""
    table = {kernel.name: (index, kernel) for index, kernel in enumerate(kernels(isa))}
    name = pick(shape.m, shape.k, shape.n, "f32", isa, layout=_layout(shape), panel=panel)
    if not shape.takes(table[name][1]):
        fitting = [kernel for kernel in kernels(isa) if kernel.panel == panel and shape.takes(kernel)]
        name = min(fitting, key=lambda kernel: cycles(kernel, shape.m, shape.k, shape.n)).name
    index, kernel = table[name]
    return Choice(kernel, index, "rule")


def _layout(shape: Shape) -> Layout:
    return "channel" if shape.lanes_along_n else "frame"


def _costs(shape: Shape, isa: str, panel: int, n: int) -> Iterable[float]:
    return [cycles(k, shape.m, shape.k, n) for k in kernels(isa) if k.panel == panel and shape.takes(k)]
