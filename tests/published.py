"""The published full-signal models that tests stream, and sound for them. They are kept beside the repository."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnx
from scipy.io import wavfile

GRAPHS = ("dfn2/enc", "dfn2/erb_dec", "dfn2/df_dec", "dfn3/enc", "firered/stream_vad", "nsnet2/nsnet2_20ms")


@cache
def graph(shared: Path, name: str) -> onnx.ModelProto:
    """One of `GRAPHS`, or another model of that folder."""
    return onnx.load(shared / "models" / f"{name}.onnx")


def speech(shared: Path, name: str = "firered_hello_en.wav") -> np.ndarray:
    """A 16 kHz recording, full scale 1."""
    rate, wave = wavfile.read(shared / "audio" / name)
    assert rate == 16000, rate
    return (wave / 32768).astype(np.float32)


def frames_of(wave: np.ndarray, size: int, hop: int) -> np.ndarray:
    """Overlapping frames `[frames, size]`."""
    return np.lib.stride_tricks.sliding_window_view(wave, size)[::hop]


def log_mel(wave: np.ndarray, bands: int = 80, size: int = 400, hop: int = 160, rate: int = 16000) -> np.ndarray:
    """Log mel energies `[1, frames, bands]`: triangles over the power spectrum of Hann windows, on Kaldi's scale.

    Samples count as 16-bit numbers, so that silence lies near 0 and speech near 15, as trained models expect it.
    """
    power = np.abs(np.fft.rfft(frames_of(wave * 32768, size, hop) * np.hanning(size), 512)) ** 2

    def mel(hertz: np.ndarray | float) -> np.ndarray:
        return 1127 * np.log1p(np.asarray(hertz) / 700)

    edges = np.linspace(mel(20), mel(rate / 2), bands + 2)
    at = mel(np.arange(257) * rate / 512)
    rising = (at - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - at) / (edges[2:] - edges[1:-1])[:, None]
    weights = np.clip(np.minimum(rising, falling), 0, None)
    return np.log(np.maximum(power @ weights.T, 1.0)).astype(np.float32)[None]


def erb_features(wave: np.ndarray, bands: int = 32, complex_bins: int = 96) -> dict[str, np.ndarray]:
    """What DeepFilterNet's encoder reads, roughly: log energies of 32 bands in tens of dB, and 96 normalised bins."""
    spectrum = np.fft.rfft(frames_of(wave, 320, 160) * np.hanning(320), 480)
    edges = np.maximum(np.geomspace(1, 241, bands + 1)[:-1].astype(int), np.arange(bands))
    energy = np.add.reduceat(np.abs(spectrum) ** 2, edges, axis=1)
    level = 10 * np.log10(energy + 1e-10)
    low = spectrum[:, :complex_bins] / np.sqrt(np.mean(np.abs(spectrum) ** 2))
    parts = np.stack([low.real, low.imag])
    return {
        "feat_erb": ((level - level.mean()) / 40).astype(np.float32)[None, None],
        "feat_spec": parts.astype(np.float32)[None],
    }


def log_power(wave: np.ndarray, size: int = 320, hop: int = 160) -> np.ndarray:
    """Log power `[1, frames, 161]`, which NSNet2 reads."""
    power = np.abs(np.fft.rfft(frames_of(wave, size, hop) * np.hanning(size))) ** 2
    return np.log10(np.maximum(power, 1e-12)).astype(np.float32)[None]
