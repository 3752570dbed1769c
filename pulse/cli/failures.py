"""From an exception to a message and an exit status.

Messages follow uv: `error: ...` on stderr, readable without colour, no full stop after a single sentence, commands and
names in back-ticks. With `--json` a diagnostic goes to stdout as `{"error": {...}}`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import click

from pulse.errors import PulseError, PulseWarning

INTERRUPTED = 130  # as a shell reports SIGINT
PIPE_CLOSED = 141  # as a shell reports SIGPIPE
BUG = 70  # EX_SOFTWARE in sysexits.h


def guarded(call: Callable[[], Any], as_json: bool = False) -> int:
    """Run `call` and return the exit status; whatever it raises has then been reported."""
    try:
        return _status(call, as_json)
    except BrokenPipeError:
        _let_go_of_stdout()
        return PIPE_CLOSED
    except OSError as error:  # not even a diagnostic can be written there
        _let_go_of_stdout()
        return report(from_os_error(error))


def _status(call: Callable[[], Any], as_json: bool) -> int:
    try:
        with _warnings_told():
            value = call()
        if sys.stdout is not None:  # started with its stdout closed
            sys.stdout.flush()
    except PulseError as error:
        return report(error, as_json)
    except click.UsageError as error:
        return _usage(error, as_json)
    except click.ClickException as error:
        return report(PulseError("usage", found=error.format_message()), as_json)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        return report(from_os_error(error), as_json)
    except Exception as error:
        return _bug(error)
    return value if isinstance(value, int) else 0


def _let_go_of_stdout() -> None:
    """The interpreter flushes stdout once more when it ends: gives it somewhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report(error: PulseError, as_json: bool = False) -> int:
    """Tell a diagnostic; return its exit status."""
    from pulse.diagnostics import CODES, exit_status

    entry = CODES.get(error.code)
    remedy = error.remedy or (_as_phrase(entry.remedy) if entry else "")
    if as_json:
        click.echo(json.dumps({"error": error.as_dict() | {"remedy": remedy}}, indent=2))
        return exit_status(error.code)
    headline = entry.what if entry else error.code
    told("error", headline + (f": `{error.node}`" if error.node else ""))
    _field("required", error.required)
    _field("found", error.found)
    _field("to do", remedy)
    _field("more", f"`pulse explain {error.code}`" if entry else "")
    return exit_status(error.code)


def _as_phrase(remedy: str) -> str:
    """A single sentence of the table as messages put it, `name the axis`; several stay sentences."""
    return remedy if ". " in remedy else remedy[:1].lower() + remedy[1:].removesuffix(".")


def from_os_error(error: OSError) -> PulseError:
    """The diagnostic for an error of the operating system on a file."""
    node = str(error.filename or "")
    if isinstance(error, FileNotFoundError):
        return PulseError("file-not-found", node=node)
    if error.errno in (errno.ENOSPC, errno.EROFS, errno.EDQUOT):
        return PulseError("output-unwritable", node=node, found=error.strerror or str(error))
    return PulseError("file-unreadable", node=node, found=error.strerror or str(error))


def told(kind: str, message: str) -> None:
    """Print `kind: message` to stderr, `kind` coloured where that is welcome."""
    colour = {"error": "red", "warning": "yellow"}[kind]
    plain = False if "NO_COLOR" in os.environ else None
    click.echo(click.style(f"{kind}:", fg=colour, bold=True) + f" {message}", err=True, color=plain)


def _field(label: str, value: str) -> None:
    if value:
        click.echo(f"  {label}: " + value.replace("\n", "\n    "), err=True)


def _usage(error: click.UsageError, as_json: bool) -> int:
    command = error.ctx.command_path if error.ctx else "pulse"
    message = error.format_message().strip()
    if "\n" in message:  # a group called without a command: click hands over its whole help
        click.echo(message, err=True)
        return error.exit_code
    remedy = f"`{command} --help` lists what it takes"
    if as_json:
        return report(PulseError("usage", node=command, found=message, remedy=remedy), as_json)
    told("error", message[:1].lower() + message[1:].rstrip("."))
    _field("to do", remedy)
    return error.exit_code


def _bug(error: Exception) -> int:
    if os.environ.get("PULSE_DEBUG"):
        traceback.print_exception(error)
    summary = " ".join(f"{type(error).__name__}: {error}".split())
    told("error", f"this is a bug in pulse, please report it with the model and the command: {summary}")
    if not os.environ.get("PULSE_DEBUG"):
        _field("to do", "`PULSE_DEBUG=1` before the command shows where it happened")
    return BUG


@contextlib.contextmanager
def _warnings_told() -> Iterator[None]:
    """Print each PulseWarning once as `warning: ...`; other libraries' warnings only with PULSE_DEBUG."""
    seen: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if str(message) not in seen:
            seen.add(str(message))
            told("warning", str(message) if issubclass(category, PulseWarning) else f"{category.__name__}: {message}")

    with warnings.catch_warnings():
        if not os.environ.get("PULSE_DEBUG"):
            warnings.simplefilter("ignore")
        warnings.simplefilter("always", PulseWarning)
        warnings.showwarning = show
        yield
