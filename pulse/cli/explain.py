"""`pulse explain CODE`: what a diagnostic means and what to do."""

from __future__ import annotations

import shutil
import textwrap

import click

from pulse.cli.output import print_json
from pulse.diagnostics import CODES, Diagnostic, closest
from pulse.errors import PulseError


@click.command("explain")
@click.argument("code", required=False)
@click.option("--all", "everything", is_flag=True, help="Explain every code.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(code: str | None, everything: bool, as_json: bool) -> None:
    """Say what a diagnostic means, why it is one, and what to do.

    CODE is the name an error message ends with, for example reduce-over-stream.
    """
    if everything == (code is not None):
        raise click.UsageError("Give one CODE, or --all.")
    if code is None:
        if as_json:
            print_json([entry.as_dict() for entry in CODES.values()])
        else:
            click.echo("\n\n".join(text(entry) for entry in CODES.values()))
        return
    entry = lookup(code)
    if as_json:
        print_json(entry.as_dict())
    else:
        click.echo(text(entry))


def lookup(code: str) -> Diagnostic:
    """The entry of a code; upper case and underscores are forgiven."""
    entry = CODES.get(code.strip().lower().replace("_", "-"))
    if entry is None:
        near = closest(code)
        remedy = "did you mean " + " or ".join(f"`{name}`" for name in near) + "?" if near else ""
        raise PulseError("unknown-code", node=code, remedy=remedy)
    return entry


def text(entry: Diagnostic) -> str:
    """The entry as paragraphs for a terminal."""
    width = min(100, shutil.get_terminal_size().columns)

    def paragraph(body: str) -> str:
        return textwrap.fill(body, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)

    return "\n".join(
        (
            f"{entry.code}: {entry.what}",
            "",
            "Why",
            paragraph(entry.why),
            "Example",
            f"  {entry.example}",
            "What to do",
            paragraph(entry.remedy),
            f"Exit status: {entry.exit_status}",
        )
    )
