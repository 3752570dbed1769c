"""The `pulse` command: a table of commands, each in its own file, imported when it is called.

`pulse --help` imports click and nothing else, so it answers at once. A command is a file of this package which exposes
`command`, and a row in `COMMANDS`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from pulse import __version__
from pulse.cli.failures import PIPE_CLOSED, guarded

COMMANDS: dict[str, str] = {
    "convert": "Turn a full-signal model into its streaming form.",
    "inspect": "Show rates, delays, costs, and what would stop a model from streaming.",
    "check": "Compare the stream with the full-signal model.",
    "run": "Send a recording through a model, a few frames at a time.",
    "mic": "Talk through a model, or watch its outputs, live.",
    "profile": "Show where the time of a pulse goes: steps, products, kernels, limit.",
    "sweep": "Measure what each pulse width costs in latency and CPU; recommend one.",
    "kernels": "List the matrix kernels of this CPU, or time them on one product.",
    "costmodel": "Time kernels, fit and validate the tables that pick among them.",
    "tune": "Time a model's own products and write hints which kernels to take.",
    "explain": "Say what a diagnostic means and what to do.",
}


class Commands(click.Group):
    """A group that knows its commands by name and help line, and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"pulse.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click itself would end with 1, which means "the answer is no" here
            ctx.exit(PIPE_CLOSED)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run the command line and leave with its exit status, every failure told in the user's terms."""
        arguments = list(sys.argv[1:] if args is None else args)
        run = super().main

        def call() -> Any:
            return run(arguments, prog_name or "pulse", complete_var, standalone_mode=False, **extra)

        sys.exit(guarded(call, as_json="--json" in arguments))


@click.group(
    "pulse", cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="pulse")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Run full-signal ONNX audio models live, a few frames at a time, exactly.

    Data goes to stdout, messages to stderr. Exit status: 0, 1 (the answer is no: cannot stream, or differs),
    2 (usage or bad input).
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
