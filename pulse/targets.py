"""Where a result is to lie, looked at before it is moved into place: a move replaces whatever has the name."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pulse.errors import PulseError


def file_target(path: Path, *read: Path) -> Path:
    """The place behind symbolic links, for a file that may be there already.

    Raises PulseError `output-unwritable` for a folder, a device, a pipe or a socket, and for the files in `read`.
    """
    try:
        place = Path(os.path.realpath(path))
        mode = place.stat().st_mode
        same = [str(other) for other in read if other.exists() and place.samefile(other)]
    except (FileNotFoundError, NotADirectoryError):
        return place
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        raise _unwritable(path, getattr(error, "strerror", None) or str(error)) from None
    if not stat.S_ISREG(mode):
        raise _unwritable(path, "a folder" if stat.S_ISDIR(mode) else "a device, pipe or socket")
    if same:
        raise _unwritable(path, f"`{same[0]}`, which is read")
    return place


def _unwritable(path: Path, found: str) -> PulseError:
    return PulseError(
        "output-unwritable",
        node=str(path),
        required="the path of a file that can be written",
        found=found,
        remedy="choose another place for the output",
    )
