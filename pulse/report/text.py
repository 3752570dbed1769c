"""Figures as text: the same digits in tables, plots and on the terminal."""

from __future__ import annotations

from math import floor, log10
from typing import Any

GAP = "–"


def number(value: float | None) -> str:
    """Three significant digits, all of those before the point: `0.0512`, `35.1`, `1,214`; a dash for None."""
    if value is None:
        return GAP
    if isinstance(value, int) or value == 0:
        return f"{value:,.0f}"
    return f"{value:,.{max(2 - floor(log10(abs(value))), 0)}f}"


def time(us: float) -> str:
    """Microseconds in the unit that reads best: `35.1 µs`, `1.21 ms`, `2.5 s`."""
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= size:
            return f"{us / size:.3g} {unit}"
    return f"{us:.3g} µs"


def tile(kernel: str) -> str:
    """A kernel's name without instruction set and type: `v4_mmm_f32_16x4` is `16x4`, other families keep theirs."""
    parts = [part for part in kernel.split("_") if part not in ("ref", "v2", "v3", "v4", "neon", "mmm", "f32")]
    return " ".join(parts) or kernel


def lookup(figures: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901), as `/widths/0/us_per_frame`; None where the way there ends in null."""
    value = figures
    for part in pointer.split("/")[1:]:
        if value is None:
            return None
        value = value[int(part)] if isinstance(value, list) else value[part.replace("~1", "/").replace("~0", "~")]
    return value


def pointer(*parts: str | int) -> str:
    """The JSON pointer of these keys and indices."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
