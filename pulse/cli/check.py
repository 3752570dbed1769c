"""`pulse check MODEL`: is the stream equal to the full-signal model?"""

from __future__ import annotations

import click

from pulse.cli import options
from pulse.cli.output import print_json, print_table


@click.command("check")
@options.model_argument
@click.option(
    "--pulse",
    "--pulses",
    "widths",
    type=options.Widths(),
    metavar="N,N,...",
    help="Widths to check, separated by commas. [default: 1,2,4,8 times the granularity, and dynamic]",
)
@click.option("--source", type=click.Path(), help="Source of a pulsed MODEL. [default: looked for beside it]")
@options.source_options
@options.engine_option
@options.weights_option
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of signals and chunkings.")
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    widths: list[int | str] | None,
    source: str | None,
    inputs: tuple[str, ...],
    outputs: list[str] | None,
    length_multiple_of: int | None,
    engine: str | None,
    weights: str,
    seed: int,
    as_json: bool,
) -> None:
    """Compare the stream of MODEL with the full-signal model, over random chunkings, tail included.

    Exit status 1 if they differ; the first node that does is named. With --weights bf16 the error that rounded weights
    make is told besides, relative to the largest value of the full-signal model; it does not count as a difference.
    """
    from pulse.check import check

    result = check(
        model,
        pulses=widths,
        inputs=options.input_shapes(inputs),
        outputs=outputs,
        length_multiple_of=length_multiple_of,
        engine=engine,
        weights=weights,
        seed=seed,
        against=source,
    )
    if as_json:
        print_json(result)
    else:
        columns = {"pulse": "pulse", "ok": "equal", "max_error": "largest error"}
        columns["first_bad_node"] = "first node that differs"
        if weights != "f32":
            columns["weights_error"] = f"error by {weights} weights"
        print_table(list(columns.values()), [[row[key] for key in columns] for row in result["widths"]])
    ctx.exit(0 if result["ok"] else 1)
