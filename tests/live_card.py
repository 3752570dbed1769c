"""A sound card made of arithmetic: it keeps real time and can drift, lose sound, and hold sound back."""

from __future__ import annotations

import threading
import time

import numpy as np

from pulse.live.devices import Heard

RATE = 16000
PERIOD = 80


class Card:
    """Its microphone hears `sound` at `pace` times the right speed; its loudspeaker remembers what it played when.

    `ring` is how many frames it keeps for a reader that is late; the rest is lost, and reported if `honest`.
    """

    rate, period = RATE, PERIOD

    def __init__(self, sound: np.ndarray, pace: float = 1.0, ring: int = 1 << 20, honest: bool = True) -> None:
        self._sound, self._pace, self._ring, self._honest = sound, pace, ring, honest
        self._start = time.monotonic()
        self._read = self._losses = 0
        self.lost = 0
        self._lock = threading.Lock()
        self._played_at: float | None = None  # time at which frame 0 of `heard` was played
        self._waiting = np.zeros(0, np.float32)
        self.heard: list[np.ndarray] = []
        self.heard_from = 0.0

    def now(self) -> int:
        """Frames recorded so far."""
        return int((time.monotonic() - self._start) * RATE * self._pace) // PERIOD * PERIOD

    def read(self, frames: int) -> Heard:
        surplus = self.now() - self._read - self._ring
        overflow = surplus > 0
        if overflow:
            self._read += surplus
            self.lost += surplus
        waited = self.now() < self._read + frames
        while self.now() < self._read + frames:
            time.sleep(0.0005)
        block = self._sound[self._read : self._read + frames]
        self._read += frames
        return Heard(np.pad(block, (0, frames - len(block)))[None], overflow and self._honest, waited)

    CAPACITY = 400

    def _play(self) -> None:
        """Consumes what should have been played by now; silence where nothing waited."""
        if self._played_at is None:
            return
        due = int((time.monotonic() - self._played_at) * RATE) - sum(len(part) for part in self.heard)
        played, self._waiting = self._waiting[:due], self._waiting[due:]
        self.heard.append(np.pad(played, (0, max(due - len(played), 0))))

    def room(self) -> int:
        with self._lock:
            self._play()
            return self.CAPACITY - len(self._waiting)

    def write(self, frames: np.ndarray) -> None:
        with self._lock:
            self._play()
            if self._played_at is None:
                self._played_at = time.monotonic()
                self.heard_from = self._played_at - self._start
            self._waiting = np.concatenate([self._waiting, frames[0]])

    def restart(self) -> None:
        with self._lock:
            self._play()
            self._waiting = self._waiting[:0]

    def close(self) -> None:
        pass

    def delay_of(self, number: int) -> float:
        """Seconds from the recording of frame `number` to its playing, where frames hold their numbers."""
        heard = np.concatenate(self.heard)
        places = np.nonzero(heard == number)[0]
        assert len(places), f"frame {number} was not played"
        return self.heard_from + places[0] / RATE - number / RATE / self._pace
