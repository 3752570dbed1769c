"""Reading files with their faults told, and writing them: whole or not at all, and not over a file unless told to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pulse.errors import PulseError

# What comes of reading a text that is not as it should be: wrong keys and types, numbers beyond all bounds, lists
# nested without end.
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
Read = TypeVar("Read")


def read_bytes(path: str | Path, what: str) -> bytes:
    """What a file holds. Raises PulseError `file-not-found` or `file-unreadable`."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise PulseError("file-not-found", node=str(path), required=what, found="no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        found = getattr(error, "strerror", None) or str(error)
        raise PulseError("file-unreadable", node=str(path), required=what, found=found) from None


def parsed(data: bytes, parse: Callable[[str], Read], invalid: Callable[[str], PulseError]) -> Read:
    """`parse` of a text; what goes wrong is told by `invalid`, the error for these words."""
    try:
        return parse(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise invalid("bytes that are no text") from None
    except MALFORMED as error:
        raise invalid(f"{type(error).__name__}: {error}"[:200]) from None


def check_free(path: Path, force: bool) -> None:
    """Raises PulseError `output-exists` where a file is in the way and `force` is not given."""
    if path.exists() and not force:
        raise PulseError(
            "output-exists",
            node=str(path),
            required="a path where nothing is yet",
            found="a file",
            remedy="--force writes over it; -o takes another path",
        )


def write(path: Path, text: str, force: bool) -> None:
    """Write a text file. Raises PulseError `output-exists` or `output-unwritable`."""
    from pulse.model import write_atomically  # brings onnx along

    check_free(path, force)
    write_atomically(path, text.encode())


def today() -> str:
    """The time now, as the files carry it: UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
