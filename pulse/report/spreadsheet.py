"""The figures of a sweep as a table for spreadsheets: a row per engine and width."""

from __future__ import annotations

import csv
import io
from typing import Any

from pulse.report.families import FAMILIES

COLUMNS: dict[str, tuple[str, ...]] = {
    "engine": ("engine",),
    "pulse": ("pulse",),
    "us_per_frame": ("us_per_frame",),
    "us_per_pulse_median": ("us_per_pulse", "median"),
    "us_per_pulse_p99": ("us_per_pulse", "p99"),
    "us_per_pulse_p999": ("us_per_pulse", "p999"),
    "us_per_pulse_max": ("us_per_pulse", "max"),
    "paced_us_per_pulse_median": ("paced_us_per_pulse", "median"),
    "paced_us_per_pulse_p99": ("paced_us_per_pulse", "p99"),
    "paced_us_per_pulse_max": ("paced_us_per_pulse", "max"),
    "cpu_load": ("cpu_load",),
    "delay_ms_model": ("delay_ms", "model"),
    "delay_ms_buffering": ("delay_ms", "buffering"),
    "delay_ms_compute": ("delay_ms", "compute"),
    "delay_ms_total": ("delay_ms", "total"),
    "keeps_up": ("keeps_up",),
    "missed": ("missed",),
    "state_bytes": ("state_bytes",),
    "weight_bytes": ("weight_bytes",),
    "pulses_hot": ("pulses", "hot"),
    "pulses_paced": ("pulses", "paced"),
} | {f"us_per_frame_{name.replace(' ', '_')}": ("families_us_per_frame", name) for name in FAMILIES}


def as_csv(figures: dict[str, Any]) -> str:
    """Comma-separated, with a heading, full precision, empty where a figure is not known."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in figures["widths"] + figures["compared"]:
        writer.writerow([_value(row, keys) for keys in COLUMNS.values()])
    return text.getvalue()


def _value(row: dict[str, Any], keys: tuple[str, ...]) -> Any:
    value: Any = row
    for key in keys:
        value = None if value is None else value.get(key)
    return "" if value is None else value
