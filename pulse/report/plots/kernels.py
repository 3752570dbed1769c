"""The kernel of every product at every width, and how much of a pulse it takes."""

from __future__ import annotations

from typing import Any

from pulse.report.svg import DIGIT, Canvas, shortened
from pulse.report.text import number, tile
from pulse.report.theme import HEAT_STEPS, heat

TOP, ROW, LABEL, GAP = 44, 28, 250, 3


def kernels(figures: dict[str, Any], width: int) -> Canvas | None:
    """Rows are products, columns widths; a dot marks a kernel that is another than at the width before."""
    rows = figures["widths"]
    products = list(dict.fromkeys(name for row in rows for name in row["kernels"]))
    if not products:
        return None
    narrow = width < 500
    left = 0 if narrow else LABEL
    row_height = ROW + (18 if narrow else 0)
    height = TOP + len(products) * row_height + 64
    canvas = Canvas(width, height, "Kernel of each product at each pulse width")
    cell = (width - left) / len(rows)
    canvas.text(0, 14, "product" if not narrow else "kernel per product", "ink", bold=True)
    canvas.text(width, 14, "pulse width, frames", "ink", "end", True)
    for column, row in enumerate(rows):
        canvas.text(left + (column + 0.5) * cell, 34, str(row["pulse"]), anchor="middle")
    for index, product in enumerate(products):
        top = TOP + index * row_height
        most = int((width if narrow else LABEL - 12) / DIGIT)
        canvas.add("<g>")
        canvas.add(f"<title>{_escaped(product)}</title>")
        canvas.text(0, top + (12 if narrow else ROW / 2 + 4), shortened(product, most), "ink")
        canvas.add("</g>")
        before = None
        for column, row in enumerate(rows):
            kernel = row["kernels"].get(product)
            _cell(canvas, row, product, left + column * cell, top + (18 if narrow else 0), cell - GAP, before)
            before = kernel or before
    _legend(canvas, width, height)
    return canvas


def _cell(
    canvas: Canvas, row: dict[str, Any], product: str, x: float, y: float, width: float, before: str | None
) -> None:
    kernel = row["kernels"].get(product)
    if kernel is None:
        return
    us = row["products_us"].get(product)
    share = None if us is None else us / row["us_per_pulse"]["median"]
    ground, ink = heat(share)
    told = f"{product} at P = {row['pulse']}: {kernel}" + ("" if us is None else f", {number(us)} µs per pulse")
    canvas.add(f'<g data-pulse="{row["pulse"]}" data-product="{_escaped(product)}" data-kernel="{_escaped(kernel)}">')
    canvas.add(f"<title>{_escaped(told)}</title>")
    canvas.rect(x, y, width, ROW - GAP, ground, 4)
    canvas.text(x + width / 2, y + 17, shortened(tile(kernel), int(width / 6.5)), ink, "middle", size=11)
    if before is not None and before != kernel:
        canvas.add(f'<circle cx="{x + 6:.1f}" cy="{y + 6:.1f}" r="2.5" style="fill:var(--{ink})"/>')
    canvas.add("</g>")


def _legend(canvas: Canvas, width: int, height: float) -> None:
    limits = (0.0, *HEAT_STEPS)
    step = min(width / len(limits), 84)
    canvas.text(0, height - 38, "share of a pulse's time", "ink", bold=True)
    for index, limit in enumerate(limits):
        ground, ink = heat(limit)
        label = f"< {100 * limits[1]:.0f} %" if index == 0 else f"≥ {100 * limit:.0f} %"
        canvas.rect(index * step, height - 28, step - GAP, 22, ground, 4)
        canvas.text(index * step + (step - GAP) / 2, height - 13, label, ink, "middle", size=11)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
