"""`pulse costmodel`: time kernels, fit tables from the timings, validate and show them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulse.cli import options
from pulse.cli.costmodel_gather import gather_command, shapes_command
from pulse.cli.costmodel_validate import validate_command
from pulse.cli.output import print_json, print_table

if TYPE_CHECKING:
    from pulse.costmodel.fit import Report
    from pulse.costmodel.table import Table


@click.group("costmodel")
def command() -> None:
    """Make and judge the tables by which a kernel is picked for every product.

    gather times kernels, fit makes a table of the timings, validate says what its picks cost on products it has never
    seen. docs/costmodel.md takes you through it on a new CPU.
    """


command.add_command(gather_command)
command.add_command(shapes_command)
command.add_command(validate_command)


@command.command("fit")
@click.argument("dataset", type=click.Path())
@click.option("--isa", help="Instruction set; by default every one in DATASET, a table each.")
@click.option("-o", "--output", type=click.Path(), help="Table to write. [default: in your folder of tables]")
@click.option("--constraints", type=click.Path(), help="Sanity constraints. [default: those that come with pulse]")
@click.option("--resamples", type=click.IntRange(0, 50), default=3, show_default=True, help="Resampled candidates.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is held out and resampled.")
@click.option("--force", is_flag=True, help="Write over a table that is there.")
@options.json_option
def fit_command(
    dataset: str,
    isa: str | None,
    output: str | None,
    constraints: str | None,
    resamples: int,
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    """Fit a table to the timings in DATASET.

    Several candidates are fitted. Of those that keep the sanity constraints, the one whose picks cost least on products
    held out is written; the report shows all, and what the others failed at.
    """
    from pulse.costmodel import constraints as rules
    from pulse.costmodel import files, fit, table
    from pulse.costmodel.dataset import read_dataset

    data = read_dataset(dataset)
    wanted = [isa] if isa else list(data.kernels)
    if output and len(wanted) > 1:
        raise click.UsageError(f"{dataset} holds {', '.join(wanted)}: with -o, name one by --isa.")
    kept = rules.read_constraints(constraints or rules.DEFAULT)
    paths = {name: Path(output) if output else table.own_folder() / table.file_name(name, data.cpu) for name in wanted}
    for path in paths.values():
        files.check_free(path, force)
    made = {name: fit.fit(data, name, kept, seed=seed, resamples=resamples, date=files.today()) for name in wanted}
    for name, (found, _) in made.items():
        if not output:
            paths[name].parent.mkdir(parents=True, exist_ok=True)
        files.write(paths[name], found.dumps(), force)
    if as_json:
        print_json({name: fitted_json(found, report, paths[name]) for name, (found, report) in made.items()})
        return
    for name, (found, report) in made.items():
        print_report(found, report)
        click.echo(f"wrote {paths[name]}\n")


def fitted_json(table: Table, report: Report, path: Path) -> dict[str, Any]:
    """What was fitted, and every candidate."""
    homes = {home: [c.as_dict() for c in found] for home, found in report.candidates.items()}
    regrets = {home: fitted.regret for home, fitted in table.homes.items()}
    return {"table": str(path), "cpu": table.cpu, "regret": regrets, "candidates": homes}


def print_report(table: Table, report: Report) -> None:
    """Every candidate by home of the weights, the chosen one first."""
    for home, candidates in report.candidates.items():
        click.echo(f"{table.isa}, weights from {home}: regret on products held out (1 is the best kernel)")
        rows = []
        for place, candidate in enumerate(candidates):
            facts = candidate.as_dict()
            verdict = "chosen" if place == 0 else "; ".join(candidate.broken) or "costs more"
            figures = [f"{facts[key]:.3f}" for key in ("mean", "p90", "worst")]
            rows.append([candidate.name, facts["count"], *figures, verdict])
        print_table(["candidate", "products", "mean", "p90", "worst", ""], rows)
        click.echo("")


@command.command("show", short_help="Show where a table comes from and what it picks.")
@click.argument("table", type=click.Path(), required=False)
@click.option("--isa", help="Instruction set. [default: the best of this CPU]")
@click.option(
    "--product", "products", multiple=True, metavar="M,K,N", help="Forecast this product too; repeat as you like."
)
@click.option("--layout", default="frame", show_default=True, help="How B and C of --product lie.")
@options.json_option
def show_command(table: str | None, isa: str | None, products: tuple[str, ...], layout: str, as_json: bool) -> None:
    """Show a TABLE: where it comes from, its regrets, and how its picks change with n.

    Without TABLE, the one that picks on this machine.
    """
    from pulse.costmodel.show import described

    facts = described(table, isa, [_sizes(text) for text in products], layout)
    if as_json:
        print_json(facts)
        return
    for key in ("table", "picked_by", "isa", "cpu", "date", "tool"):
        click.echo(f"{key.replace('_', ' ')}: {facts[key]}")
    click.echo(f"data set: {', '.join(f'{key} {value}' for key, value in facts['dataset'].items())}")
    for note in facts["notes"]:
        click.echo(f"note: {note}")
    click.echo("\nregret on products held out when it was fitted")
    rows = [[home, *(r[key] for key in ("count", "mean", "p90", "worst"))] for home, r in facts["regret"].items()]
    print_table(["weights from", "products", "mean", "p90", "worst"], rows)
    click.echo("\npicks by n")
    columns = ["product", *(f"n = {n}" for n in facts["widths"])]
    print_table(columns, [[row["product"], *row["kernels"]] for row in facts["picks"]])
    for forecast in facts["forecasts"]:
        click.echo(f"\n{forecast['product']}")
        print_table(["kernel", "ns"], [[name, f"{ns:.0f}"] for name, ns in forecast["kernels"][:8]])


def _sizes(text: str) -> tuple[int, int, int]:
    parts = text.replace("x", ",").split(",")
    if len(parts) != 3 or not all(part.strip().isdecimal() and int(part) for part in parts):
        raise click.UsageError(f"{text!r} is no M,K,N.")
    m, k, n = (int(part) for part in parts)
    return m, k, n
