"""`pulse kernels list` and `pulse kernels time M K N`: what this CPU has, and every kernel on one product."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pulse.cli import options
from pulse.cli.output import print_json, print_table

if TYPE_CHECKING:
    from pulse.engine.timing import Timing

FAMILIES = {"mmm": "lanes along m", "nl": "lanes along n", "dot": "lanes along k"}


@click.group("kernels")
def command() -> None:
    """List the matrix kernels of this CPU, or time them on a product."""


@command.command("list", short_help="List the kernels and instruction sets of this CPU.")
@options.json_option
def list_kernels(as_json: bool) -> None:
    """List the kernels that this CPU runs, and which instruction sets it has.

    PULSE_ISA=v3 before the command forces a lower set.
    """
    from pulse.engine.isa import available, cpu_name, current
    from pulse.engine.pick import kernels

    isa = current()
    listed = kernels(isa)
    if as_json:
        rows = [
            {"name": item.name, "family": item.family, "mr": item.mr, "nr": item.nr, "ks": item.ks, "panel": item.panel}
            for item in listed
        ]
        print_json({"cpu": cpu_name(), "isa": isa, "available": available(), "kernels": rows})
        return
    columns = ["kernel", "family", "rows", "columns", "sums along k", "panel"]
    print_table(
        columns,
        [[item.name, FAMILIES[item.family], item.mr, item.nr, item.ks, item.panel] for item in listed],
    )
    click.echo(f"\n{len(listed)} kernels of {isa} on {cpu_name()}; available: {', '.join(available())}")


@command.command("time", short_help="Time every kernel on a product of M x K weights and N columns.")
@click.argument("m", type=click.IntRange(1))
@click.argument("k", type=click.IntRange(1))
@click.argument("n", type=click.IntRange(1))
@click.option(
    "--layout",
    type=click.Choice(["frame", "channel"]),
    default="frame",
    help="What is contiguous in B: the k values of a frame, or the n values of a channel. [default: frame]",
)
@click.option("--cold", is_flag=True, help="Let the weights rotate through the third cache level.")
@options.json_option
def time_kernels(m: int, k: int, n: int, layout: str, cold: bool, as_json: bool) -> None:
    """Time every kernel on relu(A B + bias), A being M x K weights and B K x N activations.

    The limit is what this core could do at best: the larger of the time for the operations at its peak and the time
    to read the weights, both measured here. Samples are interleaved, on one core.
    """
    from pulse.costmodel.pick import picker
    from pulse.engine.isa import cpu_name
    from pulse.engine.timing import time_product

    timing = time_product(m, k, n, layout="channel" if layout == "channel" else "frame", cold=cold)
    choice = picker(isa=timing.isa).pick(m, k, n, layout=layout, act="relu")
    picked = choice.kernel
    rows = [measured(timing, name) for name in timing.ranked()]
    found: dict[str, Any] = {"m": m, "k": k, "n": n, "isa": timing.isa, "cpu": cpu_name(), "picked": picked}
    found |= {"picked_by": choice.by, "limit_ns": timing.limit_ns, "kernels": rows}
    if as_json:
        print_json(found)
        return
    print_table(
        ["kernel", "median ns", "min ns", "GFLOP/s", "% of limit", ""],
        [
            [
                row["name"],
                f"{row['median_ns']:.0f}",
                f"{row['min_ns']:.0f}",
                f"{row['gflops']:.1f}",
                f"{100 * row['limit_share']:.0f}",
                "picked" if row["name"] == picked else "",
            ]
            for row in rows
        ],
    )
    regret = timing.median_ns(picked) / rows[0]["median_ns"] - 1
    click.echo(f"\nlimit {timing.limit_ns:.0f} ns on {cpu_name()} ({timing.isa})")
    click.echo(f"picked by {choice.by}: {picked}, {100 * regret:.1f} % slower than the best")


def measured(timing: Timing, name: str) -> dict[str, Any]:
    """The figures of one kernel, with the keys of `pulse kernels time --json`."""
    typical = timing.median_ns(name)
    return {
        "name": name,
        "median_ns": typical,
        "min_ns": min(timing.samples[name]),
        "gflops": 2 * timing.m * timing.k * timing.n / typical,
        "limit_share": timing.share(name),
    }
