"""Reading sound files block by block: WAV by scipy, everything else (and large WAV) by soundfile where it is there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pulse.errors import PulseError

FORMATS = {"PCM_16": "pcm16", "PCM_24": "pcm24", "PCM_32": "pcm32", "FLOAT": "float32", "DOUBLE": "float32"}
SUFFIXES = (".wav", ".flac", ".ogg", ".oga", ".mp3", ".aif", ".aiff", ".w64", ".rf64", ".caf", ".au")


@dataclass
class AudioFile:
    """A sound file open for reading.

    Attributes:
        rate: samples per second.
        channels: number of channels.
        frames: length in samples per channel.
        sample_format: the one of `wav.BYTES` which holds its samples best.
    """

    rate: int
    channels: int
    frames: int
    sample_format: str
    _source: Any

    def blocks(self, size: int) -> Iterator[np.ndarray]:
        """The sound as `[channels, up to size]` of float32, full scale 1."""
        if isinstance(self._source, np.ndarray):
            for start in range(0, self.frames, size):
                yield _scaled(self._source[start : start + size]).T
            return
        with self._source as file:
            while len(block := self._read(file, size)):
                yield block.T

    def _read(self, file: Any, size: int) -> np.ndarray:
        try:
            return np.asarray(file.read(size, dtype="float32", always_2d=True))
        except RuntimeError as error:  # damaged further on
            raise _unreadable(Path(file.name), error) from error


def open_audio(path: Path) -> AudioFile:
    """Opens a sound file. Raises PulseError file-not-found, bad-audio-file."""
    if not path.exists():
        raise PulseError("file-not-found", node=str(path))
    return _by_soundfile(path) if find_spec("soundfile") else _by_scipy(path)


def is_audio(path: Path) -> bool:
    """Whether a name looks like that of a sound file."""
    return path.suffix.lower() in SUFFIXES


def _by_soundfile(path: Path) -> AudioFile:
    import soundfile

    try:
        file = soundfile.SoundFile(path)
    except (soundfile.LibsndfileError, OSError, TypeError) as error:
        raise _unreadable(path, error) from error
    return AudioFile(file.samplerate, file.channels, file.frames, FORMATS.get(file.subtype, "pcm16"), file)


def _by_scipy(path: Path) -> AudioFile:
    from scipy.io import wavfile

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # chunks that it skips
            rate, samples = wavfile.read(path)
    except Exception as error:  # a damaged header can raise almost anything
        raise _unreadable(path, error) from error
    samples = samples.reshape(len(samples), -1)
    kinds = {"uint8": "pcm16", "int16": "pcm16", "int32": "pcm32"}
    return AudioFile(rate, samples.shape[1], len(samples), kinds.get(samples.dtype.name, "float32"), samples)


def _scaled(samples: np.ndarray) -> np.ndarray:
    if samples.dtype == np.uint8:
        return (samples.astype(np.float32) - 128) / 128
    if samples.dtype.kind == "i":  # 24 bits come in the upper part of 32
        return (samples / 2.0 ** (8 * samples.dtype.itemsize - 1)).astype(np.float32)
    return samples.astype(np.float32)


def _unreadable(path: Path, error: Exception) -> PulseError:
    summary = " ".join(str(error).split()) or type(error).__name__
    return PulseError(
        "bad-audio-file",
        node=str(path),
        required="a WAV file, or one that soundfile reads" if not find_spec("soundfile") else "sound",
        found=summary[:200],
    )
