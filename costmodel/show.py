"""What there is to say about a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pulse.costmodel import table as tables
from pulse.costmodel.cells import acceptable, kernel_from_name
from pulse.costmodel.pick import cpu, locate_table
from pulse.costmodel.shapes import LAYOUTS, Product
from pulse.costmodel.table import Table

from pulse.engine.isa import available, current
from pulse.engine.pick import Kernel, kernels
from pulse.errors import PulseError

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16)
EXAMPLES = (
    (16, 64, "frame"),
    (64, 64, "frame"),
    (64, 384, "frame"),
    (256, 256, "frame"),
    (768, 256, "frame"),
    (1024, 1024, "frame"),
    (64, 64, "channel"),
    (64, 18, "conv"),
)


def described(
    path: str | None, isa: str | None, products: Sequence[tuple[int, int, int]] = (), layout: str = "frame"
) -> dict[str, Any]:
    """The facts of the table in a file, or of the one that picks here, with examples of its picks.

    Raises:
        PulseError: `usage` where there is no table to show or the layout is unknown; what `table.load` raises.
    """
    if layout not in LAYOUTS:
        raise PulseError("usage", node="--layout", required=f"one of {', '.join(LAYOUTS)}", found=layout)
    if path is not None:
        table, by = tables.load(path), ""
    else:
        chosen = current(isa)
        place, found, by = locate_table(chosen)
        if found is None:
            raise PulseError(
                "usage",
                node="show",
                required=f"a table for {chosen}",
                found="none: the rule picks",
                remedy="`pulse costmodel gather` and `fit` make one",
            )
        path, table = str(place), found
    known = [kernel_from_name(name) for name in table.kernels]
    notes = _notes(table)
    picks = []
    for m, k, how in EXAMPLES:
        row = [_ranked(table, known, Product(m, k, n, how))[0][0] for n in WIDTHS]
        picks.append({"product": f"{m} x {k}, {how}", "kernels": row})
    forecasts = []
    for m, k, n in products:
        product = Product(m, k, n, layout)
        forecasts.append({"product": str(product), "kernels": _ranked(table, known, product)})
    return {
        "table": path,
        "picked_by": by or "-",
        "isa": table.isa,
        "cpu": table.cpu,
        "date": table.date,
        "tool": table.tool,
        "dataset": table.dataset,
        "notes": notes,
        "regret": {home: fitted.regret for home, fitted in table.homes.items()},
        "candidates": {home: fitted.candidate for home, fitted in table.homes.items()},
        "widths": list(WIDTHS),
        "picks": picks,
        "forecasts": forecasts,
    }


def _notes(table: Table) -> list[str]:
    notes = []
    if table.isa in available():
        here = [kernel.name for kernel in kernels(table.isa)]
        gone = [name for name in table.kernels if name not in here]
        new = [name for name in here if name not in table.kernels]
        if gone:
            notes.append(f"stale: {', '.join(gone)} no longer exist")
        if new:
            notes.append(f"stale: {', '.join(new)} were added since and are never picked; gather and fit again")
    if table.cpu != cpu():
        notes.append(f"made on another CPU than this one, which is {cpu()}")
    return notes


def _ranked(table: Table, known: Sequence[Kernel], product: Product) -> list[tuple[str, float]]:
    forecast = [(kernel.name, table.ns(kernel, product)) for kernel in known if acceptable(kernel, product)]
    return sorted(forecast, key=lambda pair: pair[1])
