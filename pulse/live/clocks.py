"""Time kept against the devices: how far behind the reader is, when the loudspeaker runs dry, how the clocks drift."""

from __future__ import annotations

from math import inf
from statistics import median

DRIFT = 3e-4
"""Most that two clocks differ; real ones stay below 1e-4."""


class InputClock:
    """How many frames wait unread, from the times at which reads end.

    A read that had to wait ends when its last frame arrives. Over all reads, the earliest such end relative to the
    count of frames marks the pace; whoever is later than that is behind.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._frames = 0
        self._start: float | None = None  # time of frame 0, by the pace
        self._seen = 0.0

    def note(self, now: float, frames: int) -> int:
        """A read of `frames` ended at `now`; returns by how many frames it was behind."""
        self._frames += frames
        start = now - self._frames / self._rate
        if self._start is None:
            self._start = start
        self._start = min(self._start + DRIFT * (now - self._seen if self._seen else 0.0), start)
        self._seen = now
        return int((start - self._start) * self._rate)

    def lose(self, frames: int) -> None:
        """So many frames were recorded and will never be read."""
        self._frames += frames


class OutputClock:
    """When the device runs dry. Its own report of what waits is up to one period old; the clock fills in between."""

    def __init__(self, rate: int, period: int) -> None:
        self._rate, self._period = rate, period / rate
        self.dry_at = 0.0

    def written(self, now: float, frames: int) -> None:
        """`frames` were handed over."""
        self.dry_at = max(self.dry_at, now) + frames / self._rate

    def seen(self, now: float, waiting: int) -> None:
        """The device reports that `waiting` frames wait."""
        latest = now + waiting / self._rate
        self.dry_at = min(max(self.dry_at, latest - self._period), latest)

    def left(self, now: float) -> float:
        """Seconds until it runs dry; negative: it has been dry for so long."""
        return self.dry_at - now


class LossWatch:
    """Tells from the reader's being behind how much sound was lost.

    A reader that never catches up, though it had to wait for the device, is behind by what was recorded and never
    delivered. A thread that is woken late is not: it then finds the rest waiting.
    """

    WINDOW, REPORTED = 1.0, 0.1
    """Seconds to look at; fewer where the device itself reports a loss."""

    def __init__(self, period: int) -> None:
        """`period` is the device's, in frames: less is jitter."""
        self._period = period
        self._begin(-inf, False)

    def _begin(self, since: float, reported: bool) -> None:
        self._since, self._reported, self._waited = since, reported, False
        self._least: int | None = None

    def note(self, now: float, behind: int, width: int, waited: bool, overflowed: bool) -> int:
        """After a read of `width` frames; returns the frames found to be lost, 0 mostly."""
        if self._since == -inf or (overflowed and not self._reported):
            self._begin(now, overflowed)
        self._least = behind if self._least is None else min(self._least, behind)
        self._waited |= waited
        if not self._waited or now - self._since < (self.REPORTED if self._reported else self.WINDOW):
            return 0
        lost, bar = self._least, 2 * self._period if self._reported else 4 * self._period + width
        self._begin(now, False)
        return lost if lost > bar else 0


class Steadiness:
    """Tells when the moments of pulses have moved against their arrival, and by how much.

    Clocks of two devices drift apart, and a sound system may hold sound back at first, stop for a while, or lose or add
    some. The median over a window tells that from mere lateness of some pulses.
    """

    WINDOW, SOON = 2.0, 0.3  # seconds
    LARGE = 0.025
    """Seconds of error that are not waited out."""

    def __init__(self, rate: int, margin: int) -> None:
        """Less than half of `margin` frames, or than 6 ms where sound comes too early, is let pass."""
        self._least, self._most = -(margin // 2), max(margin // 2, int(0.006 * rate))
        self._large = max(int(self.LARGE * rate), 2 * self._most)
        self._again(self.SOON)

    def _again(self, window: float) -> None:
        self._all: list[tuple[float, int]] = []
        self._wide: list[tuple[float, int]] = []  # the latest ones, as far as all of them are large
        self._window = window

    def hasten(self) -> None:
        """Something happened: look soon."""
        self._again(self.SOON)

    def note(self, now: float, error: int, behind: bool) -> int:
        """One pulse arrived, `error` frames earlier than its moment asks for; returns by how many to shift what comes.

        While the reader is behind, pulses are late for a reason that passes, and nothing is shifted.
        """
        if behind:
            self._again(self._window)
            return 0
        self._all.append((now, error))
        self._wide = [*self._wide, (now, error)] if abs(error) > self._large else []
        for seen, window in ((self._wide, self.SOON), (self._all, self._window)):
            if seen and now - seen[0][0] >= window:
                middle = int(median(value for _, value in seen))
                self._again(self.WINDOW)
                return -middle if not self._least <= middle <= self._most else 0
        return 0
