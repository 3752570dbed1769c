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
    seed: int,
    as_json: bool,
) -> None:
    """Compare the stream of MODEL with the full-signal model, over random chunkings, tail included.

    Exit status 1 if they differ; the first node that does is named.
    """
    from pulse.check import check

    result = check(
        model,
        pulses=widths,
        inputs=options.input_shapes(inputs),
        outputs=outputs,
        length_multiple_of=length_multiple_of,
        engine=engine,
        seed=seed,
        against=source,
    )
    if as_json:
        print_json(result)
    else:
        print_table(
            ["pulse", "equal", "largest error", "first node that differs"],
            [[row["pulse"], row["ok"], row["max_error"], row["first_bad_node"]] for row in result["widths"]],
        )
    ctx.exit(0 if result["ok"] else 1)
