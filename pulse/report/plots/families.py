"""Time per frame against the pulse width, a line per family of operators."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from pulse.report.families import FAMILIES
from pulse.report.svg import BOLD, Canvas, Scale, ceiling, room, spaced
from pulse.report.text import number, pointer
from pulse.report.theme import FAMILY_COLOUR

TOP, BOTTOM, ROOM = 30, 46, 15


def families(figures: dict[str, Any], width: int) -> Canvas:
    """The families add up to the time per frame. Where the engine tells none, the whole is shown instead."""
    rows = figures["widths"]
    height = 400 if width > 500 else 360
    canvas = Canvas(width, height, "Time per frame against pulse width, by family of operators")
    lines = _lines(rows)
    right = max(len(name) for name, *_ in lines) * BOLD + 30
    y = Scale(0, ceiling(max(max(values) for _, _, values, _ in lines)), height - BOTTOM, TOP)
    labels = [(value, f"{value:g}") for value in y.ticks(6)]
    left = room(labels)
    step = (width - left - 12 - right) / max(len(rows) - 1, 1)
    places = [left + 12 + index * step for index in range(len(rows))]
    canvas.axis(y, "y", left, (left, places[-1] + 8), labels)
    widths = [str(row["pulse"]) for row in rows]
    for place, label, shown in zip(places, widths, spaced(places, widths), strict=True):
        if shown:
            canvas.text(place, height - BOTTOM + 18, label, anchor="middle")
    canvas.text(0, 14, "time per frame, µs", "ink", bold=True)
    end = max(places[-1] + 8, left + len("pulse width, frames") * BOLD)
    canvas.text(end, height - 6, "pulse width, frames", "ink", "end", True)
    for _, colour, values, paths in reversed(lines):
        points = [(place, y(value)) for place, value in zip(places, values, strict=True)]
        canvas.path(points, colour)
        for (px, py), value, path in zip(points, values, paths, strict=True):
            canvas.add(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3.5" style="fill:var(--{colour})"')
            canvas.add(f' data-y="{path}" data-y-scale="1" data-at="{px:.2f} {py:.2f}">')
            canvas.add(f"<title>{number(value)} µs</title></circle>")
    for (name, colour, values, _), at in zip(lines, _apart([y(values[-1]) for _, _, values, _ in lines]), strict=True):
        end = y(values[-1])
        if abs(at - end) > 3:
            canvas.line(places[-1] + 6, end, places[-1] + 14, at, colour, 1)
        canvas.text(places[-1] + 18, at + 4, name, colour, bold=True)
    return canvas


def _lines(rows: list[dict[str, Any]]) -> list[tuple[str, str, list[float], list[str]]]:
    """Name, colour, values and their places in the JSON, per line."""
    if not all(row["families_us_per_frame"] for row in rows):
        paths = [pointer("widths", i, "us_per_frame") for i in range(len(rows))]
        return [("in all", "accent", [row["us_per_frame"] for row in rows], paths)]
    lines = []
    for name in FAMILIES:
        if any(name in row["families_us_per_frame"] for row in rows):
            values = [row["families_us_per_frame"].get(name, 0.0) for row in rows]
            paths = [pointer("widths", i, "families_us_per_frame", name) for i in range(len(rows))]
            lines.append((name, FAMILY_COLOUR[name], values, paths))
    return lines


def _apart(places: list[float]) -> list[float]:
    """The heights of labels, moved so that none covers another, in the order given."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for before, index in pairwise(order):
        moved[index] = max(moved[index], moved[before] + ROOM)
    floor = max(places)
    for index in reversed(order):
        if moved[index] > floor:
            moved[index] = floor
        floor = moved[index] - ROOM
    return moved
