"""The thread that reads the microphone, runs the model and puts what it makes on the time line."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pulse.errors import PulseError
from pulse.live.clocks import InputClock, LossWatch, Steadiness
from pulse.live.devices import Input
from pulse.live.playout import Playout

if TYPE_CHECKING:
    from pulse.live.auto import AutoWidth
    from pulse.live.chain import Chain, Made
    from pulse.live.player import Player
    from pulse.live.stats import Stats

Sink = Callable[[np.ndarray], None]

BACKLOG = 2.0
"""Seconds of sound that may wait unread; beyond that some is dropped, or a slow model would lag ever more."""
SETTLING = 0.1
"""Seconds of sound thrown away at first, while the devices find their pace."""
SWITCH = 0.010
"""Seconds in which the sound changes from processed to dry and back."""


@dataclass
class Worker:
    """Reads, computes, hands on. `run` ends when `stop` is called, `limit` frames were read, or the device is lost.

    Attributes:
        width: frames of the device per pulse.
        margin: frames between the arrival of a pulse and its moment.
        auto: chooses the width, in samples of the model; None leaves it.
        on_input, on_output: are given what was read and what was made of it, every frame once, in order.
        dry: play what comes in, at the time of what would come out.
        reading: whether it waits for the microphone.
    """

    source: Input
    chain: Chain
    playout: Playout | None
    player: Player | None
    stats: Stats
    width: int
    margin: int
    auto: AutoWidth | None = None
    limit: int | None = None
    on_input: Sink | None = None
    on_output: Sink | None = None
    dry: bool = False
    now: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.reading = True
        self._ended = threading.Event()
        self._clock = InputClock(self.source.rate)
        self._steady = Steadiness(self.source.rate, self.margin)
        self._loss = LossWatch(self.source.period)
        self._held = np.zeros((self.chain.wiring.channels, 0), np.float32)
        self._wetness = 1.0
        self._pushed = self._emitted = self._dry = 0
        scale = self.source.rate / self.chain.rate
        self._grain = max(1, round(self.chain.grain * scale))

    def stop(self) -> None:
        """Ends after the pulse at hand."""
        self._ended.set()

    def run(self) -> None:
        """Until the end; then the tail of the signal is handed on too, also where the device was lost."""
        gone: PulseError | None = None
        try:
            self._settle()
            while not self._ended.is_set() and (self.limit is None or self.stats.frames < self.limit):
                self._pulse()
        except PulseError as error:
            gone = error
        self._hand_on(self.chain.flush(), None)
        if self.playout:
            self.playout.over()
        if gone:
            raise gone

    def _settle(self) -> None:
        """Reads until the device gives sound no faster than it is recorded."""
        begun = self.now()
        while not self._ended.is_set():
            heard = self.source.read(self.source.period)
            if heard.waited and self.now() - begun > SETTLING:
                return

    def _pulse(self) -> None:
        self.reading = True
        block, overflowed, waited = self.source.read(self.width)
        self.reading = False
        arrived = self.now()
        behind = self._clock.note(arrived, self.width)
        error = self._error(arrived)
        late = self._process(self._fitting(block))
        done = self.now()
        late += self._fell_silent()
        if self.playout is None:
            late = max(int((done - arrived) * self.source.rate) + behind - self.width - self.margin, 0)
        self.stats.pulse(self.width, done - arrived, late > 0)
        if self.playout and error is not None:
            change = self._steady.note(done, error, behind > self.width)
            if change:
                self.playout.shift(change)
                self.stats.corrections += abs(change)
        self.stats.overflows += overflowed
        self._lose(self._loss.note(done, behind, self.width, waited, overflowed))
        if behind > BACKLOG * self.source.rate:
            self._drop(behind // self._grain * self._grain)
        if self.auto:
            self._set_width(self.auto.note(done, late > 0))

    def _fell_silent(self) -> bool:
        """Whether the loudspeaker ran dry since this was last asked."""
        dry, self._dry = self._dry, self.stats.dry
        if dry != self._dry:
            self._steady.hasten()
        return dry != self._dry

    def _error(self, now: float) -> int | None:
        """Frames by which the pulse at hand is earlier than it has to be; None while nothing plays."""
        if self.player is None or self.playout is None or not self.player.begin.is_set():
            return None
        slack = self.playout.due - self.player.position(now)
        return slack - (self.playout.lead - (self._pushed - self._emitted))

    def _process(self, sound: np.ndarray) -> int:
        """Frames of the microphone through the chain and on; returns the frames too late."""
        made = self.chain.push(sound)
        self._pushed, self._emitted = self._pushed + sound.shape[1], self._emitted + made.sound.shape[1]
        self.stats.levels(sound, made.sound)
        if self.on_input:
            self.on_input(sound)
        return self._hand_on(made, sound)

    def _hand_on(self, made: Made, sound: np.ndarray | None) -> int:
        """Records what was made, plays it (or what came in), keeps what is to be shown; returns the frames too late."""
        for name, frames in made.shown.items():
            axis = next(p.axis for p in self.chain.wiring.shown if p.name == name)
            if axis is not None and frames.shape[axis]:
                self.stats.shown[name] = frames.take(-1, axis=axis).ravel()[:64].astype(float).tolist()
        if self.on_output and made.sound.size:
            self.on_output(made.sound)
        if self.playout is None:
            return 0
        late = self.playout.put(self._mixed(made.sound, sound))
        if self.player:
            self.player.begin.set()
        return late

    def _mixed(self, wet: np.ndarray, sound: np.ndarray | None) -> np.ndarray:
        """The processed sound, or the dry one of the same time, or a way from one to the other."""
        if sound is not None:
            self._held = np.concatenate([self._held, sound], axis=1)
        count = wet.shape[1]
        dry, self._held = self._held[:, :count], self._held[:, count:]
        aim = 0.0 if self.dry else 1.0
        if (self._wetness == aim == 1.0) or dry.shape[1] < count:
            return wet
        step = 1 / (SWITCH * self.source.rate)
        ramp = np.arange(1, count + 1, dtype=np.float32) * (step if aim > self._wetness else -step)
        share = np.clip(self._wetness + ramp, min(aim, self._wetness), max(aim, self._wetness))
        if count:
            self._wetness = float(share[-1])
        return np.asarray(wet * share + dry.mean(0, keepdims=True) * (1 - share), np.float32)

    def _fitting(self, block: np.ndarray) -> np.ndarray:
        wanted = self.chain.wiring.channels
        if len(block) == wanted:
            return np.ascontiguousarray(block)
        return np.ascontiguousarray(block.mean(0, keepdims=True))

    def _lose(self, frames: int) -> None:
        """Sound was recorded and lost before it was read: silence in its place, so that what follows keeps its time."""
        count = -(-frames // self._grain) * self._grain
        self._clock.lose(count)
        self.stats.lost += count
        self.stats.frames += count
        for start in range(0, count, self.width):
            size = min(self.width, count - start)
            self._process(np.zeros((self.chain.wiring.channels, size), np.float32))

    def _drop(self, count: int) -> None:
        """The model is too slow and far behind: leaves out sound that waits, with silence for what it would become."""
        block = self._fitting(self.source.read(count).sound)
        self._clock.note(self.now(), count)
        self.stats.overflows += 1
        self.stats.lost += count
        self.stats.frames += count
        self._pushed, self._emitted = self._pushed + count, self._emitted + count
        if self.on_input:
            self.on_input(block)
        if self.on_output and self.chain.wiring.sound:
            self.on_output(np.zeros((self.chain.wiring.out_channels, count), np.float32))
        if self.playout:
            self.playout.shift(count)

    def _set_width(self, samples: int) -> None:
        """Another width, in samples of the model. A wider pulse arrives later, and is due as much later."""
        width = frames_of(samples, self.chain)
        if width != self.width:
            if self.playout:
                self.playout.shift(width - self.width)
            self.width = width
            self.stats.width_changes += 1


def frames_of(samples: int, chain: Chain) -> int:
    """Frames of the device for a pulse in samples of the model."""
    return -(-samples * chain.in_rate // chain.rate)
