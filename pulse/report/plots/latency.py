"""Latency against CPU load, a mark per width: the frontier, the budgets and the recommendation."""

from __future__ import annotations

from typing import Any

from pulse.report.svg import BOLD, DIGIT, Canvas, Scale, ceiling, room
from pulse.report.text import number, pointer

TOP, BOTTOM, RIGHT = 50, 46, 18


def latency(figures: dict[str, Any], width: int) -> Canvas:
    """Without the duration of a frame there is neither latency nor load: then time per frame against the width."""
    live = figures["frame_ms"] is not None
    height = 400 if width > 500 else 340
    canvas = Canvas(width, height, "Latency against CPU load" if live else "Time per frame against pulse width")
    marks = _marks(figures, live)
    if not marks:
        canvas.text(width / 2, height / 2, "no width keeps up with real time", anchor="middle")
        return canvas
    x_end = ceiling(max([m["x"] for m in marks] + _budget(figures["budget_ms"], [m["x"] for m in marks])))
    y_end = ceiling(max([m["y"] for m in marks] + _budget(figures["cpu_budget"], [m["y"] for m in marks])))
    y = Scale(0, y_end, height - BOTTOM, TOP)
    left = room(_labels(y, 6))
    x = Scale(-0.05 * x_end, x_end, left, width - RIGHT)  # the first mark keeps clear of the numbers
    canvas.axis(x, "x", height - BOTTOM, (TOP, height - BOTTOM), _labels(x, 7 if width > 500 else 5))
    canvas.axis(y, "y", left, (left, width - RIGHT), _labels(y, 6))
    canvas.text(0, 14, "CPU load, % of one core" if live else "time per frame, µs", "ink", bold=True)
    canvas.text(width - RIGHT, height - 6, "total latency, ms" if live else "pulse width, frames", "ink", "end", True)
    taken = _budgets(canvas, figures, x, y, width, height) if live else []
    for engine in figures["engines"]:
        colour = "accent" if engine == figures["engine"] else "other"
        line = [
            (x(m["x"]), y(m["y"]))
            for m in marks
            if m["row"]["engine"] == engine and (m["row"]["on_frontier"] or not live)
        ]
        canvas.path(sorted(line), colour, 2 if colour == "accent" else 1.5, "" if colour == "accent" else "5 4")
    for mark in sorted(marks, key=lambda m: (m["chosen"], m["row"]["engine"] == figures["engine"])):
        _mark(canvas, mark, x(mark["x"]), y(mark["y"]), figures, width)
    taken += [(x(m["x"]), y(m["y"]), 12.0) for m in marks]
    for mark in marks:
        if mark["chosen"]:
            _recommended(canvas, x(mark["x"]), y(mark["y"]), taken, left, width, height)
    if len(figures["engines"]) > 1:
        _legend(canvas, figures, width)
    return canvas


def _marks(figures: dict[str, Any], live: bool) -> list[dict[str, Any]]:
    marks = []
    for table in ("widths", "compared"):
        for index, row in enumerate(figures[table]):
            chosen = table == "widths" and row["pulse"] == figures["recommended"]["pulse"]
            if live and row["delay_ms"]["total"] is not None:
                at = {"x": row["delay_ms"]["total"], "y": 100 * row["cpu_load"]}
                paths = (pointer(table, index, "delay_ms", "total"), pointer(table, index, "cpu_load"), 100)
            elif not live:
                at = {"x": row["pulse"], "y": row["us_per_frame"]}
                paths = (pointer(table, index, "pulse"), pointer(table, index, "us_per_frame"), 1)
            else:
                continue
            marks.append(at | {"row": row, "chosen": chosen, "paths": paths})
    return marks


def _budget(budget: float | None, values: list[float]) -> list[float]:
    """A budget is on the axis unless it is far away."""
    return [budget] if budget is not None and budget <= 2 * max(values) else []


def _labels(scale: Scale, most: int) -> list[tuple[float, str]]:
    return [(value, f"{value:g}") for value in scale.ticks(most)]


