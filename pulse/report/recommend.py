"""Which width to ship. Pure functions on the rows of a sweep, as they stand in its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WITHIN = 1.10  # a width is as good as the best if it costs at most this many times as much

Row = dict[str, Any]


def recommend(
    rows: Sequence[Row], budget_ms: float | None = None, cpu_budget: float | None = None, noisy: bool = False
) -> dict[str, Any]:
    """The width to ship, and why.

    Without a budget: the smallest width within 10 % of the least time per frame. With a latency budget: among the
    widths that meet it, the smallest within 10 % of the least CPU load. With a CPU budget (in percent of one core),
    with or without one of latency: among the widths that meet all of them, the one with the least latency.

    Returns:
        `{"pulse", "why", "meets": bool}`; where nothing meets the budgets `pulse` is None and `nearest` has the width
        that comes closest, with `over_ms` and `over_percent`, what it takes too much (None where it meets that one).
    """
    live = [row for row in rows if row["keeps_up"] is not False]
    if not live:
        least = min(rows, key=_load)
        why = f"no width keeps up with real time: at best, P = {least['pulse']} needs {_load(least):.3g} cores"
        nearest = _nearest(least, budget_ms, cpu_budget)
        return {"pulse": None, "why": why + _doubt(noisy), "meets": False, "nearest": nearest}
    if budget_ms is None and cpu_budget is None:
        return _by_time(live, noisy)
    fitting = [row for row in live if _over_ms(row, budget_ms) is None and _over_percent(row, cpu_budget) is None]
    if not fitting:
        return _none_fits(live, budget_ms, cpu_budget, noisy)
    if cpu_budget is not None:
        chosen = min(fitting, key=_latency)
        reason = "the least latency that meets"
    else:
        least = min(fitting, key=_load)
        chosen = next(row for row in _by_width(fitting) if _load(row) <= WITHIN * _load(least))
        reason = "the least CPU load, within 10 %, that meets"
    why = f"{reason} {_asked(budget_ms, cpu_budget)}: {_latency(chosen):.3g} ms, {_percent(_load(chosen))} of a core"
    return {"pulse": chosen["pulse"], "why": why + _doubt(noisy), "meets": True}


def frontier(rows: Sequence[Row]) -> list[Row]:
    """The rows that no other beats in latency and in CPU load at once, by latency."""
    live = sorted((row for row in rows if row["keeps_up"]), key=lambda row: (_latency(row), _load(row)))
    kept: list[Row] = []
    for row in live:
        if not kept or _load(row) < _load(kept[-1]):
            kept.append(row)
    return kept


def _by_time(live: Sequence[Row], noisy: bool) -> dict[str, Any]:
    least = min(live, key=_time)
    chosen = next(row for row in _by_width(live) if _time(row) <= WITHIN * _time(least))
    why = f"{_time(chosen):.3g} µs per frame, "
    if chosen is least:
        why += "the least of all"
        if any(row["pulse"] > chosen["pulse"] for row in live):
            why += "; wider pulses only add latency"
    else:
        why += f"within 10 % of the least ({_time(least):.3g} µs at P = {least['pulse']}), at less latency"
    close = [row for row in live if row["pulse"] < chosen["pulse"] and _time(row) <= 1.15 * _time(least)]
    if close:
        why += f"; P = {close[-1]['pulse']} takes {100 * (_time(close[-1]) / _time(least) - 1):.0f} % more"
    return {"pulse": chosen["pulse"], "why": why + _doubt(noisy), "meets": True}


def _none_fits(live: Sequence[Row], budget_ms: float | None, cpu_budget: float | None, noisy: bool) -> dict[str, Any]:
    def excess(row: Row) -> float:
        ms, percent = _over_ms(row, budget_ms) or 0.0, _over_percent(row, cpu_budget) or 0.0
        return ms / (budget_ms or 1) + percent / (cpu_budget or 1)

    row = min(live, key=excess)
    nearest = _nearest(row, budget_ms, cpu_budget)
    parts = []
    if nearest["over_ms"] is not None:
        parts.append(f"takes {_latency(row):.3g} ms, {nearest['over_ms']:.3g} ms too much")
    if nearest["over_percent"] is not None:
        parts.append(f"needs {_percent(_load(row))} of a core, {nearest['over_percent']:.3g} points too much")
    why = f"no width meets {_asked(budget_ms, cpu_budget)}: the nearest, P = {row['pulse']}, {' and '.join(parts)}"
    return {"pulse": None, "why": why + _doubt(noisy), "meets": False, "nearest": nearest}


def _nearest(row: Row, budget_ms: float | None, cpu_budget: float | None) -> dict[str, Any]:
    return {
        "pulse": row["pulse"],
        "over_ms": _over_ms(row, budget_ms),
        "over_percent": _over_percent(row, cpu_budget),
    }


def _over_ms(row: Row, budget: float | None) -> float | None:
    latency = row["delay_ms"]["total"]
    return latency - budget if budget is not None and latency is not None and latency > budget else None


def _over_percent(row: Row, budget: float | None) -> float | None:
    return 100 * row["cpu_load"] - budget if budget is not None and 100 * row["cpu_load"] > budget else None


def _by_width(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: int(row["pulse"]))


def _time(row: Row) -> float:
    return float(row["us_per_frame"])


def _load(row: Row) -> float:
    return float(row["cpu_load"])


def _latency(row: Row) -> float:
    return float(row["delay_ms"]["total"])


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _asked(budget_ms: float | None, cpu_budget: float | None) -> str:
    parts = [f"{budget_ms:g} ms"] if budget_ms is not None else []
    parts += [f"{cpu_budget:g} % of a core"] if cpu_budget is not None else []
    return " and ".join(parts)


def _doubt(noisy: bool) -> str:
    return "; the machine was too noisy to be sure, so measure again when it is quiet" if noisy else ""
