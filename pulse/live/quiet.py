"""Calm surroundings for a stream: no noise of system libraries on stderr, no garbage collection, real-time priority."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from typing import TextIO

PRIORITY = 5
SWITCH = 0.001
"""Seconds for which Python lets one thread run while another waits; its default of 5 ms is half a pulse."""


@contextlib.contextmanager
def quiet_stderr() -> Iterator[TextIO]:
    """What ALSA and PortAudio print to stderr on the side goes nowhere; the messages of this program go on.

    Gives the real stderr as a stream.
    """
    if os.environ.get("PULSE_DEBUG"):
        yield sys.stderr
        return
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    previous = sys.stderr
    real = os.fdopen(kept, "w", buffering=1, errors="replace")
    sys.stderr = real
    os.dup2(nowhere, 2)
    try:
        yield real
    finally:
        os.dup2(kept, 2)
        sys.stderr = previous
        real.close()
        os.close(nowhere)


@contextlib.contextmanager
def unhurried_python() -> Iterator[None]:
    """No garbage collection and short turns between threads, while the block runs."""
    interval, collecting = sys.getswitchinterval(), gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.unfreeze()
        if collecting:
            gc.enable()


def hasten_threads() -> bool:
    """Gives all threads real-time priority, those of the sound system too; False where that is not allowed.

    The calling thread as well: Python runs one thread at a time, and one that is put aside in its turn holds up all.
    Child processes do not inherit it.
    """
    try:
        for name in os.listdir("/proc/self/task"):
            os.sched_setscheduler(int(name), os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
    except (OSError, AttributeError):
        return False
    return True


def calm_thread() -> None:
    """Takes it away from the calling thread."""
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