def _mark(canvas: Canvas, mark: dict[str, Any], x: float, y: float, figures: dict[str, Any], width: int) -> None:
    row, own = mark["row"], mark["row"]["engine"] == figures["engine"]
    colour = "accent" if own else "other"
    label = str(row["pulse"])
    wide = max(len(label) * DIGIT + 12, 22)
    told = f"P = {label}, {row['engine']}: {number(row['us_per_frame'])} µs per frame back to back"
    if row["cpu_load"] is not None:
        told += f", {number(row['delay_ms']['total'])} ms, {number(100 * row['cpu_load'])} % of a core"
    told += ", recommended" if mark["chosen"] else ""
    x_path, y_path, scale = mark["paths"]
    canvas.add(f'<g data-x="{x_path}" data-y="{y_path}" data-y-scale="{scale}" data-at="{x:.2f} {y:.2f}">')
    canvas.add(f"<title>{told}</title>")
    if mark["chosen"]:
        canvas.rect(x - wide / 2 - 4, y - 15, wide + 8, 30, "wash", 15)
        canvas.rect(x - wide / 2, y - 11, wide, 22, colour, 11)
        canvas.text(x, y + 4, label, "on-accent", "middle", True)
    else:
        canvas.rect(x - wide / 2, y - 11, wide, 22, "card", 11, colour if row["on_frontier"] is not False else "soft")
        canvas.text(x, y + 4, label, colour if row["on_frontier"] is not False else "soft", "middle", True)
    canvas.add("</g>")


def _recommended(
    canvas: Canvas, x: float, y: float, taken: list[tuple[float, float, float]], left: float, width: int, height: int
) -> None:
    """The word beside its mark, where it covers nothing that is taken; the filled mark speaks for itself."""
    half = len("recommended") * BOLD / 2
    inside = min(max(x, left + half + 4), width - half - 4)
    places = [(inside, y + 32), (inside, y - 22), (inside, y - 34), (x + half + 18, y + 4), (x - half - 18, y + 4)]
    places += [(x + side * (half - 8), y + up) for up in (-22, 32, -40) for side in (1, -1)]
    for middle, base in places:
        fits = TOP < base < height - BOTTOM - 4 and left + half < middle < width - half
        if fits and not any(abs(a - middle) < half + wide and abs(b - base + 4) < 18 for a, b, wide in taken):
            canvas.text(middle, base, "recommended", "accent", "middle", True, halo=True)
            return


def _budgets(
    canvas: Canvas, figures: dict[str, Any], x: Scale, y: Scale, width: int, height: int
) -> list[tuple[float, float, float]]:
    """Lines at the budgets that are on the axes; the middles of words inside the plot, and half their width."""
    if figures["budget_ms"] is not None and figures["budget_ms"] <= x.high:
        place = x(figures["budget_ms"])
        canvas.line(place, TOP, place, height - BOTTOM, "warn", 1.5, "4 4")
        label = f"budget {figures['budget_ms']:g} ms"
        half = len(label) * DIGIT / 2
        canvas.text(min(max(place, half), width - half), TOP - 4, label, "warn", "middle")
    if figures["cpu_budget"] is None or figures["cpu_budget"] > y.high:
        return []
    place = y(figures["cpu_budget"])
    canvas.line(x.start, place, width - RIGHT, place, "warn", 1.5, "4 4")
    label = f"budget {figures['cpu_budget']:g} %"
    base = place - 6 if place > TOP + 18 else place + 15
    canvas.text(width - RIGHT, base, label, "warn", "end")
    half = len(label) * DIGIT / 2
    return [(width - RIGHT - half, base - 4, half)]


def _legend(canvas: Canvas, figures: dict[str, Any], width: int) -> None:
    place = 0.0 if width < 500 else 190.0
    for engine in figures["engines"]:
        own = engine == figures["engine"]
        colour = "accent" if own else "other"
        height = 30 if width < 500 else 14
        canvas.line(place, height - 4, place + 20, height - 4, colour, 2, "" if own else "5 4")
        canvas.text(place + 26, height, engine, colour)
        place += 26 + len(engine) * DIGIT + 18
