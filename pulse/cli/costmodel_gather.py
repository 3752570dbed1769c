"""`pulse costmodel gather` and `shapes`: time kernels into a data set, or list what a board should time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pulse.cli import options

if TYPE_CHECKING:
    from pulse.costmodel.shapes import Product

Command = TypeVar("Command", bound=Callable[..., Any])
DATASET = "pulse-dataset.txt"
QUIET = 20.0  # seconds between two lines of progress where there is no terminal


def product_options(command: Command) -> Command:
    """Which products are timed: models' own, and a sweep."""
    for option in (
        click.option("--homes", type=options.Names(), help="Where weights come from: l2, l3, cold. [default: all]"),
        click.option("--seed", type=int, default=1, show_default=True, help="Of the sweep."),
        click.option("--wide", type=click.IntRange(0), help="Products in the sweep with n up to 768. [default: 160]"),
        click.option("--sweep", type=click.IntRange(0), help="Products in the sweep with n up to 16. [default: 640]"),
        options.pulses_option,
        click.argument("models", nargs=-1, type=click.Path()),
    ):
        command = option(command)
    return command


def chosen_products(
    models: Sequence[str],
    pulses: Sequence[int | str] | None,
    sweep: int | None,
    wide: int | None,
    seed: int,
    homes: Sequence[str] | None,
) -> list[Product]:
    """The products of the models joined with the sweep, in every home."""
    from pulse.costmodel.gather import SWEEP, WIDE, default_products
    from pulse.costmodel.shapes import HOMES, in_homes

    wanted = list(homes or HOMES)
    if not set(wanted) <= set(HOMES):
        raise click.UsageError(f"--homes takes {', '.join(HOMES)}.")
    swept = default_products(SWEEP if sweep is None else sweep, WIDE if wide is None else wide, seed, wanted)
    own = in_homes(model_products(models, pulses), wanted)
    return list(dict.fromkeys([*own, *swept]))


def model_products(models: Sequence[str], pulses: Sequence[int | str] | None) -> list[Product]:
    """The different products of these models at these widths; widths that a model cannot take are passed over."""
    from pulse.costmodel.products import merged, products
    from pulse.model import open_model

    listed = []
    for path in models:
        model = open_model(path)
        widths = options.widths_of(model, pulses)
        listed += [products(model, width) for width in widths if width % model.granularity == 0]
    return merged(listed)


@click.command("shapes", short_help="List the products that gather would time.")
@product_options
@click.option("--fresh", is_flag=True, help="Products to validate on: another sweep, and none of this command's own.")
@click.option("-o", "--output", type=click.Path(), help="File to write. [default: standard output]")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def shapes_command(
    models: tuple[str, ...],
    pulses: list[int | str] | None,
    sweep: int | None,
    wide: int | None,
    seed: int,
    homes: list[str] | None,
    fresh: bool,
    output: str | None,
    force: bool,
) -> None:
    """List the products that gather would time, as pulse-gather reads them on a board.

    With --fresh those that validate would time: then --sweep is their number.
    """
    from pulse.costmodel import files
    from pulse.costmodel.shapes import write_list
    from pulse.costmodel.validate import COUNT, SEED, fresh_products

    if fresh:
        own = model_products(models, pulses)
        products = fresh_products(own, homes or ("l2", "l3"), COUNT if sweep is None else sweep, SEED + seed - 1)
    else:
        products = chosen_products(models, pulses, sweep, wide, seed, homes)
    text = write_list(products)
    if output is None:
        click.echo(text, nl=False)
    else:
        files.write(Path(output), text, force)


@click.command("gather", short_help="Time every kernel on many products: the data set of a table.")
@product_options
@click.option("--shapes", type=click.Path(), help="Time the products listed in this file, and no others.")
@click.option("--isa", help="Instruction sets, e.g. v4,v3. [default: all of this CPU but the lowest]")
@click.option("--rounds", type=click.IntRange(2, 1000), default=9, show_default=True, help="Rounds of all kernels.")
@click.option(
    "--slice-us", type=click.FloatRange(1, 1e6), default=60.0, show_default=True, help="Per kernel and round."
)
@click.option("--core", type=click.IntRange(0), help="Core to run on. [default: the last one allowed]")
@click.option(
    "-o", "--output", type=click.Path(), default=DATASET, show_default=True, help="Data set to write or go on with."
)
def gather_command(
    models: tuple[str, ...],
    pulses: list[int | str] | None,
    sweep: int | None,
    wide: int | None,
    seed: int,
    homes: list[str] | None,
    shapes: str | None,
    isa: str | None,
    rounds: int,
    slice_us: float,
    core: int | None,
    output: str,
) -> None:
    """Time every kernel on the products of MODELS, joined with a sweep of all shapes.

    It can be interrupted at any time; the same command goes on where it was. Take other work off the machine: rounds in
    which a reference kernel drifts are repeated, which costs time.
    """
    from pulse.costmodel.gather import Settings, gather, isas_of
    from pulse.costmodel.shapes import read_list

    if shapes is not None:
        products = read_list(_text(shapes), shapes)
    else:
        products = chosen_products(models, pulses, sweep, wide, seed, homes)
    isas = isas_of(isa)
    gather(products, output, isas, Settings(rounds, slice_us, -1 if core is None else core), Progress())
    summarise(output, len(products) * len(isas))


def _text(path: str) -> str:
    from pulse.costmodel.files import read_bytes

    return read_bytes(path, "a list of products").decode("utf-8", "replace")


class Progress:
    """Tells how far a run is: on a terminal in one line that changes, elsewhere in a line now and then."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.last = -QUIET

    def __call__(self, done: int, total: int, elapsed: float, left: float, sample: str) -> bool:
        now = time.monotonic()
        over = done == total
        if over or now - self.last >= (0.2 if self.terminal else QUIET):
            self.last = now
            minutes, seconds = divmod(round(left), 60)
            text = f"{done} of {total} timed, " + ("" if over else f"{minutes} min {seconds:02d} s left  {sample}")
            if self.terminal:
                click.echo(f"\r\033[K{text}", nl=over, err=True)
            else:
                click.echo(text.rstrip(", "), err=True)
        return True


def summarise(path: str, wanted: int) -> None:
    """Say what is in the data set and how quiet the machine was."""
    from pulse.costmodel.dataset import read_dataset

    data = read_dataset(path)
    rounds = sum(s.repeated for s in data.samples)
    noisy = sum(s.drift > 0.05 for s in data.samples)
    click.echo(f"{path}: {len(data.samples)} samples on {data.cpu}, {wanted} asked for")
    click.echo(f"{rounds} rounds were repeated; in {noisy} samples the reference kernel kept drifting by over 5 %")
    if noisy * 10 > len(data.samples):
        click.echo("the machine was busy: such a data set can mislead, see docs/costmodel.md", err=True)
