"""Writing WAV files as they grow: valid at every moment, whatever ends the program."""

from __future__ import annotations

import struct
from typing import BinaryIO

import numpy as np

BYTES = {"pcm16": 2, "pcm24": 3, "pcm32": 4, "float32": 4}
"""Sample formats and their bytes per sample."""
HEADER = 44


class WavWriter:
    """A WAV file under construction.

    Attributes:
        frames: frames written so far.
        clipped: samples beyond full scale, cut off; always 0 for float32, which holds them.
    """

    def __init__(self, file: BinaryIO, rate: int, channels: int, sample_format: str = "float32") -> None:
        """`file` is open for writing and can seek; `rate` in Hz; `sample_format` a key of BYTES."""
        self._file, self._rate, self._channels, self._format = file, rate, channels, sample_format
        self.frames = self.clipped = 0
        self._file.write(self._header())

    def write(self, samples: np.ndarray) -> None:
        """Appends `[channels, frames]` of float32, full scale 1."""
        self.frames += samples.shape[1]
        self._file.write(self._encoded(np.ascontiguousarray(samples.T, np.float32)))

    def refresh(self) -> None:
        """Brings the header up to date: a reader finds every frame written so far."""
        end = self._file.seek(0, 2)
        self._file.seek(0)
        self._file.write(self._header())
        self._file.seek(end)
        self._file.flush()

    def finish(self) -> None:
        """The last word on the file; it stays open."""
        if self.frames * self._channels * BYTES[self._format] % 2:  # chunks are padded to even length
            self._file.write(b"\0")
        self.refresh()

    def _header(self) -> bytes:
        size = self.frames * self._channels * BYTES[self._format]
        tag = 3 if self._format == "float32" else 1
        frame = self._channels * BYTES[self._format]
        # Past 4 GiB the sizes stay at their most, which readers take for "to the end of the file".
        body = struct.pack(
            "<4sI4s4sIHHIIHH4sI", b"RIFF", min(HEADER - 8 + size, 0xFFFFFFFF), b"WAVE", b"fmt ", 16, tag,
            self._channels, self._rate, self._rate * frame, frame, 8 * BYTES[self._format], b"data",
            min(size, 0xFFFFFFFF),
        )  # fmt: skip
        return body

    def _encoded(self, frames: np.ndarray) -> bytes:
        if self._format == "float32":
            return frames.astype("<f4", copy=False).tobytes()
        bits = 8 * BYTES[self._format]
        scaled = np.rint(frames.astype(np.float64) * 2.0 ** (bits - 1))
        limited = np.clip(scaled, -(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1)
        self.clipped += int(np.count_nonzero(np.abs(scaled - limited) > 1))  # +1.0 itself is no overload
        if bits == 16:
            return limited.astype("<i2").tobytes()
        whole = limited.astype("<i4")
        return whole.tobytes() if bits == 32 else whole.view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
