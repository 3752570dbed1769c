"""Files that appear whole or not at all, even when the program is killed outright."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pulse.errors import PulseError
from pulse.targets import file_target


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file open for writing which takes the name `path` once the block ends well.

    Where the system can (Linux), it has no name until then, so that not even a kill leaves anything behind; elsewhere
    it has a hidden temporary name beside `path`. Raises PulseError output-unwritable.
    """
    place = file_target(path)
    beside = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        with _nameless(place.parent) or open(beside, "xb") as file:
            yield file
            file.flush()
            if file.name != str(beside):
                _name(f"/proc/self/fd/{file.fileno()}", beside)
        os.replace(beside, place)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def _name(source: str, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=True)
    except OSError:  # a file system that makes nameless files and cannot name them
        shutil.copyfile(source, target)


def unwritable(path: Path, error: OSError) -> PulseError:
    """The diagnostic for a file that cannot be written."""
    return PulseError("output-unwritable", node=str(path), found=error.strerror or str(error))


def _nameless(folder: Path) -> BinaryIO | None:
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        handle = os.open(folder, flag | os.O_RDWR, 0o666)
    except OSError:  # not every file system has them
        return None
    return os.fdopen(handle, "wb")
