"""The figures of a sweep on a terminal."""

from __future__ import annotations

from typing import Any

import click

from pulse.cli.failures import told
from pulse.cli.output import print_table
from pulse.report.text import number


def print_sweep(found: dict[str, Any]) -> None:
    """A table of all widths, what to ship, and what the figures are worth."""
    several = len(found["engines"]) > 1
    head = (["engine"] if several else []) + ["pulse", "µs/frame", "µs/pulse", "p99", "p99.9", "max"]
    live = found["frame_ms"] is not None
    head += ["paced µs", "paced p99", "paced max", "CPU %", "latency ms"] if live else []
    print_table(head, [_cells(row, several, live) for row in found["widths"] + found["compared"]])
    click.echo()
    first = found["widths"][0]
    if live:
        delay = number(first["delay_ms"]["model"])
        click.echo(f"latency: {delay} ms of the model + (pulse - 1) frames of {found['frame_ms']:g} ms + paced compute")
    else:
        click.echo("latency and CPU load need the duration of a frame: --frame-ms, or --rate and --hop")
    stored = "" if found["weights"] == "f32" else f" in the file, large ones run as {found['weights']}"
    click.echo(f"state: {first['state_bytes']:,} bytes, weights: {first['weight_bytes']:,} bytes{stored}")
    for change in found["kernel_changes"]:
        click.echo(f"kernels of {change['product']}: {_picks(change['kernels'])}")
    advice = found["recommended"]
    chosen = "none" if advice["pulse"] is None else f"P = {advice['pulse']}"
    click.echo(f"recommended: {chosen}: {advice['why']}")
    if found["noisy"]:
        told("warning", "the machine was noisy: " + "; ".join(found["noise"]["reasons"]))


def _picks(kernels: dict[str, str]) -> str:
    """The kernels by width, each told once: `64x1, from P = 2 64x2`."""
    told: list[str] = []
    before = None
    for pulse, kernel in kernels.items():
        if kernel != before:
            told.append(f"from P = {pulse} {kernel}" if told else kernel)
        before = kernel
    return ", ".join(told)


def _cells(row: dict[str, Any], several: bool, live: bool) -> list[Any]:
    hot, paced = row["us_per_pulse"], row["paced_us_per_pulse"]
    cells = [row["engine"]] if several else []
    cells += [
        row["pulse"],
        number(row["us_per_frame"]),
        *(number(hot[key]) for key in ("median", "p99", "p999", "max")),
    ]
    if live:
        cells += [number(paced[key]) for key in ("median", "p99", "max")]
        total = row["delay_ms"]["total"]
        cells += [number(100 * row["cpu_load"]), "falls behind" if total is None else number(total)]
    return cells
