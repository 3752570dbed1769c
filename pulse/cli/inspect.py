"""`pulse inspect MODEL`: what streams, how fast, how late, at what cost, and what would stop it."""

from __future__ import annotations

from typing import Any

import click

from pulse.cli import options
from pulse.cli.output import print_json, print_table, shape_text


@click.command("inspect")
@options.model_argument
@options.source_options
@options.frame_options
@options.json_option
def command(
    model: str,
    inputs: tuple[str, ...],
    outputs: list[str] | None,
    frame_ms: float | None,
    rate: int | None,
    hop: int | None,
    as_json: bool,
) -> None:
    """Show the rates and delays of MODEL, its costs, and what would stop it from streaming."""
    frame = options.milliseconds(frame_ms, rate, hop)
    from pulse.inspect import inspect

    facts = inspect(model, inputs=options.input_shapes(inputs), outputs=outputs, frame_ms=frame)
    if as_json:
        print_json(facts)
    else:
        print_facts(facts)


def print_facts(facts: dict[str, Any]) -> None:
    """The facts as lines and tables."""
    rows = [
        [kind, port["name"], shape_text(port["shape"]), port["axis"], port["rate"], port["delay"], port["delay_ms"]]
        for kind, ports in (("in", facts["inputs"]), ("out", facts["outputs"]))
        for port in ports
    ]
    print_table(["", "name", "shape", "axis", "rate", "delay", "delay ms"], rows)
    for label, key, unit in (
        ("stream axis", "symbol", ""),
        ("granularity", "granularity", " frames"),
        ("receptive field", "receptive_field", " frames"),
        ("parameters", "parameters", ""),
        ("MACs per frame", "macs_per_frame", ""),
    ):
        value = facts.get(key)
        shown = "unknown" if value is None else f"{value:,}{unit}" if isinstance(value, int) else f"{value}{unit}"
        click.echo(f"{label}: {shown}")
    if facts["obstacles"]:
        click.echo("\nThis stops it from streaming:")
        print_table(
            ["code", "node", ""], [[item["code"], item["node"], item["message"]] for item in facts["obstacles"]]
        )
        click.echo("`pulse explain CODE` says more.")
    else:
        click.echo("obstacles: none")
