"""The part of `pulse run` that takes sound: one file, or a folder or glob of them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulse.cli.failures import report as report_error
from pulse.cli.failures import told
from pulse.live.audiofile import open_audio
from pulse.live.batch import Outcome, is_batch, pairs, run_batch
from pulse.live.files import FileOptions, FileRunner, Report

if TYPE_CHECKING:
    from pulse.model import PulsedModel


def run_sound(model: PulsedModel, source: str, target: str, options: FileOptions, jobs: int) -> int:
    """Runs the files that `source` names; returns the exit status, 2 if any of several failed."""
    if is_batch(source):
        return _many(model, source, Path(target), options, jobs)
    file = open_audio(Path(source))
    with _progress(file.frames, "samples") as advance:
        done = FileRunner(model, options).run(Path(source), Path(target), advance)
    _note_rate(options, {file.rate})
    _note_clipping([done])
    channels = f", {done.channels} channel{'s' if done.channels > 1 else ''} at {done.rate} Hz" if done.channels else ""
    what = f"{done.seconds:.2f} s{channels}"
    speed = done.seconds / max(done.took, 1e-9)
    click.echo(f"wrote {target}: {what}, {speed:.0f} times faster than it plays", err=True)
    return 0


def _many(model: PulsedModel, source: str, target: Path, options: FileOptions, jobs: int) -> int:
    suffix = ".wav" if _gives_sound(model, options) else ".npz"
    listed = pairs(source, target, suffix)
    outcomes: list[Outcome] = []
    with _progress(len(listed), "files") as advance:

        def done(outcome: Outcome) -> None:
            outcomes.append(outcome)
            advance(1)

        run_batch(model, options, listed, jobs, done)
    for outcome in sorted(outcomes, key=lambda o: o.source):
        if outcome.error:
            report_error(outcome.error)
    reports = [outcome.report for outcome in outcomes if outcome.report]
    _note_rate(options, {done.rate for done in reports})
    _note_clipping(reports)
    failed = len(listed) - len(reports)
    seconds = sum(done.seconds for done in reports)
    told_failures = f", {failed} failed" if failed else ""
    count = "1 file" if len(reports) == 1 else f"{len(reports)} files"
    click.echo(f"wrote {count} to {target}: {seconds:.1f} s of sound{told_failures}", err=True)
    return 2 if failed else 0


def _gives_sound(model: PulsedModel, options: FileOptions) -> bool:
    from pulse.live.spec import parse
    from pulse.live.wiring import wire

    return wire(model.inputs, model.outputs, parse(options.front)).sound is not None


def _note_rate(options: FileOptions, rates: set[int]) -> None:
    if options.rate is None and rates:
        shown = " and ".join(str(rate) for rate in sorted(rates))
        click.echo(f"the model ran at the sound's own rate, {shown} Hz: give --rate if made for another", err=True)


def _note_clipping(reports: list[Report]) -> None:
    clipped = [done for done in reports if done.clipped]
    if clipped:
        samples = sum(done.clipped for done in clipped)
        told("warning", f"{samples} samples beyond full scale were cut off, in {', '.join(d.target for d in clipped)}")


@contextlib.contextmanager
def _progress(total: int, unit: str) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

    columns = ("{task.percentage:3.0f} %", BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(unit, total=total)
        yield lambda count: bar.advance(task, count)
