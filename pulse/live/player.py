"""The thread that plays the time line; apart from the one that computes, so it can conceal while that is held up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from pulse.live.clocks import OutputClock
from pulse.live.devices import Output
from pulse.live.playout import Playout

if TYPE_CHECKING:
    from pulse.live.stats import Stats


class Player(threading.Thread):
    """Keeps the loudspeaker fed from the time line."""

    GUARD = 0.003
    """Seconds before the device runs dry at which a frame that is not there is concealed."""

    def __init__(self, output: Output, playout: Playout, stats: Stats, clock: Callable[[], float]) -> None:
        super().__init__(name="player", daemon=True)
        self._output, self._playout, self._stats, self._now = output, playout, stats, clock
        self._clock = OutputClock(output.rate, output.period)
        self._capacity = output.room()
        self.begin, self.end = threading.Event(), threading.Event()
        self.error: BaseException | None = None

    def position(self, now: float) -> int:
        """Moment of the frame that the loudspeaker plays now."""
        return self._playout.next - int(self._clock.left(now) * self._output.rate)

    def run(self) -> None:
        try:
            while not self.begin.wait(0.1):
                if self.end.is_set():
                    return
            while not self.end.is_set():
                self._step()
        except Exception as error:  # told by the session
            self.error = error

    def _step(self) -> None:
        room, rate = self._output.room(), self._output.rate
        now = self._now()
        if self._clock.dry_at:
            overdue = -self._clock.left(now) * rate
            # Held up long past the end of what was written, the device was silent, even where it has yet to say so.
            if overdue > 2 * self._output.period:
                self._output.restart()  # some systems count wrong from here on
                room, now = self._output.room(), self._now()
                self._silent(now)
            elif overdue > 0 and room >= self._capacity:
                self._silent(now)
            else:
                self._clock.seen(now, self._capacity - room)
        frames = self._playout.take(room)
        left = self._clock.left(now) if self._clock.dry_at else 0.0
        if frames is None and room and left <= self.GUARD:
            frames = self._playout.conceal(min(room, self._output.period))
        if frames is not None and frames.shape[1]:
            self._output.write(frames)
            self._clock.written(now, frames.shape[1])
        elif room:
            self._playout.wait(max(left - self.GUARD, 0.0005))
        else:
            time.sleep(self._output.period / rate / 2)

    def _silent(self, now: float) -> None:
        """The device ran dry and has played nothing since."""
        self._stats.dry += 1
        self._playout.pass_over(max(int(-self._clock.left(now) * self._output.rate), 0))
        self._clock.dry_at = now
