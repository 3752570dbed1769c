"""`pulse tune MODEL`: time a model's own products and write hints."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulse.cli import options
from pulse.cli.costmodel_gather import Progress
from pulse.cli.output import print_json, print_table
from pulse.errors import PulseError

if TYPE_CHECKING:
    from pulse.costmodel.hints import Hints
    from pulse.costmodel.products import Listed


@click.command("tune")
@options.model_argument
@options.pulses_option
@options.source_options
@click.option(
    "--home",
    type=click.Choice(["l2", "l3", "cold"]),
    default="l3",
    show_default=True,
    help="Where weights come from: l3, as in a whole model; l2, a small one in a loop; cold, after a pause.",
)
@click.option("--isa", help="Instruction set. [default: the best of this CPU]")
@click.option("--rounds", type=click.IntRange(4, 1000), default=41, show_default=True, help="Rounds of all kernels.")
@click.option("--core", type=click.IntRange(0), help="Core to run on. [default: the last one allowed]")
@click.option("--dataset", type=click.Path(), help="Take timings that pulse-gather made on another machine.")
@click.option("-o", "--output", type=click.Path(), help="Hints to write. [default: MODEL.hints.json]")
@click.option("--force", is_flag=True, help="Write over hints for this CPU that are there.")
@options.json_option
def command(
    model: str,
    pulses: list[int | str] | None,
    inputs: tuple[str, ...],
    outputs: list[str] | None,
    length_multiple_of: int | None,
    home: str,
    isa: str | None,
    rounds: int,
    core: int | None,
    dataset: str | None,
    output: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Time every kernel on the products of MODEL and write which is best, for this CPU.

    The hints lie beside the model, where they are found again; `--hints none` of other commands leaves them out. For
    another machine: `pulse costmodel shapes --sweep 0 --wide 0 MODEL`, pulse-gather there, and --dataset here.
    """
    from pulse.costmodel import files, hints, tune
    from pulse.costmodel.dataset import read_dataset
    from pulse.costmodel.gather import Settings, gather
    from pulse.costmodel.pick import picker
    from pulse.costmodel.products import merged
    from pulse.engine.isa import current

    path = Path(output) if output else hints.beside(model)
    source = {"inputs": options.input_shapes(inputs), "outputs": outputs, "length_multiple_of": length_multiple_of}
    listed = products_by_width(model, pulses, source, home)
    if not any(listed.values()):
        raise PulseError(
            "dataset-too-small",
            node=model,
            required="a model with products, for which a kernel is picked",
            found="none at these widths",
            remedy="there is nothing to tune here",
        )
    if dataset is not None:
        data = read_dataset(dataset)
        made = [tune.hints_from(data, name, listed) for name in ([isa] if isa else data.kernels)]
    else:
        chosen = current(isa)
        tune.check_room(path, chosen, force)
        settings = Settings(rounds, tune.SETTINGS.slice_us, -1 if core is None else core)
        with tempfile.TemporaryDirectory() as folder:
            place = str(Path(folder) / "timed.txt")
            gather(merged(listed.values()), place, [chosen], settings, Progress())
            made = [tune.hints_from(read_dataset(place), chosen, listed)]
    tune.write(path, made, Path(model).name, force)
    before = picker(hints="none", isa=made[0].isa if dataset is None else None, home=home)
    rows = tune.compared(made[0], listed, before)
    if as_json:
        print_json(
            {"hints": str(path), "cpu": made[0].cpu, "isa": made[0].isa, "date": files.today(), "products": rows}
        )
        return
    print_hints(rows, made[0], path)


def products_by_width(
    model: str, pulses: list[int | str] | None, source: dict[str, Any], home: str
) -> dict[int, list[Listed]]:
    """The products of one pulse per width.

    Args:
        source: how a source model is to be read, as `convert` takes it.

    Raises:
        PulseError: `illegal-pulse` for a width the model cannot take.
    """
    from pulse.costmodel.products import products
    from pulse.model import illegal_pulse, open_model

    opened = open_model(model, None, **source)
    widths = options.widths_of(opened, pulses)
    for width in widths:
        if width % opened.granularity:
            raise illegal_pulse(width, opened.granularity)
    return {width: products(opened, width, home) for width in widths}


def print_hints(rows: list[dict[str, Any]], made: Hints, path: Path) -> None:
    """A line per product and width."""
    table = [
        [
            row["pulse"],
            f"{row['m']} x {row['k']} x {row['n']}",
            row["layout"],
            row["act"],
            row["count"],
            row["kernel"],
            f"{row['ns']:.0f}",
            row["before"],
            "" if row["gain"] is None else f"{row['gain']:.2f}",
        ]
        for row in rows
    ]
    print_table(
        ["pulse", "m x k x n", "layout", "act", "count", "best", "ns", "without hints", "time over best"], table
    )
    click.echo(f"\nwrote {path} for {made.cpu}, {made.isa}")
