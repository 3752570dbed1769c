"""The pulse width that a busy machine can keep up with: wider when deadlines are missed, narrower after quiet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

WITHIN = 2.0
"""Seconds in which two separate misses make the pulse wider."""
LASTING = 0.5
"""Seconds of unbroken lateness that make it wider at once."""
QUIET_MOST = 160.0
SHARE = 0.6
"""Most of a pulse's time that its computation may take where a width is chosen by measure."""


def ladder(grain: int, rate: int, least: float = 0.0025, most: float = 0.160) -> list[int]:
    """Pulse widths in samples to choose from: multiples of `grain`, each twice the one before."""
    width = grain * max(1, round(least * rate / grain))
    widths = [width]
    while 2 * widths[-1] <= max(most * rate, width):
        widths.append(2 * widths[-1])
    return widths


def narrowest(widths: Sequence[int], rate: int, seconds: Callable[[int], float]) -> int:
    """The first width whose pulse takes no more than SHARE of its own time, by `seconds(width)`; else the last."""
    return next((width for width in widths if seconds(width) <= SHARE * width / rate), widths[-1])


@dataclass
class AutoWidth:
    """Chooses among `widths`, starting at `width`.

    Attributes:
        quiet: seconds without a miss after which it tries the next narrower width. Doubles each time that fails.
    """

    widths: Sequence[int]
    width: int
    quiet: float = 10.0
    _misses: deque[float] = field(default_factory=lambda: deque(maxlen=2))
    _late_since: float | None = None
    _calm_since: float | None = None
    _narrowed: float | None = None

    def note(self, now: float, late: bool) -> int:
        """One pulse was or was not late; returns the width for the next."""
        if self._calm_since is None:
            self._calm_since = now
        if late:
            self._calm_since = now
            if self._late_since is None:
                self._late_since = now
                self._misses.append(now)
            again = len(self._misses) == 2 and now - self._misses[0] < WITHIN
            if again or now - self._late_since > LASTING:
                self._widen(now)
            return self.width
        self._late_since = None
        if now - self._calm_since >= self.quiet:
            self._narrow(now)
        return self.width

    def _widen(self, now: float) -> None:
        if self._narrowed is not None and now - self._narrowed < self.quiet:
            self.quiet = min(2 * self.quiet, QUIET_MOST)
        self._step(now, 1)

    def _narrow(self, now: float) -> None:
        if self._step(now, -1):
            self._narrowed = now

    def _step(self, now: float, by: int) -> bool:
        place = self.widths.index(self.width) + by
        self._misses.clear()
        self._late_since, self._calm_since = None, now
        if not 0 <= place < len(self.widths):
            return False
        self.width = self.widths[place]
        return True
