"""Tables and JSON on stdout."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import click

GAP = "–"


def print_json(value: Any) -> None:
    """Print `value` as JSON: fractions as "p/q", numbers that JSON lacks (NaN, infinities) as null."""
    click.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table; numbers are flush right. Long cells wrap, nothing is cut off."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    listed = [[_cell(cell) for cell in row] for row in rows]
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for index, name in enumerate(columns):
        numeric = _numeric([row[index] for row in listed])
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in listed:
        table.add_row(*row)
    console = Console(markup=False, highlight=False)
    if console.is_terminal:
        console.print(table)
        return
    console.width = 1000  # a pipe has no width: let each row have its line
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def shape_text(shape: Iterable[int | str]) -> str:
    """`[1, 1, 4, 32]`, as error messages write shapes."""
    return "[" + ", ".join(str(dim) for dim in shape) + "]"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(item) for item in value]
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if hasattr(value, "item"):  # numpy scalars
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _cell(value: Any) -> str:
    if value is None:
        return GAP
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _numeric(cells: Sequence[str]) -> bool:
    """Whether a column holds numbers (fractions such as 1/2 and percentages included) and gaps only."""
    known = [cell for cell in cells if cell != GAP]
    return bool(known) and all(re.fullmatch(r"-?[\d.,]+(e[+-]?\d+|/\d+| %)?|inf|nan", cell) for cell in known)
