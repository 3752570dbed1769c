"""Log mel energies as a stream: frame t covers the samples from t·hop to t·hop + size."""

from __future__ import annotations

import numpy as np

from pulse.live.spec import LogMel, window


class MelBands:
    """Sound `[n]` to features `[frames, bands]` of float32."""

    def __init__(self, spec: LogMel, rate: int) -> None:
        """`rate` in Hz."""
        self._spec = spec
        self._window = (window(spec.window, spec.size) * spec.scale).astype(np.float32)
        self._weights = mel_weights(spec, rate)
        self.reset()

    def reset(self) -> None:
        """Back to the start of a signal."""
        self._held = np.zeros(0, np.float32)

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Takes any number of samples, returns the frames that became complete."""
        spec, held = self._spec, np.concatenate([self._held, samples])
        count = max((len(held) - spec.size) // spec.hop + 1, 0)
        self._held = held[count * spec.hop :].copy()
        if not count:
            return np.zeros((0, spec.bands), np.float32)
        view = np.lib.stride_tricks.sliding_window_view(held, spec.size)[:: spec.hop][:count]
        frames = view - view.mean(1, keepdims=True) if spec.dc else view
        if spec.preemphasis:
            frames = frames - spec.preemphasis * np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
        power = np.abs(np.fft.rfft(frames * self._window, spec.fft or spec.size, axis=1)) ** spec.power
        energy: np.ndarray = power @ self._weights
        if spec.log == "none":
            return energy.astype(np.float32)
        energy = np.maximum(energy, spec.floor)
        scale = {"ln": 1.0, "log10": 1 / np.log(10), "db": 10 / np.log(10)}[spec.log]
        return np.asarray(np.log(energy) * scale, np.float32)

    def flush(self) -> np.ndarray:
        """Nothing remains: a frame that reaches past the end is none."""
        return np.zeros((0, self._spec.bands), np.float32)


def mel_weights(spec: LogMel, rate: int) -> np.ndarray:
    """`[bins, bands]`: triangles whose corners are evenly spaced in mel."""
    top = spec.fmax or rate / 2
    to_mel, to_hertz = (_slaney, _from_slaney) if spec.mel == "slaney" else (_htk, _from_htk)
    corners = np.linspace(to_mel(np.array(spec.fmin)), to_mel(np.array(top)), spec.bands + 2)
    size = spec.fft or spec.size
    bins = np.arange(size // 2 + 1) * rate / size
    if spec.mel == "kaldi":
        bins = to_mel(bins)
    else:
        corners = to_hertz(corners)
    low, mid, high = corners[:-2], corners[1:-1], corners[2:]
    rising = (bins[:, None] - low) / np.maximum(mid - low, 1e-9)
    falling = (high - bins[:, None]) / np.maximum(high - mid, 1e-9)
    weights = np.clip(np.minimum(rising, falling), 0, None)
    return np.asarray(weights * (2 / (high - low)) if spec.mel == "slaney" else weights)


def _htk(hertz: np.ndarray) -> np.ndarray:
    return 2595 * np.log10(1 + hertz / 700)


def _from_htk(mel: np.ndarray) -> np.ndarray:
    return 700 * (10 ** (mel / 2595) - 1)


def _slaney(hertz: np.ndarray) -> np.ndarray:
    """Slaney's Auditory Toolbox: 3 mel per 200 Hz up to 1 kHz, then 27 per factor of 6.4."""
    return np.where(hertz < 1000, hertz * 3 / 200, 15 + 27 * np.log(np.maximum(hertz, 1000) / 1000) / np.log(6.4))


def _from_slaney(mel: np.ndarray) -> np.ndarray:
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp(np.log(6.4) * (np.maximum(mel, 15) - 15) / 27))
