"""One width on one engine: pulses back to back, and in real time, by the call that a live program makes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from pulse.errors import PulseError
from pulse.manifest import Port
from pulse.model import PulsedModel
from pulse.streaming.emit import np_type

POOL_FRAMES = 2048  # source frames of signal that are cut into pulses ahead of time
POOL_PULSES = 64
WARM_UP = 5  # pulses, uncounted, after something else has run
LATE = 2.0  # a paced stretch that takes this many times its length is given up: the width does not keep up
clock = time.perf_counter_ns


@dataclass(frozen=True)
class Visit:
    """A stretch of pulses back to back: microseconds of each; nanoseconds of all, on the wall and in this thread."""

    times: list[float]
    wall_ns: int
    cpu_ns: int


@dataclass
class Bench:
    """A stream, pulses to feed to it, and the times they took.

    Timed is `Stream.step`, into and out of the same arrays each time; what a pulse consists of is copied there before.

    Attributes:
        hot_us, paced_us: microseconds per pulse of `pulse` source frames, a list per round.
        inputs, outputs: the arrays of a step.
    """

    model: PulsedModel
    pulse: int
    engine: str | None
    signal: Mapping[str, np.ndarray]
    weights: str = "f32"
    hot_us: list[list[float]] = field(default_factory=list)
    paced_us: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stream = self.model.stream(engine=self.engine, weights=self.weights)
        self.pulses = cut(self.model.inputs, self.signal, self.pulse)
        self.inputs = {name: array.copy() for name, array in self.pulses[0].items()}
        self.outputs = {
            port.name: np.zeros(_shape(port, self.pulse), np_type(port.dtype)) for port in self.model.outputs
        }
        self._next = 0
        self._warm_up()

    @property
    def hot(self) -> list[float]:
        """All times back to back, in microseconds."""
        return [t for part in self.hot_us for t in part]

    @property
    def paced(self) -> list[float]:
        """All times in real time, in microseconds."""
        return [t for part in self.paced_us for t in part]

    def run_hot(self, seconds: float, most: int) -> Visit:
        """Back to back: for that long or that many pulses, at least 3. Whether it counts is for the caller to say."""
        self._warm_up()
        times: list[float] = []
        cpu, begin = time.thread_time_ns(), clock()
        end = begin + int(seconds * 1e9)
        while len(times) < 3 or (len(times) < most and clock() < end):
            times.append(self.step())
        return Visit(times, clock() - begin, time.thread_time_ns() - cpu)

    def run_paced(self, pulses: int, period_ms: float) -> None:
        """A round in real time: that many pulses, one every `period_ms`, asleep in between."""
        times: list[float] = []
        self.paced_us.append(times)
        period = int(period_ms * 1e6)
        begin = clock()
        due = begin + period
        give_up = begin + int(LATE * period * (pulses + 2))
        for index in range(pulses + 1):
            wait = due - clock()
            if wait > 0:
                time.sleep(wait / 1e9)
            due = max(due + period, clock())  # a pulse that came late does not hurry the next
            took = self.step()
            if index:  # the first follows other work
                times.append(took)
                if clock() > give_up:
                    break

    def step(self) -> float:
        """Runs the next pulse; microseconds that it took."""
        for name, array in self.pulses[self._next % len(self.pulses)].items():
            np.copyto(self.inputs[name], array)
        self._next += 1
        start = clock()
        self.stream.step(self.inputs, self.outputs)
        return (clock() - start) / 1e3

    def feeds(self) -> dict[str, np.ndarray]:
        """A pulse as an engine takes it: with states, at the start of a signal."""
        info = self.model.info
        feeds = dict(self.pulses[0])
        feeds |= {state.input: np.zeros(state.shape, np_type(state.dtype)) for state in info.states}
        return feeds | ({info.length: np.array(0, np.int64)} if info.length else {})

    def _warm_up(self) -> None:
        for _ in range(WARM_UP):
            self.step()


def _shape(port: Port, width: int) -> list[int]:
    return [port.frames(width) if i == port.axis else int(d) for i, d in enumerate(port.shape)]


def cut(ports: list[Port], signal: Mapping[str, np.ndarray], width: int) -> list[dict[str, np.ndarray]]:
    """The signal as pulses of `width` source frames, begun anew where it ends; inputs that do not stream are in each.

    Raises PulseError `frames-mismatch` for a signal without a frame.
    """
    moving = [port for port in ports if port.axis is not None]
    frames = min(int(Fraction(signal[p.name].shape[p.axis or 0]) / p.rate) for p in moving)
    if frames < 1:
        raise PulseError(
            "frames-mismatch",
            node=", ".join(p.name for p in moving),
            required="at least one source frame",
            found="none",
            remedy="give a longer recording",
        )
    count = max(min(POOL_PULSES, min(frames, POOL_FRAMES) // width), 1)
    constants = {p.name: signal[p.name] for p in ports if p.axis is None}
    pulses = []
    for index in range(count):
        pulse = dict(constants)
        for port in moving:
            array, axis = signal[port.name], port.axis or 0
            span = np.arange(port.frames(index * width), port.frames((index + 1) * width))
            pulse[port.name] = np.ascontiguousarray(array.take(span % port.frames(frames), axis=axis))
        pulses.append(pulse)
    return pulses
