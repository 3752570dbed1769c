"""`pulse profile MODEL`: where the time of a pulse goes."""

from __future__ import annotations

import sys
from typing import Any

import click

from pulse.cli import options
from pulse.cli.output import print_json, print_table

COLUMNS = ("step", "op", "us", "share", "m", "k", "n", "count", "kernel", "picked by", "GFLOP/s", "of limit")


@click.command("profile")
@options.model_argument
@click.option("--pulse", type=click.IntRange(1), help="Frames per pulse. [default: the model's, or its granularity]")
@click.option("--try-kernels", is_flag=True, help="Also run each product by other kernels, and give the regret.")
@options.source_options
@options.hints_option
@options.json_option
def command(
    model: str,
    pulse: int | None,
    try_kernels: bool,
    inputs: tuple[str, ...],
    outputs: list[str] | None,
    length_multiple_of: int | None,
    hints: str | None,
    as_json: bool,
) -> None:
    """Run one pulse of MODEL over and over on one core and show what each native step takes.

    One row per step: its time, its share, the product it is (m, k, n; `count` times), the kernel and who picked it, and
    how near it comes to what this core could do. Regret is by how much the kernel in use is slower than the best.
    """
    from pulse.engine.native.profile import profile
    from pulse.model import illegal_pulse, open_model

    source = {"inputs": options.input_shapes(inputs), "outputs": outputs, "length_multiple_of": length_multiple_of}
    opened = open_model(model, pulse, dynamic_will_do=True, hints=hints, **source)
    width = opened.granularity if opened.pulse == "dynamic" else int(opened.pulse)
    if opened.pulse == "dynamic" and pulse is not None:
        if pulse % opened.granularity:
            raise illegal_pulse(pulse, opened.granularity)
        width = pulse
    found = profile(opened, width, try_kernels=try_kernels, told=_progress if try_kernels else None)
    if try_kernels and sys.stderr.isatty():
        click.echo("", err=True)
    if as_json:
        print_json(found)
        return
    columns = [*COLUMNS, "regret", "best"] if try_kernels else list(COLUMNS)
    print_table(columns, [_cells(row, try_kernels) for row in found["steps"]])
    frame = found["total_us"] / width
    click.echo(
        f"\n{found['total_us']:.2f} us a pulse of {width}, {frame:.2f} us a frame; Python {found['python_us']:.2f} us; "
        f"limit {found['limit_us']:.2f} us, {100 * found['limit_us'] / found['total_us']:.0f} % of it reached"
    )
    if found["limit_us"] > found["total_us"]:
        click.echo("above 100 %: the limit has all weights come from one cache, but some lie in a nearer one")
    click.echo(f"{found['isa']} on {found['cpu']}, one thread")


def _cells(row: dict[str, Any], tried: bool) -> list[Any]:
    def percent(value: float | None) -> str | None:
        return None if value is None else f"{100 * value:.1f} %"

    cells = [row["name"], row["op"], f"{row['us']:.2f}", percent(row["share"])]
    cells += [row[key] for key in ("m", "k", "n", "count", "kernel", "picked_by")]
    cells += [None if row["gflops"] is None else f"{row['gflops']:.1f}", percent(row["limit_share"])]
    if tried:
        best = row.get("best")
        cells += [percent(row["regret"]), best if best != row["kernel"] else None]
    return cells


def _progress(done: int, total: int) -> None:
    if done % 10 == 0 and sys.stderr.isatty():
        click.echo(f"\rtrying kernels: {done} of {total}", nl=False, err=True)
