"""The short-time Fourier transform and its inverse as streams.

Frame t covers the samples from t·hop − (size − hop) to (t + 1)·hop, so the first hop of sound gives the first frame;
before the signal there is silence. A sample is complete once the last frame over it is there: size − hop samples later.
"""

from __future__ import annotations

import numpy as np

from pulse.live.spec import Stft, window


class Analysis:
    """Sound `[n]` to spectra `[frames, bins]` of complex64."""

    def __init__(self, spec: Stft) -> None:
        self._size, self._hop = spec.size, spec.hop
        self._window = window(spec.window, spec.size).astype(np.float32)
        self.reset()

    def reset(self) -> None:
        """Back to the start of a signal."""
        self._held = np.zeros(self._size - self._hop, np.float32)
        self._taken = self._made = 0

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Takes any number of samples, returns the frames that became complete."""
        self._taken += len(samples)
        return self._frames(np.concatenate([self._held, samples]))

    def flush(self) -> np.ndarray:
        """The signal has ended: the frames that still have a sample of it, silence standing in for what follows."""
        if not self._taken:
            return self.none()
        total = (self._taken - 1 + self._size - self._hop) // self._hop + 1
        missing = (total - self._made) * self._hop + self._size - self._hop - len(self._held)
        return self._frames(np.concatenate([self._held, np.zeros(max(missing, 0), np.float32)]))

    def none(self) -> np.ndarray:
        """No frames."""
        return np.zeros((0, self._size // 2 + 1), np.complex64)

    def _frames(self, held: np.ndarray) -> np.ndarray:
        count = max((len(held) - self._size) // self._hop + 1, 0)
        self._held = held[count * self._hop :].copy()
        self._made += count
        if not count:
            return self.none()
        view = np.lib.stride_tricks.sliding_window_view(held, self._size)[:: self._hop][:count]
        return np.fft.rfft(view * self._window, axis=1).astype(np.complex64)


class Synthesis:
    """Spectra `[frames, bins]` to sound `[n]`, sample for sample that which `Analysis` took."""

    def __init__(self, spec: Stft) -> None:
        self._size, self._hop = spec.size, spec.hop
        self._parts = -(-spec.size // spec.hop)  # hops that a frame reaches over
        shape = np.zeros(self._parts * spec.hop)
        shape[: spec.size] = window(spec.window, spec.size)
        overlap = (shape**2).reshape(self._parts, spec.hop).sum(0)
        self._window = (shape.reshape(self._parts, spec.hop) / overlap).astype(np.float32)
        self.reset()

    def reset(self) -> None:
        """Back to the start of a signal."""
        self._tail = np.zeros((self._parts - 1, self._hop), np.float32)
        self._early = self._size - self._hop  # samples before the signal, still to be left out

    def push(self, spectra: np.ndarray) -> np.ndarray:
        """Takes any number of frames, returns the samples that became complete."""
        count = len(spectra)
        frames = np.fft.irfft(spectra, self._size, axis=1).astype(np.float32)
        frames = np.pad(frames, ((0, 0), (0, self._parts * self._hop - self._size)))
        frames = frames.reshape(count, self._parts, self._hop) * self._window
        sums = np.zeros((count + self._parts - 1, self._hop), np.float32)
        sums[: self._parts - 1] = self._tail
        for part in reversed(range(self._parts)):  # oldest frame first, whichever way the frames are cut
            sums[part : part + count] += frames[:, part]
        self._tail = sums[count:].copy()
        samples = sums[:count].reshape(-1)
        early = min(self._early, len(samples))
        self._early -= early
        return samples[early:]
