"""`pulse costmodel validate`: what picks cost on products that the table has never seen."""

from __future__ import annotations

import hashlib
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulse.cli import options
from pulse.cli.costmodel_gather import Progress, model_products
from pulse.cli.output import print_json, print_table

if TYPE_CHECKING:
    from pulse.costmodel.dataset import Dataset
    from pulse.costmodel.table import Table


@click.command("validate", short_help="Say what a table's picks cost on products it never saw.")
@click.argument("models", nargs=-1, type=click.Path())
@click.option("--table", type=click.Path(), help="Table to judge. [default: the one that picks on this machine]")
@click.option(
    "--learnt", type=click.Path(), help="The data set it was fitted on. [default: looked for beside the table]"
)
@options.pulses_option
@click.option("--count", type=click.IntRange(1), default=240, show_default=True, help="Products in the fresh sweep.")
@click.option("--seed", type=int, default=20001, show_default=True, help="Of that sweep.")
@click.option("--homes", type=options.Names(), default="l2,l3", show_default=True, help="Where weights come from.")
@click.option("--isa", help="Instruction set. [default: that of the table, else the best]")
@click.option("--rounds", type=click.IntRange(4, 1000), default=17, show_default=True, help="Rounds of all kernels.")
@click.option(
    "--slice-us", type=click.FloatRange(1, 1e6), default=60.0, show_default=True, help="Per kernel and round."
)
@click.option("--core", type=click.IntRange(0), help="Core to run on. [default: the last one allowed]")
@click.option("--keep", type=click.Path(), help="Keep the timings in this data set; an interrupted run goes on there.")
@click.option(
    "--timed", type=click.Path(), help="Judge by the timings in this data set, of whatever CPU; time nothing."
)
@options.json_option
def validate_command(
    models: tuple[str, ...],
    table: str | None,
    learnt: str | None,
    pulses: list[int | str] | None,
    count: int,
    seed: int,
    homes: list[str],
    isa: str | None,
    rounds: int,
    slice_us: float,
    core: int | None,
    keep: str | None,
    timed: str | None,
    as_json: bool,
) -> None:
    """Time fresh products and those of MODELS, and compare the table's picks with the best kernel.

    Regret 1.03 means 3 % slower than the best. The best kernel is chosen on odd rounds and the regret taken on even
    ones, over products of at least 300 ns. Beside the table stand the installed one, an absolute fit and fixed rules.
    """
    from pulse.costmodel.dataset import read_dataset
    from pulse.costmodel.gather import Settings, gather
    from pulse.costmodel.validate import fresh_products, report, unseen
    from pulse.errors import PulseError

    tables, chosen = tables_for(table, isa)
    known = learnt_dataset(learnt, table, tables)
    if timed is not None:
        data = read_dataset(timed)
    else:
        products = fresh_products(model_products(models, pulses), homes, count, seed)
        settings = Settings(rounds, slice_us, -1 if core is None else core)
        with tempfile.TemporaryDirectory() as folder:
            place = keep or str(Path(folder) / "timed.txt")
            gather(products, place, [chosen], settings, Progress())
            data = read_dataset(place)
    samples = unseen(data.of(chosen), known)
    if not samples:
        raise PulseError(
            "dataset-too-small",
            node=data.path,
            required=f"products of {chosen} that the table has not seen",
            found="none",
            remedy="list fresh ones: `pulse costmodel shapes --fresh`",
        )
    found = report(samples, data, tables, known)
    found |= {"cpu": data.cpu, "seen": len(data.of(chosen)) - len(samples), "settings": data.settings}
    if as_json:
        print_json(found)
    else:
        print_validation(found)


def tables_for(path: str | None, isa: str | None) -> tuple[dict[str, Table], str]:
    """The table under test and the installed one, by column, and the instruction set."""
    from pulse.costmodel.fit import check_kernels
    from pulse.costmodel.pick import find_table
    from pulse.costmodel.table import load
    from pulse.engine.isa import available, current

    if path is None:
        chosen = current(isa)
        found, by = find_table(chosen)
        return ({} if found is None else {f"{by}": found}), chosen
    given = load(path)
    check_kernels(path, given.isa, given.kernels)
    if given.isa not in available():
        return {"this table": given}, given.isa  # to judge by timings from elsewhere
    chosen = current(given.isa)
    installed, _ = find_table(chosen)
    tables = {"this table": given}
    if installed is not None and installed != given:
        tables["installed"] = installed
    return tables, chosen


def learnt_dataset(asked: str | None, table: str | None, tables: dict[str, Table]) -> Dataset | None:
    """The data set a table was fitted on: as asked, or the file *.data.txt beside it whose checksum it names."""
    from pulse.costmodel.dataset import read_dataset
    from pulse.costmodel.table import SHIPPED

    if asked is not None:
        return read_dataset(asked)
    wanted = next((first.dataset.get("sha256") for first in tables.values()), None)
    for folder in dict.fromkeys((Path(table).parent if table else SHIPPED, SHIPPED)):
        for path in sorted(folder.glob("*.data.txt")):
            if hashlib.sha256(path.read_bytes()).hexdigest() == wanted:
                return read_dataset(path)
    return None


def print_validation(found: dict[str, Any]) -> None:
    """A table per home of the weights."""
    click.echo(
        f"{found['isa']} on {found['cpu']}: {found['products']} products never used in fitting, best kernel chosen on "
        "odd rounds, regret taken on even ones"
    )
    for home, facts in found["homes"].items():
        click.echo(f"\nweights from {home}; mean regret / 9th decile, products of at least 300 ns")
        ways = list(facts["rows"][0]["ways"])
        rows = []
        for row in facts["rows"]:
            cells = [f"{row['ways'][way]['mean']:.3f} / {row['ways'][way]['p90']:.3f}" for way in ways]
            limit = row["over_limit"]["mean"]
            rows.append([row["class"], row["count"], *cells, "" if math.isnan(limit) else f"{limit:.2f}"])
        print_table(["", "products", *ways, "time over limit"], rows)
        click.echo("the worst picks")
        rows = [[w["product"], w["regret"], w["picked"], w["best"], f"{w['best_ns']:.0f}"] for w in facts["worst"][:5]]
        print_table(["product", "regret", "picked", "best", "ns"], rows)
        if facts["noisy"]:
            click.echo(f"in {facts['noisy']} samples the reference kernel kept drifting by over 5 %")
