"""Frames on their way to the loudspeaker, on a time line that never shifts by accident.

Every frame has a moment, counted in frames of the device. A frame that is not there when its moment comes is concealed,
and left out when it does come: so a late pulse costs what it was late and the latency afterwards is what it was before.
"""

from __future__ import annotations

import threading
from collections import deque

import numpy as np

FADE_OUT = 0.020
FADE_IN = 0.005
"""Seconds: a gap begins with the sound before it played backwards and fading, and ends with a fade."""


class Playout:
    """The time line. `put` is called by one thread, the rest by another.

    Attributes:
        lead: moment of the first frame.
        next: moment of the frame that `take` gives next.
        concealed: frames played in place of sound that was not there.
        late: frames that came too late to be played.
        skipped: frames left out to shorten the latency on purpose.
    """

    def __init__(self, channels: int, rate: int, lead: int) -> None:
        """The first frame put has the moment `lead`; until then there is silence, which is no concealment."""
        self.next = self.concealed = self.late = self.skipped = 0
        self.lead, self._due, self._cut, self._over = lead, lead, 0, False
        self._blocks: deque[tuple[int, np.ndarray]] = deque()
        self._news = threading.Condition()
        self._fade_in = np.linspace(0, 1, int(FADE_IN * rate) + 1, dtype=np.float32)[1:]
        self._fade_out = np.linspace(1, 0, int(FADE_OUT * rate) + 1, dtype=np.float32)[1:]
        self._last = np.zeros((channels, len(self._fade_out)), np.float32)
        self._rest = self._last[:, :0]  # what is left of the fading sound
        self._rising = len(self._fade_in)  # how far the sound is back after a gap

    @property
    def due(self) -> int:
        """Moment of the next frame put that is not to be left out."""
        return self._due - self._cut

    def put(self, frames: np.ndarray) -> int:
        """Takes the next `[channels, n]`; returns how many of them are too late."""
        with self._news:
            cut = min(self._cut, frames.shape[1])
            if cut:
                frames = self._without(frames, cut)
            start, count = self._due, frames.shape[1]
            self._due += count
            late: int = min(max(self.next - start, 0), count)
            self.late += late
            if late < count:
                self._blocks.append((start + late, frames[:, late:]))
                self._news.notify()
            return late

    def shift(self, frames: int) -> None:
        """Makes all sound to come later by `frames`, or earlier if negative, for good."""
        with self._news:
            if frames > 0:
                undone = min(frames, self._cut)
                self._cut -= undone
                self._due += frames - undone
            else:
                rest = -frames - self._hurry(-frames)
                self._cut += max(rest, 0)
                self._due += max(-rest, 0)

    def take(self, most: int) -> np.ndarray | None:
        """Up to `most` frames whose moment is next; None if they are not there."""
        with self._news:
            if not self._blocks or self._blocks[0][0] > self.next or most < 1:
                return None
            start, frames = self._blocks.popleft()
            if frames.shape[1] > most:
                self._blocks.appendleft((start + most, frames[:, most:]))
                frames = frames[:, :most]
            self.next += frames.shape[1]
            return self._risen(frames)

    def conceal(self, count: int) -> np.ndarray:
        """Up to `count` frames to play in place of those that are not there."""
        with self._news:
            if self._blocks:
                count = min(count, self._blocks[0][0] - self.next)
            lead = min(max(self.lead - self.next, 0), count)
            self.next += count
            self.concealed += 0 if self._over else count - lead
            if self._rising and lead < count:
                self._rest, self._rising = self._last[:, ::-1] * self._fade_out, 0
            return self._faded(count)

    def _faded(self, count: int) -> np.ndarray:
        made = np.zeros((len(self._last), count), np.float32)
        fading = self._rest[:, :count]
        made[:, : fading.shape[1]] = fading
        self._rest = self._rest[:, count:]
        return made

    def pass_over(self, count: int) -> None:
        """The device was silent by itself for `count` frames: their moments are gone."""
        with self._news:
            self.next += count
            self.concealed += count
            while self._blocks and self._blocks[0][0] < self.next:
                start, frames = self._blocks.popleft()
                late = min(self.next - start, frames.shape[1])
                self.late += late
                if late < frames.shape[1]:
                    self._blocks.appendleft((start + late, frames[:, late:]))
            self._rest, self._rising = self._last[:, :0], 0

    def over(self) -> None:
        """Nothing more will be put: what is missing from now on is missed by nobody."""
        self._over = True

    def wait(self, seconds: float) -> None:
        """Until `put` brings something, at most so long."""
        with self._news:
            if not self._blocks or self._blocks[0][0] > self.next:
                self._news.wait(seconds)

    def _risen(self, frames: np.ndarray) -> np.ndarray:
        """After a gap the sound comes back over what is left of the fading one."""
        count = min(len(self._fade_in) - self._rising, frames.shape[1])
        if count > 0:
            weight = self._fade_in[self._rising : self._rising + count]
            frames = frames.copy()
            frames[:, :count] *= weight
            fading = self._rest[:, :count]
            frames[:, : fading.shape[1]] += fading * (1 - weight[: fading.shape[1]])
            self._rest, self._rising = self._rest[:, count:], self._rising + count
        kept = np.concatenate([self._last, frames], axis=1)
        self._last = kept[:, kept.shape[1] - self._last.shape[1] :]
        return frames

    def _hurry(self, wanted: int) -> int:
        """Brings forward what waits already: gaps close, then the oldest frames are left out. Returns by how many."""
        if not self._blocks:
            return 0
        start = max(self._blocks[0][0] - wanted, min(self.next, self._blocks[0][0]))
        end = self._blocks[-1][0] + self._blocks[-1][1].shape[1]
        frames = np.concatenate([frames for _, frames in self._blocks], axis=1)
        gaps = end - start - frames.shape[1]
        left_out = max(min(wanted - gaps, frames.shape[1] - len(self._fade_in)), 0)
        self._due -= gaps + left_out
        if left_out:
            fading = frames[:, : min(left_out, len(self._fade_out))]
            self._rest, self._rising = fading * self._fade_out[: fading.shape[1]], 0
        self._blocks = deque([(start, frames[:, left_out:])])
        self.skipped += left_out
        return int(gaps + left_out)

    def _without(self, frames: np.ndarray, cut: int) -> np.ndarray:
        """Leaves out the first `cut` frames, with a fade from where they began to where they end."""
        self._cut -= cut
        self.skipped += cut
        kept = frames[:, cut:].copy()
        count = min(len(self._fade_in), kept.shape[1])
        weight = self._fade_in[:count]
        kept[:, :count] = kept[:, :count] * weight + frames[:, :count] * (1 - weight)
        return kept
