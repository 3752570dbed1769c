"""Conversion of the sample rate as a stream, with a short delay.

A polyphase filter, linear phase, flat up to 0.9 of the lower Nyquist frequency and 90 dB down at it. From 48 kHz to
16 kHz it needs 3.6 ms of look-ahead; soxr's streams hold back 36 ms at their default quality, too much to talk through.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import gcd

import numpy as np

from pulse.errors import PulseError

STOP_DB = 90.0
PASS = 0.9
MOST_PHASES = 4096


class Resampler:
    """`[channels, frames]` at one rate to the same at another; output sample m is the signal at time m / `to_rate`.

    Attributes:
        lag: seconds of input beyond an output sample that it needs; the delay of the piece.
    """

    def __init__(self, from_rate: int, to_rate: int, channels: int) -> None:
        """Rates in Hz. Raises PulseError rate-unsupported where their ratio has no small fraction."""
        common = gcd(from_rate, to_rate)
        self._up, self._down = to_rate // common, from_rate // common
        if self._up > MOST_PHASES or self._down > MOST_PHASES:
            raise PulseError(
                "rate-unsupported",
                node=f"{from_rate} Hz to {to_rate} Hz",
                required=f"a ratio of whole numbers up to {MOST_PHASES}",
                found=f"{self._up}/{self._down}",
            )
        self._bank, self._centre = _filter_bank(self._up, self._down)
        self._taps = self._bank.shape[1]
        self.lag = Fraction(self._centre, self._up * from_rate)
        self._channels = channels
        self.reset()

    def reset(self) -> None:
        """Back to the start of a signal."""
        self._held = np.zeros((self._channels, self._taps - 1), np.float32)
        self._first = 1 - self._taps  # index of the first sample held
        self._made = self._taken = 0

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Takes `[channels, n]`, returns the samples that became known, as many as it makes."""
        self._taken += samples.shape[1]
        self._held = np.concatenate([self._held, samples], axis=1)
        return self._make(max(0, -(-(self._taken * self._up - self._centre) // self._down)))

    def flush(self) -> np.ndarray:
        """The signal has ended: the samples that remain, silence standing in for what follows."""
        total = -(-self._taken * self._up // self._down)
        needed = ((total - 1) * self._down + self._centre) // self._up + 1 - self._first - self._held.shape[1]
        self._held = np.pad(self._held, ((0, 0), (0, max(needed, 0))))
        return self._make(total)

    def _make(self, total: int) -> np.ndarray:
        if total <= self._made:
            return np.zeros((self._channels, 0), np.float32)
        place = np.arange(self._made, total) * self._down + self._centre
        newest, phase = place // self._up - self._first, place % self._up
        windows = np.lib.stride_tricks.sliding_window_view(self._held, self._taps, axis=1)
        made = np.einsum("cmt,mt->cm", windows[:, newest - self._taps + 1], self._bank[phase], optimize=False)
        self._made = total
        oldest = (total * self._down + self._centre) // self._up - self._taps + 1 - self._first
        keep = min(max(oldest, 0), self._held.shape[1])
        self._held, self._first = self._held[:, keep:].copy(), self._first + keep
        return np.ascontiguousarray(made, np.float32)


@lru_cache(maxsize=16)
def _filter_bank(up: int, down: int) -> tuple[np.ndarray, int]:
    """`[up, taps]`, each row a phase with its oldest sample first, and the filter's centre in steps of 1/`up` sample.

    Kaiser's formulas give length and shape of the window for the width of the transition and the attenuation.
    """
    slower = max(up, down)
    width = np.pi * (1 - PASS) / slower
    half = int(np.ceil((STOP_DB - 7.95) / (2.285 * width) / 2))
    taps = -(-(2 * half + 1) // up)
    time = np.arange(taps * up) - half
    shape = np.sqrt(np.clip(1 - (time / half) ** 2, 0, None))
    window = np.where(np.abs(time) <= half, np.i0(0.1102 * (STOP_DB - 8.7) * shape), 0.0)
    cut = (1 + PASS) / 2 / slower
    kernel = (np.sinc(cut * time) * window).reshape(taps, up)
    kernel /= kernel.sum(0, keepdims=True)  # every phase passes a constant untouched
    return np.ascontiguousarray(kernel.T[:, ::-1], np.float32), half
