"""Single keys from the terminal, while the rest goes on."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def single_keys() -> Iterator[Callable[[float], str]]:
    """A function which waits so many seconds for a key and gives it, or "". Without a terminal it only waits."""
    try:
        import termios
        import tty

        handle = sys.stdin.fileno()
        before = termios.tcgetattr(handle)
        tty.setcbreak(handle)
    except Exception:  # no terminal there, or a system without termios
        yield _no_key
        return

    def key(seconds: float) -> str:
        ready, _, _ = select.select([handle], [], [], seconds)
        return os.read(handle, 1).decode(errors="ignore") if ready else ""

    try:
        yield key
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def _no_key(seconds: float) -> str:
    time.sleep(seconds)
    return ""
