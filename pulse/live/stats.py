"""What a live stream did, in numbers for a person and for a program."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

RECENT = 512
SILENCE_DB = -120.0
FALL = 30.0
"""dB per second by which a level falls."""


@dataclass
class Stats:
    """Counted by the worker, read by others; each number alone is right at any time.

    Attributes:
        rate: of the devices, in Hz; frames, concealed, late, skipped and lost count its frames.
        missed: pulses that came too late to be played whole.
        overflows: times that the microphone's sound was lost; `lost` is how much.
        dry: times that the loudspeaker fell silent because the whole program was held up.
        corrections: frames by which the clocks of the two devices were brought together again.
    """

    rate: int
    pulses: int = 0
    frames: int = 0
    missed: int = 0
    overflows: int = 0
    lost: int = 0
    dry: int = 0
    corrections: int = 0
    width_changes: int = 0
    worst_us: float = 0.0
    busy: float = 0.0
    level_in: float = SILENCE_DB
    level_out: float = SILENCE_DB
    shown: dict[str, list[float]] = field(default_factory=dict)
    _recent_us: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _recent_share: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    _started: float = field(default_factory=time.monotonic)
    _cpu: float = field(default_factory=time.process_time)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pulse(self, frames: int, seconds: float, late: bool) -> None:
        """One pulse of `frames` took `seconds` to compute."""
        with self._lock:
            self._recent_us.append(seconds * 1e6)
            self._recent_share.append(seconds * self.rate / frames)
        self.pulses, self.frames = self.pulses + 1, self.frames + frames
        self.missed += late
        self.worst_us = max(self.worst_us, seconds * 1e6)
        self.busy += seconds

    def levels(self, before: np.ndarray, after: np.ndarray) -> None:
        """Takes one pulse into the levels, in dB below full scale: they rise at once and fall slowly."""
        fall = FALL * before.shape[1] / self.rate
        self.level_in = max(decibels(before), self.level_in - fall)
        self.level_out = max(decibels(after), self.level_out - fall)

    def compute_us(self) -> dict[str, float]:
        """Median and 99th percentile of the last pulses, and the worst of all, in microseconds."""
        with self._lock:
            recent = list(self._recent_us)
        median, p99 = np.percentile(recent, [50, 99]) if recent else (0.0, 0.0)
        return {"median": float(median), "p99": float(p99), "max": self.worst_us}

    def load(self) -> dict[str, float]:
        """Share of the time in which the model computes, and CPU time of the whole program by time passed."""
        with self._lock:
            share = float(np.mean(self._recent_share)) if self._recent_share else 0.0
        passed = time.monotonic() - self._started
        return {"model": share, "process": (time.process_time() - self._cpu) / passed if passed else 0.0}

    def as_dict(self) -> dict[str, Any]:
        """The numbers as in `pulse mic --json`."""
        return {
            "seconds": self.frames / self.rate,
            "pulses": self.pulses,
            "compute_us": self.compute_us(),
            "cpu_load": self.load(),
            "missed": self.missed,
            "overflows": self.overflows,
            "lost_ms": 1e3 * self.lost / self.rate,
            "dry": self.dry,
            "corrections": self.corrections,
            "width_changes": self.width_changes,
            "level_db": {"in": self.level_in, "out": self.level_out},
        }


def decibels(samples: np.ndarray) -> float:
    """Root mean square in dB, a full-scale square wave being 0."""
    power = float(np.mean(np.square(samples, dtype=np.float64))) if samples.size else 0.0
    return max(10 * float(np.log10(power)), SILENCE_DB) if power > 1e-12 else SILENCE_DB
