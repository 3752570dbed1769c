"""A stream: frames in, frames that became known out, any number at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pulse.engine.arrays import check_pulse, pulse_width
from pulse.engine.base import Holder, make_engine
from pulse.engine.failure import busy
from pulse.engine.feeds import Feeds
from pulse.errors import PulseError
from pulse.manifest import Port
from pulse.streaming.emit import np_type

if TYPE_CHECKING:
    from pulse.model import PulsedModel

Arrays = np.ndarray | Mapping[str, np.ndarray]
MOST = 4096  # source frames that a dynamic model takes at once, so that a long push stays small in memory


@dataclass(frozen=True)
class Snapshot:
    """Everything a stream keeps, copied."""

    states: dict[str, np.ndarray]
    feeds: dict[str, Any]
    consumed: int
    emitted: dict[str, int]
    ended: bool


class Stream:
    """One signal through a pulsed model.

    `push` and `flush` return a dict from output name to the frames that became known: joined along the stream axis they
    are exactly what the full-signal model gives for the whole signal.
    """

    def __init__(
        self, model: PulsedModel, engine: str | None = None, filler: float = 0.0, weights: str = "f32"
    ) -> None:
        """`filler` is what stands in for frames past the end; the outputs do not depend on it."""
        self.model = model
        self._info = model.info
        self._engine = make_engine(engine, model, weights)
        self._holder = self._engine if isinstance(self._engine, Holder) else None
        self._filler = filler
        self._sides = any(p.axis is None for p in self._info.inputs)
        # Source frames after which no output has frames before the signal in it any more.
        self._lead = max(-(-p.delay * p.rate.denominator // p.rate.numerator) for p in self._info.outputs)
        self.reset()

    def __repr__(self) -> str:
        return f"<Stream of {self._info.source_name}, pulse {self._info.pulse}, engine {self.engine}>"

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return self._engine.name

    def reset(self) -> None:
        """Back to the start, also after flush."""
        self._bound: Any = None  # what runs `step` on the arrays it had last
        self._stepped = self._stride = 0  # pulses of `_stride` frames run so and not yet counted
        self._states: dict[str, np.ndarray] = {}  # where the engine does not hold them
        if self._holder is not None:
            self._holder.reset()
        else:
            self._states = {s.input: np.zeros(s.shape, np_type(s.dtype)) for s in self._info.states}
        self._feeds = Feeds(self._info.inputs)
        self._consumed = 0
        self._ended = False

    def push(self, data: Arrays, *, raw: bool = False) -> dict[str, np.ndarray]:
        """Takes any number of frames; what does not fill a pulse waits for the next push.

        Args:
            data: an array per input (or one array if there is one input), the stream axis of any length. Inputs
                without a stream axis are needed once; later the latest value counts.
            raw: return the pulses as they are, frames before the signal included.
        """
        self._check_open()
        quick = self._whole_pulse(data, raw)
        if quick is not None:
            return quick
        self._bound = None
        self._feeds.add(data, self._width() if raw else 1)
        parts = []
        while (width := self._next_width()) > 0:
            parts.append(self._run(self._feeds.take(width), width, 0, raw))
        return self._joined(parts)

    def step(self, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> None:
        """One pulse into the caller's arrays, raw: frames before the signal are included.

        With the native engine nothing is allocated once these very arrays have been used before.

        Args:
            inputs: an array per input, one pulse long; outputs: an array per output of the pulse's shape, written to.
        """
        try:
            if self._bound is not None and self._bound.step(inputs, outputs, 0):
                self._stepped += 1
                return
        except ValueError:
            raise busy() from None
        self._check_open()
        if self._feeds.frames():
            raise PulseError(
                "frames-mismatch",
                node="step",
                required="no frames that wait for a whole pulse",
                found=f"{self._feeds.frames()} frames",
                remedy="use either `push` or `step`, or push whole pulses",
            )
        if self._holder is not None:
            runner, width = self._holder.bind(inputs, outputs)
            try:
                ran = runner.run_on(inputs, outputs, 0)
            except ValueError:
                raise busy() from None
            if not ran:
                raise AssertionError("arrays that native code refuses and the checks do not")
            self._bound, self._stride, self._stepped = runner, width, 1
            return
        width = pulse_width(inputs, self._info)
        check_pulse(inputs, self._info.inputs, width)
        check_pulse(outputs, self._info.outputs, width, written=True)
        self._feeds.add(inputs)
        results = self._run(self._feeds.take(width), width, 0, True)
        for name, array in results.items():
            outputs[name][...] = array

    def _settle(self) -> None:
        """Counts the pulses that `step` ran."""
        if self._stepped:
            self._consumed += self._stepped * self._stride
            self._stepped = 0

    def flush(self) -> dict[str, np.ndarray]:
        """The signal has ended: the frames that remain. Only `reset` and `restore` are possible afterwards."""
        self._check_open()
        self._bound = None
        total = self._consumed + self._feeds.frames()
        multiple = self._info.length_multiple
        if total % multiple:
            raise PulseError(
                "length-illegal",
                node="flush",
                required=f"a signal whose length is a multiple of {multiple}: the source model takes no other",
                found=f"{total} frames",
                remedy=f"push {multiple - total % multiple} more frames (of silence, say) before flush",
            )
        parts = []
        while self._remaining(total):
            width = self._flush_width(total)
            feeds = self._feeds.take(width, self._filler)
            parts.append(self._run(feeds, width, total or -1, False))
        self._ended = True
        out = self._joined(parts)
        for port in self._info.outputs:
            surplus = self._known(port) - int(port.length.at(total))
            if surplus > 0:
                index = [slice(None)] * len(port.shape)
                index[port.axis or 0] = slice(0, max(out[port.name].shape[port.axis or 0] - surplus, 0))
                out[port.name] = out[port.name][tuple(index)]
        return out

    def snapshot(self) -> Snapshot:
        """A copy of everything the stream keeps."""
        self._settle()
        held = self._states if self._holder is None else self._holder.export()
        states = {k: v.copy() for k, v in held.items()}
        emitted = {p.name: p.frames(self._consumed) for p in self._info.outputs}
        return Snapshot(states, self._feeds.snapshot(), self._consumed, emitted, self._ended)

    def restore(self, snapshot: Snapshot) -> None:
        """Goes back to a snapshot of this model, of whatever width it was taken."""
        if not isinstance(snapshot, Snapshot):
            raise PulseError(
                "snapshot-mismatch",
                node="restore",
                required="what snapshot of this model returned",
                found=type(snapshot).__name__,
                remedy="keep the object that snapshot returns; it can be copied and pickled",
            )
        wanted = {s.input: (s.shape, np_type(s.dtype)) for s in self._info.states}
        found = {k: (v.shape, v.dtype) for k, v in snapshot.states.items()}
        if wanted != found or set(snapshot.emitted) != {p.name for p in self._info.outputs}:
            raise PulseError(
                "snapshot-mismatch",
                node="restore",
                required="a snapshot of the same model",
                found="one with other states",
                remedy="restore only what snapshot of this model returned",
            )
        self._bound, self._stepped = None, 0
        if self._holder is not None:
            self._holder.load(snapshot.states)
        else:
            self._states = {k: v.copy() for k, v in snapshot.states.items()}
        self._feeds.restore(snapshot.feeds)
        self._consumed, self._ended = snapshot.consumed, snapshot.ended

    # -- widths --------------------------------------------------------------------------------------------------
    def _width(self) -> int:
        return self._info.granularity if self._info.pulse == "dynamic" else int(self._info.pulse)

    def _next_width(self) -> int:
        """Frames that the next pulse can take from what waits; 0 if there are too few."""
        waiting = self._feeds.frames()
        if self._info.pulse != "dynamic":
            return self._width() if waiting >= self._width() else 0
        return self._fitting(waiting)

    def _fitting(self, frames: int) -> int:
        """The widest pulse of a dynamic model within so many frames."""
        step = self._info.granularity
        return min(frames, self._most()) // step * step

    def _most(self) -> int:
        """Source frames that a dynamic model takes at once."""
        most = MOST if self._holder is None else self._holder.most
        return max(most, self._info.granularity)

    def _flush_width(self, total: int) -> int:
        if self._info.pulse != "dynamic":
            return self._width()
        step = self._info.granularity
        wanted = max(
            -(-(int(p.length.at(total)) + p.delay - p.frames(self._consumed)) * p.rate.denominator // p.rate.numerator)
            for p in self._info.outputs
        )
        width = -(-min(max(wanted, 1), self._most()) // step) * step
        if self._holder is not None:  # a wider pulse costs less than making a program for the tail alone
            width = min((w for w in self._holder.widths if w >= width), default=width)
        return width

    def _known(self, port: Port) -> int:
        """Frames of an output that have left, or would have: those before the signal do not count."""
        return max(port.frames(self._consumed) - port.delay, 0)

    def _remaining(self, total: int) -> bool:
        return any(self._known(p) < int(p.length.at(total)) for p in self._info.outputs)

    # -- running -------------------------------------------------------------------------------------------------
    def _run(self, feeds: dict[str, np.ndarray], width: int, length: int, raw: bool) -> dict[str, np.ndarray]:
        feeds = {**feeds, **self._states}
        if self._info.length:
            feeds[self._info.length] = np.array(length, np.int64)
        results = self._engine.run(feeds)
        self._check_frames(results, width)
        if self._states:
            self._states = {s.input: results[s.output] for s in self._info.states}
        return self._counted(results, width, raw)

    def _check_frames(self, results: Mapping[str, np.ndarray], width: int) -> None:
        """An artefact that gives other frames than its manifest says might never come to its end."""
        for port in self._info.outputs:
            wanted = tuple(port.frames(width) if i == port.axis else d for i, d in enumerate(port.shape))
            if results[port.name].shape != wanted:
                raise PulseError(
                    "manifest-invalid",
                    node=port.name,
                    required=f"shape {wanted}, as the manifest says",
                    found=f"shape {results[port.name].shape}",
                    remedy="convert the source model again",
                )

    def _whole_pulse(self, data: Arrays, raw: bool) -> dict[str, np.ndarray] | None:
        """The outputs if `data` is exactly one pulse which the engine can take as it is: the short way through push."""
        if self._holder is None or self._sides or self._feeds.waits():
            return None
        ports = self._info.inputs
        arrays: dict[str, Any] = data if isinstance(data, dict) else {ports[0].name: data} if len(ports) == 1 else {}
        array, axis = arrays.get(ports[0].name), ports[0].axis
        if not isinstance(array, np.ndarray) or axis is None or array.ndim <= axis:
            return None
        width, rest = divmod(array.shape[axis] * ports[0].rate.denominator, ports[0].rate.numerator)
        whole = self._fitting(width) if self._info.pulse == "dynamic" else self._width()
        if rest or not width or width != whole:
            return None
        self._settle()
        results = self._holder.try_pulse(arrays, width)
        return None if results is None else self._counted(results, width, raw)

    def _counted(self, results: Mapping[str, np.ndarray], width: int, raw: bool) -> dict[str, np.ndarray]:
        """The outputs of a pulse, without frames before the signal unless they are wanted raw."""
        before = self._consumed
        self._consumed += width
        if raw or before >= self._lead:
            return {p.name: results[p.name] for p in self._info.outputs}
        out = {}
        for port in self._info.outputs:
            block, axis = results[port.name], port.axis or 0
            early = min(max(port.delay - port.frames(before), 0), block.shape[axis])
            if early:
                block = block[tuple(slice(early, None) if a == axis else slice(None) for a in range(block.ndim))]
            out[port.name] = block
        return out

    def _joined(self, parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        out = {}
        for port in self._info.outputs:
            axis = port.axis or 0
            if not parts:
                shape = [0 if i == axis else int(d) for i, d in enumerate(port.shape)]
                out[port.name] = np.zeros(shape, np_type(port.dtype))
            else:
                blocks = [p[port.name] for p in parts]
                out[port.name] = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=axis)
        return out

    def _check_open(self) -> None:
        self._settle()
        if self._ended:
            raise PulseError(
                "use-after-flush",
                node="stream",
                required="a stream that has not been flushed",
                found="one that has",
                remedy="call reset() to begin another signal",
            )
