"""Writing results: whole or not at all, and never over what is there without being told to."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pulse.errors import PulseError


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
