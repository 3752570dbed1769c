"""What a stream was given and has not consumed yet: checked, and in step across inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pulse.engine.arrays import check_type, missing, wrong_name
from pulse.errors import PulseError
from pulse.manifest import Port
from pulse.streaming.emit import np_type


class Feeds:
    """Waiting frames per streaming input, the latest value per input without a stream axis."""

    def __init__(self, inputs: Sequence[Port]) -> None:
        self._ports = {p.name: p for p in inputs}
        self._waiting: dict[str, list[np.ndarray]] = {p.name: [] for p in inputs if p.axis is not None}
        self._latest: dict[str, np.ndarray] = {}

    def add(self, data: np.ndarray | Mapping[str, np.ndarray], whole: int = 1) -> None:
        """Checks and keeps what one push brings. Nothing is kept if anything is wrong.

        With what waits already, it must be a multiple of `whole` source frames.
        """
        arrays = self._named(data)
        checked = {n: self._check(self._ports[n], a) for n, a in arrays.items()}
        counts = {n: self._source_frames(self._ports[n], checked[n]) for n in self._waiting if n in checked}
        absent = [n for n in self._waiting if n not in checked]
        absent += [n for n, p in self._ports.items() if p.axis is None and n not in self._latest and n not in checked]
        if absent:
            remedy = "give every input that streams with every push, the others with the first"
            raise missing(absent, self._ports, checked, remedy)
        if len(set(counts.values())) > 1:
            raise PulseError(
                "frames-mismatch",
                node=", ".join(counts),
                required="the same stretch of signal in every input",
                found=", ".join(f"{n}: {c} source frames" for n, c in counts.items()),
                remedy="push as many frames of each input as its rate asks for",
            )
        waiting = self.frames() + next(iter(counts.values()))
        if waiting % whole:
            raise PulseError(
                "frames-mismatch",
                node="push",
                required=f"whole pulses of {whole} frames in raw mode",
                found=f"{waiting} frames",
                remedy="push whole pulses, or leave raw mode",
            )
        for name, array in checked.items():
            if name in self._waiting:
                self._waiting[name].append(array)
            else:
                self._latest[name] = array

    def waits(self) -> bool:
        """Whether frames wait, of however many inputs."""
        return any(self._waiting.values())

    def frames(self) -> int:
        """Source frames that wait."""
        name, blocks = next(iter(self._waiting.items()))
        port = self._ports[name]
        return int(sum(b.shape[port.axis or 0] for b in blocks) * port.rate.denominator // port.rate.numerator)

    def take(self, width: int, filler: float | None = None) -> dict[str, np.ndarray]:
        """One pulse of `width` source frames, filled up with `filler` where the signal has ended."""
        out = dict(self._latest)
        for name, blocks in self._waiting.items():
            port = self._ports[name]
            axis, frames = port.axis or 0, port.frames(width)
            empty = np.zeros([0 if i == axis else int(d) for i, d in enumerate(port.shape)], np_type(port.dtype))
            joined = np.concatenate(blocks, axis=axis) if blocks else empty
            head, rest = np.split(joined, [min(frames, joined.shape[axis])], axis=axis)
            self._waiting[name] = [rest] if rest.shape[axis] else []
            if head.shape[axis] < frames and filler is not None:
                shape = [frames - head.shape[axis] if i == axis else d for i, d in enumerate(head.shape)]
                value = filler if np.issubdtype(head.dtype, np.floating) else 0
                head = np.concatenate([head, np.full(shape, value, head.dtype)], axis=axis)
            out[name] = np.ascontiguousarray(head)
        for name, port in self._ports.items():
            if port.axis is None and name not in out:
                raise PulseError(
                    "missing-input",
                    node=name,
                    required="a value before the first pulse",
                    found="none",
                    remedy="give it with a push, of no frames if need be",
                )
        return out

    def snapshot(self) -> dict[str, Any]:
        """A copy of what waits and of the latest values."""
        return {"waiting": {n: [b.copy() for b in v] for n, v in self._waiting.items()}, "latest": dict(self._latest)}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Goes back to what `snapshot` gave."""
        self._waiting = {n: [b.copy() for b in v] for n, v in kept["waiting"].items()}
        self._latest = dict(kept["latest"])

    # -- checks --------------------------------------------------------------------------------------------------
    def _named(self, data: np.ndarray | Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        if isinstance(data, Mapping):
            for name in data:
                if name not in self._ports:
                    raise wrong_name(name, self._ports)
            return data
        if len(self._ports) != 1:
            raise PulseError(
                "missing-input",
                node=", ".join(self._ports),
                required="a dict from input name to array: the model has several inputs",
                found=type(data).__name__,
                remedy="push({name: array, ...})",
            )
        return {next(iter(self._ports)): data}

    @staticmethod
    def _check(port: Port, given: Any) -> np.ndarray:
        scalar = isinstance(given, np.generic) and not port.shape  # numpy makes such of arrays without axes
        array: np.ndarray = np.asarray(given) if scalar else given
        check_type(port, array)
        fits = array.ndim == len(port.shape) and all(
            i == port.axis or d == port.shape[i] for i, d in enumerate(array.shape)
        )
        if not fits:
            shown = ["frames" if i == port.axis else d for i, d in enumerate(port.shape)]
            raise PulseError(
                "wrong-shape",
                node=port.name,
                required=f"shape {tuple(shown)}",
                found=f"shape {array.shape}",
                remedy="one signal at a time, its frames along the stream axis",
            )
        return array.copy()

    @staticmethod
    def _source_frames(port: Port, array: np.ndarray) -> int:
        frames = array.shape[port.axis or 0]
        if frames * port.rate.denominator % port.rate.numerator:
            raise PulseError(
                "frames-mismatch",
                node=port.name,
                required=f"a multiple of {port.rate.numerator} frames, one source frame's worth",
                found=f"{frames} frames",
                remedy="push whole source frames",
            )
        return int(frames * port.rate.denominator // port.rate.numerator)
