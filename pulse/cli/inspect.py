"""`pulse inspect MODEL`: what streams, how fast, how late, at what cost, and what would stop it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import click

from pulse.cli import options
from pulse.cli.output import print_json, print_table, shape_text


@click.command("inspect")
@options.model_argument
@options.source_options
@options.frame_options
@click.option("--facts", is_flag=True, help="Show the stream fact of every value.")
@options.json_option
def command(
    model: str,
    inputs: tuple[str, ...],
    outputs: list[str] | None,
    length_multiple_of: int | None,
    frame_ms: float | None,
    rate: int | None,
    hop: int | None,
    facts: bool,
    as_json: bool,
) -> None:
    """Show the rates and delays of MODEL, its costs, and what would stop it from streaming."""
    frame = options.milliseconds(frame_ms, rate, hop)
    from pulse.inspect import inspect

    found = inspect(
        model,
        inputs=options.input_shapes(inputs),
        outputs=outputs,
        length_multiple_of=length_multiple_of,
        frame_ms=frame,
    )
    if as_json:
        print_json(found)
        return
    print_ports(found, with_ms=frame is not None)
    print_totals(found)
    if facts:
        click.echo()
        print_table(["value", "fact"], [[row["name"], row["fact"]] for row in found["facts"]])
    print_obstacles(found["obstacles"])
    print_lost([port["name"] for port in found["outputs"] if port["axis"] is None], len(found["outputs"]))


def print_ports(found: dict[str, Any], with_ms: bool) -> None:
    """A row per input and output; gaps where an output is no stream."""
    columns = ["", "name", "shape", "axis", "rate", "delay", *(["delay ms"] if with_ms else [])]
    rows = []
    for kind, ports in (("in", found["inputs"]), ("out", found["outputs"])):
        for port in ports:
            shape = None if port["shape"] is None else shape_text(port["shape"])
            rate = None if port["axis"] is None else Fraction(port["rate"])
            delay = None if port["axis"] is None else port["delay"]
            rows.append([kind, port["name"], shape, port["axis"], rate, delay, port["delay_ms"]][: len(columns)])
    print_table(columns, rows)


def print_totals(found: dict[str, Any]) -> None:
    """What holds for the model as a whole."""
    field, macs = found["receptive_field"], found["macs_per_frame"]
    if "pulse" in found:
        pulse, states = found["pulse"], found["states"]
        width = "of any width" if pulse == "dynamic" else f"of {_frames(pulse)}"
        click.echo(f"a pulsed model: pulses {width}, {states['count']} states of {states['bytes']:,} bytes in all")
    click.echo(f"stream axis: {found['symbol']}")
    click.echo(f"granularity: {_frames(found['granularity'])}")
    if "pulse" not in found:
        click.echo(f"receptive field: {'unbounded' if field is None else _frames(field)}")
    click.echo(f"parameters: {found['parameters']:,}")
    click.echo(f"multiply-adds per source frame: {'unknown' if macs is None else format(macs, ',')}")


def print_obstacles(obstacles: list[dict[str, str]]) -> None:
    """What some output cannot stream by; nodes with the same trouble are told together."""
    if not obstacles:
        click.echo("obstacles: none")
        return
    click.echo("obstacles:")
    alike: dict[tuple[str, ...], list[str]] = {}
    for item in obstacles:
        alike.setdefault(tuple(item[key] for key in ("code", "required", "found", "remedy")), []).append(item["node"])
    for (code, required, found, remedy), nodes in alike.items():
        click.echo(f"  {code} at " + ", ".join(f"`{node}`" for node in nodes))
        for label, value in (("required", required), ("found", found), ("to do", remedy)):
            if value:
                click.echo(f"    {label}: {value}")
    click.echo("`pulse explain CODE` says more")


def print_lost(lost: list[str], count: int) -> None:
    """Which outputs are no streams, where some are not."""
    if len(lost) == count:
        click.echo("no output streams")
    elif lost:
        click.echo("outputs that do not stream: " + ", ".join(lost))


def _frames(count: int) -> str:
    return f"{count:,} frame{'' if count == 1 else 's'}"
