"""How long pulses take, against the time there is for them: a histogram per width."""

from __future__ import annotations

from typing import Any

from pulse.report.svg import DIGIT, Anchor, Canvas, Scale
from pulse.report.text import pointer, time

TOP, ROW, BOTTOM, LEFT, RIGHT = 30, 62, 46, 56, 26


def distribution(figures: dict[str, Any], width: int) -> Canvas:
    """The time axis is logarithmic; the deadline of a width is the time in which its next pulse has arrived."""
    rows = figures["widths"]
    height = TOP + len(rows) * ROW + BOTTOM
    canvas = Canvas(width, height, "Distribution of the time per pulse against the deadline")
    edges = rows[0]["distribution"]["edges_us"]
    deadlines = [row["deadline_us"] for row in rows if row["deadline_us"]]
    filled = [i for row in rows for i, count in enumerate(row["distribution"]["counts"]) if count]
    low, high = min([edges[min(filled)], *deadlines]), max([edges[max(filled) + 1], *deadlines])
    x = Scale(low / 1.15, high * 1.15, LEFT, width - RIGHT, log=True)
    floor = TOP + len(rows) * ROW
    labels = [(value, time(value)) for value in x.ticks(9 if width > 500 else 4)]
    canvas.axis(x, "x", floor, (TOP, floor), labels)
    canvas.text(0, 14, "pulse width", "ink", bold=True)
    canvas.text(width - RIGHT, height - 6, "time per pulse (logarithmic)", "ink", "end", True)
    for index, row in enumerate(rows):
        _row(canvas, row, index, TOP + (index + 1) * ROW, x, width)
    return canvas


def _row(canvas: Canvas, row: dict[str, Any], index: int, base: float, x: Scale, width: int) -> None:
    found = row["distribution"]
    most = max(found["counts"])
    canvas.line(LEFT, base, width - RIGHT, base, "line")
    canvas.text(0, base - 6, f"P = {row['pulse']}", "ink", bold=True)
    for bin_, count in enumerate(found["counts"]):
        if count:
            left, right = x(found["edges_us"][bin_]), x(found["edges_us"][bin_ + 1])
            tall = max(count / most * (ROW - 26), 1.5)
            path = pointer("widths", index, "distribution", "counts", bin_)
            more = f' data-bar="{path}" data-full="{most}" data-height="{tall:.3f}"'
            late = row["deadline_us"] is not None and found["edges_us"][bin_] >= row["deadline_us"]
            canvas.rect(left + 0.5, base - tall, right - left - 1, tall, "warn" if late else "accent", more=more)
    typical = (row["paced_us_per_pulse"] or row["us_per_pulse"])["median"]
    label = time(typical)
    half = len(label) * DIGIT / 2
    middle = min(max(x(typical), LEFT + half), width - half)
    canvas.text(middle, base - ROW + 22, label, "ink", "middle")
    if row["deadline_us"] is not None:
        due = x(row["deadline_us"])
        canvas.line(due, base - ROW + 14, due, base, "warn", 1.5)
        label = f"{'deadline ' if width > 500 else ''}{time(row['deadline_us'])}"
        long = len(label) * DIGIT + 8
        sides: tuple[tuple[float, Anchor], ...] = ((due - long, "end"), (due, "start"))
        for start, anchor in sides:
            apart = start + long < middle - half or start > middle + half
            if apart and start > LEFT and start + long < width:
                canvas.text(due - 6 if anchor == "end" else due + 6, base - ROW + 22, label, "warn", anchor)
                break
