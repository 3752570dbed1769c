"""`pulse sweep MODEL`: what each pulse width costs in latency and in CPU, and which one to ship."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulse.cli import options
from pulse.cli.failures import INTERRUPTED, told
from pulse.cli.output import print_json
from pulse.cli.sweep_text import print_sweep

if TYPE_CHECKING:
    import numpy as np


@click.command("sweep")
@options.model_argument
@click.option(
    "--pulses", "--pulse", "widths", type=options.Widths(), help="Widths. [default: 1,2,4,8,16 times the granularity]"
)
@options.frame_options
@click.option("--data", type=click.Path(), metavar="FILE", help="A .npz of inputs, or sound, to feed. [default: noise]")
@click.option("--frontend", metavar="SPEC", help="Sound: features of the model, e.g. stft:512,256,sqrt-hann.")
@options.source_options
@options.hints_option
@click.option(
    "--engines", type=options.Names(), help="native, onnxruntime, reference; widths are chosen for the first."
)
@options.weights_option
@click.option("--budget-ms", type=click.FloatRange(0, min_open=True), help="Largest latency allowed, in ms.")
@click.option("--cpu-budget", type=click.FloatRange(0, min_open=True), help="Largest load allowed, in % of one core.")
@click.option("--quick", is_flag=True, help="Under ten seconds in place of a minute, and less certain.")
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="OUT", help="Write a report: one page, self-contained."
)
@click.option("--csv", type=click.Path(path_type=Path), metavar="OUT", help="Write the figures for a spreadsheet.")
@click.option(
    "--plots", type=click.Path(path_type=Path), metavar="FOLDER", help="Write the report's plots as SVG files."
)
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    widths: list[int | str] | None,
    frame_ms: float | None,
    rate: int | None,
    hop: int | None,
    data: str | None,
    frontend: str | None,
    inputs: tuple[str, ...],
    outputs: list[str] | None,
    length_multiple_of: int | None,
    hints: str | None,
    engines: list[str] | None,
    weights: str,
    budget_ms: float | None,
    cpu_budget: float | None,
    quick: bool,
    html: Path | None,
    csv: Path | None,
    plots: Path | None,
    as_json: bool,
) -> None:
    """Measure MODEL at several pulse widths, on one core, and recommend one.

    Every width runs back to back and in real time, in turns. Real time needs the duration of a frame: --frame-ms, or
    --rate and --hop. Recommended is the smallest width within 10 % of the least time per frame; with --budget-ms the
    one with the least CPU load that meets it, with --cpu-budget the one with the least latency.

    --input also takes the file of --data. Exit status 1 if no width meets the budgets.
    """
    from pulse.report.files import check_writable, write
    from pulse.report.sweeping import sweep

    pulses = _whole(widths)
    frame = options.milliseconds(frame_ms, rate, hop)
    files = [value for value in inputs if "=" not in value] + ([data] if data else [])
    if len(files) > 1:
        raise click.UsageError("Give one file of data.")
    shapes = options.input_shapes(value for value in inputs if "=" in value)
    reading: dict[str, Any] = {"inputs": shapes, "outputs": outputs, "length_multiple_of": length_multiple_of}
    reading["hints"] = hints
    check_writable(html, csv, plots)
    signal = None
    if files:
        signal, hint = _signal(model, Path(files[0]), frontend, rate, reading)
        if hint is not None and frame_ms is None and hop is None:
            frame = hint
    with _progress() as progress:
        found = sweep(
            model,
            pulses,
            engines=engines,
            weights=weights,
            frame_ms=frame,
            signal=signal,
            budget_ms=budget_ms,
            cpu_budget=cpu_budget,
            quick=quick,
            progress=progress,
            **reading,
        )
    for skipped in found["skipped"]:
        told("warning", f"P = {skipped['pulse']} is left out ({skipped['code']}): {skipped['why']}")
    if not as_json:  # what was measured is told even if a file cannot be written
        print_sweep(found)
    written = write(found, html, csv, plots)
    if as_json:
        print_json(found)
    for path in written:
        click.echo(f"written: {path}", err=True)
    if found["interrupted"]:
        told("warning", "interrupted: these are the figures measured until then")
        ctx.exit(INTERRUPTED)
    ctx.exit(0 if found["recommended"]["meets"] else 1)


def _whole(widths: list[int | str] | None) -> list[int] | None:
    if widths is not None and "dynamic" in widths:
        raise click.UsageError("--pulses takes numbers of frames: `dynamic` is no width.")
    return None if widths is None else [int(width) for width in widths]


def _signal(
    model: str, path: Path, frontend: str | None, rate: int | None, reading: dict[str, Any]
) -> tuple[dict[str, np.ndarray], float | None]:
    """The arrays of a file, and for sound how long a source frame lasts."""
    from pulse.model import open_model

    pulsed = open_model(model, **reading)
    if path.suffix.lower() in (".npz", ".npy"):
        from pulse.cli.arrays import read_arrays

        return read_arrays(path, [port.name for port in pulsed.inputs]), None
    from pulse.report.signal import from_sound

    return from_sound(pulsed, path, frontend, rate)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[float, float], None]]:
    """A bar on a terminal; elsewhere one line that says how long it takes."""
    if not sys.stderr.isatty():
        seen: list[float] = []

        def tell(done: float, total: float) -> None:
            if not seen:
                click.echo(f"measuring, about {max(total, 1):.0f} s", err=True)
            seen.append(done)

        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("measuring {task.percentage:3.0f} %"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("measuring", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
