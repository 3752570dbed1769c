"""The tables of the report: columns of figures, each cell the value at a place of the JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from pulse.report.families import FAMILIES
from pulse.report.text import GAP, lookup, number, pointer, tile


@dataclass(frozen=True)
class Column:
    """A heading with its unit, and where the value lies in a row of the sweep; shown times `scale`."""

    head: str
    unit: str
    keys: tuple[str, ...]
    scale: float = 1


PULSE = Column("pulse", "frames", ("pulse",))
LATENCY = (
    PULSE,
    Column("model delay", "ms", ("delay_ms", "model")),
    Column("buffering", "ms", ("delay_ms", "buffering")),
    Column("compute", "ms", ("delay_ms", "compute")),
    Column("total", "ms", ("delay_ms", "total")),
    Column("CPU load", "%", ("cpu_load",), 100),
)
PACED = (
    PULSE,
    Column("median", "µs", ("paced_us_per_pulse", "median")),
    Column("p99", "µs", ("paced_us_per_pulse", "p99")),
    Column("max", "µs", ("paced_us_per_pulse", "max")),
    Column("per frame", "µs", ("paced_us_per_frame",)),
    Column("late", "pulses", ("missed",)),
)
HOT = (
    PULSE,
    Column("median", "µs", ("us_per_pulse", "median")),
    Column("p99", "µs", ("us_per_pulse", "p99")),
    Column("p99.9", "µs", ("us_per_pulse", "p999")),
    Column("max", "µs", ("us_per_pulse", "max")),
    Column("per frame", "µs", ("us_per_frame",)),
)
SIZES = (
    PULSE,
    Column("weights", "kB", ("weight_bytes",), 1e-3),
    Column("state", "kB", ("state_bytes",), 1e-3),
    Column("timed hot", "pulses", ("pulses", "hot")),
    Column("paced", "pulses", ("pulses", "paced")),
)


def figure(figures: dict[str, Any], path: str, scale: float = 1, tag: str = "span", cls: str = "") -> str:
    """The value at a JSON pointer, as text that says where it is from."""
    value = lookup(figures, path)
    shown = GAP if value is None else number(value if scale == 1 else value * scale)
    kind = f' class="{cls}"' if cls else ""
    return f'<{tag}{kind} data-json="{escape(path)}" data-scale="{scale:g}">{escape(shown)}</{tag}>'


def rows_table(figures: dict[str, Any], name: str, caption: str, columns: tuple[Column, ...]) -> str:
    """A row per width, for every engine in turn."""
    several = len(figures["engines"]) > 1
    head = ("<th scope=col>engine</th>" if several else "") + "".join(
        f"<th scope=col>{escape(c.head)}<small>{escape(c.unit)}</small></th>" for c in columns
    )
    body = []
    for table in ("widths", "compared"):
        for index, row in enumerate(figures[table]):
            chosen = table == "widths" and row["pulse"] == figures["recommended"]["pulse"]
            cells = f"<th scope=row>{escape(row['engine'])}</th>" if several else ""
            cells += "".join(figure(figures, pointer(table, index, *c.keys), c.scale, "td") for c in columns)
            body.append(f"<tr{' class=chosen' if chosen else ''}>{cells}</tr>")
    return _table(name, caption, head, body)


def families_table(figures: dict[str, Any]) -> str | None:
    """Time per frame by family of operators, None where the engine does not tell."""
    rows = figures["widths"]
    if not any(row["families"] for row in rows):
        return None
    kept = [name for name in FAMILIES if any(name in (row["families"] or {}) for row in rows)]
    head = "<th scope=col>family<small>µs per frame</small></th>" + _widths(rows)

    def cell(index: int, name: str) -> str:
        known = name in (rows[index]["families_us_per_frame"] or {})
        path = pointer("widths", index, "families_us_per_frame", name)
        return figure(figures, path, tag="td") if known else f"<td>{GAP}</td>"

    return _table("families", "By family of operators", head, _body(kept, rows, cell))


def kernels_table(figures: dict[str, Any]) -> str | None:
    """The kernel of each product, None where the engine does not tell."""
    rows = figures["widths"]
    products = list(dict.fromkeys(name for row in rows for name in row["kernels"]))
    if not products:
        return None
    head = "<th scope=col>product</th>" + _widths(rows)

    def cell(index: int, product: str) -> str:
        kernel = rows[index]["kernels"].get(product)
        if kernel is None:
            return f"<td>{GAP}</td>"
        path = escape(pointer("widths", index, "kernels", product))
        return f'<td data-kernel-json="{path}" title="{escape(kernel)}">{escape(tile(kernel))}</td>'

    return _table("kernels", "Kernels by product", head, _body(products, rows, cell))


def _widths(rows: list[dict[str, Any]]) -> str:
    return "".join(f"<th scope=col>P = {row['pulse']}</th>" for row in rows)


def _body(names: list[str], rows: list[dict[str, Any]], cell: Callable[[int, str], str]) -> list[str]:
    return [
        f"<tr><th scope=row>{escape(name)}</th>{''.join(cell(i, name) for i in range(len(rows)))}</tr>"
        for name in names
    ]


def _table(name: str, caption: str, head: str, body: list[str]) -> str:
    return (
        f'<section class="card table" id="table-{name}"><div class=bar><h3>{escape(caption)}</h3>'
        f'<button type=button data-copy="table-{name}">Copy</button></div>'
        f'<div class=scroll tabindex=0 role=region aria-label="{escape(caption)}"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div></section>"
    )
