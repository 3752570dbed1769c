"""A recording that grows on the side: the stream never waits for the disk, and what is there is valid at any moment."""

from __future__ import annotations

import os
import queue
import threading
import time
from pathlib import Path

import numpy as np

from pulse.live.atomic import unwritable
from pulse.live.wav import WavWriter
from pulse.targets import file_target


class Recorder:
    """Writes `path`, called `path`.part until it is finished.

    Attributes:
        path: where it will be.
        error: the system's error which ended the recording early, or None.
    """

    REFRESH = 1.0  # seconds

    def __init__(self, path: Path, rate: int, channels: int) -> None:
        """Raises PulseError output-unwritable."""
        self.path = file_target(path)
        self._part = self.path.with_name(self.path.name + ".part")
        try:
            self._file = open(self._part, "wb")  # noqa: SIM115 (closed by the thread)
        except OSError as error:
            raise unwritable(path, error) from error
        self._writer = WavWriter(self._file, rate, channels, "float32")
        self.error: OSError | None = None
        self._waiting: queue.SimpleQueue[np.ndarray | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    @property
    def frames(self) -> int:
        """Frames written so far."""
        return self._writer.frames

    def put(self, frames: np.ndarray) -> None:
        """Adds `[channels, n]`; returns at once."""
        self._waiting.put(frames)

    def finish(self) -> None:
        """Writes what waits and gives the file its name."""
        self._waiting.put(None)
        self._thread.join()
        if self.error is None:
            os.replace(self._part, self.path)

    def _run(self) -> None:
        fresh = time.monotonic()
        try:
            with self._file:
                while (frames := self._waiting.get()) is not None:
                    self._writer.write(frames)
                    if time.monotonic() - fresh > self.REFRESH:
                        self._writer.refresh()
                        fresh = time.monotonic()
                self._writer.finish()
        except OSError as error:  # a full disk; the stream goes on
            self.error = error
