"""Sound through front end, model and inverse, as one stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from pulse.live.logmel import MelBands
from pulse.live.resample import Resampler
from pulse.live.spec import FrontEnd, LogMel, Stft
from pulse.live.stft import Analysis, Synthesis
from pulse.live.wiring import Wiring, wire

if TYPE_CHECKING:
    from pulse.model import PulsedModel

LEAST_POWER = 1e-12
"""Floor of the power before a logarithm."""


@dataclass
class Made:
    """What became known: sound `[channels, n]` and the frames of every other output."""

    sound: np.ndarray
    shown: dict[str, np.ndarray] = field(default_factory=dict)


class Chain:
    """One signal from sound to sound (or to probabilities), any number of samples at a time.

    Joined, the sound that `push` and `flush` return is what the full-signal model makes of the whole signal, sample for
    sample at the same time, and as long.

    Attributes:
        wiring: which ports take and give what.
        rate: rate of the model in Hz; `in_rate` and `out_rate` those of the sound on either side.
        hop: samples of the model's rate per source frame.
        grain: samples of the model's rate per step: a push of a multiple of it leaves nothing waiting.
    """

    def __init__(
        self,
        model: PulsedModel,
        front: FrontEnd = None,
        *,
        rate: int,
        in_rate: int | None = None,
        out_rate: int | None = None,
        engine: str | None = None,
        weights: str = "f32",
    ) -> None:
        """`rate` is the model's; sound comes at `in_rate` (by default the same) and leaves at `out_rate` (by default
        what the model gives, converted as the input was). Raises PulseError frontend-mismatch, rate-unsupported.
        """
        self.wiring: Wiring = wire(model.inputs, model.outputs, front)
        self.rate, self.in_rate = rate, in_rate or rate
        self._front = front
        self._stream = model.stream(engine=engine, weights=weights)
        self._multiple = int(model.info.length_multiple * self.wiring.source.rate)
        self.engine = self._stream.engine
        self.hop = front.hop if front else 1
        self.grain = (model.granularity if model.pulse == "dynamic" else int(model.pulse)) * self.hop
        sound, source = self.wiring.sound, self.wiring.source
        ratio = sound.rate / source.rate if sound and not front else Fraction(1)
        made_at = int(rate * ratio)
        self.out_rate = out_rate or int(self.in_rate * ratio)
        self._before = None if self.in_rate == rate else Resampler(self.in_rate, rate, self.wiring.channels)
        back = sound is not None and made_at != self.out_rate
        self._after = Resampler(made_at, self.out_rate, self.wiring.out_channels) if back else None
        self._analysis = Analysis(front) if isinstance(front, Stft) else None
        self._bands = MelBands(front, rate) if isinstance(front, LogMel) else None
        self._synthesis = Synthesis(front) if isinstance(front, Stft) and sound else None
        self.reset()

    def reset(self) -> None:
        """Back to the start of a signal."""
        self._stream.reset()
        for piece in (self._before, self._after, self._analysis, self._bands, self._synthesis):
            if piece is not None:
                piece.reset()
        if self.wiring.constants:
            self._stream.push(self.wiring.constants | {self.wiring.source.name: self._no_frames()})
        self._spectra = self._analysis.none() if self._analysis and self._synthesis else None
        self._taken = self._given = self._frames = 0

    def delay(self, outputs: Sequence[str] | None = None) -> Fraction:
        """Seconds by which what is known lags behind what was pushed, as long as whole grains of the model are pushed.

        Of the sound where there is any, else of the slowest output (of those named).
        """
        source, sound = self.wiring.source, self.wiring.sound
        ports = [sound] if sound else [p for p in self.wiring.shown if not outputs or p.name in outputs]
        frames = max((p.delay * source.rate / p.rate for p in ports), default=Fraction(0))
        samples = frames * self.hop + (self._front.size - self._front.hop if self._front else 0)
        lags = sum((piece.lag for piece in (self._before, self._after) if piece), Fraction(0))
        if self._before or self._after:  # the rates do not meet in whole grains: up to one grain waits
            samples += self.grain - 1
        return samples / self.rate + lags

    def push(self, sound: np.ndarray) -> Made:
        """Takes `[channels, n]` of float32 at `in_rate`."""
        self._taken += sound.shape[1]
        return self._through(self._before.push(sound) if self._before else sound)

    def flush(self) -> Made:
        """The signal has ended: what remains. Only `reset` is possible afterwards."""
        given = self._given
        parts = [self._through(self._before.flush())] if self._before else []
        if self._analysis or self._bands:
            parts.append(self._features((self._analysis or self._bands).flush()))  # type: ignore[union-attr]
        if self._frames % self._multiple:  # a length the model does not take: silence up to one it does, cut off below
            parts.append(self._silence(self._multiple - self._frames % self._multiple))
        parts.append(self._come(self._stream.flush()))
        if self._after:
            parts.append(Made(self._after.flush()))
        sound = np.concatenate([part.sound for part in parts], axis=1)
        if self.wiring.sound:  # a denoiser may round the length up to its hop
            sound = sound[:, : max(-(-self._taken * self.out_rate // self.in_rate) - given, 0)]
        shown = {
            port.name: np.concatenate([p.shown[port.name] for p in parts if port.name in p.shown], axis=port.axis)
            for port in self.wiring.shown
        }
        return Made(sound, shown)

    def _through(self, sound: np.ndarray) -> Made:
        if self._analysis or self._bands:
            return self._features((self._analysis or self._bands).push(sound[0]))  # type: ignore[union-attr]
        return self._run(sound[0] if self.wiring.channels == 1 else sound.T)

    def _features(self, frames: np.ndarray) -> Made:
        if isinstance(self._front, Stft):
            if self._spectra is not None:
                self._spectra = np.concatenate([self._spectra, frames])
            frames = features_of(frames, self._front.features)
        return self._run(frames)

    def _run(self, frames: np.ndarray) -> Made:
        self._frames += len(frames)
        return self._come(self._stream.push({self.wiring.source.name: self.wiring.into.pack(frames)}))

    def _silence(self, rows: int) -> Made:
        """What the model makes of so many more frames, of silence."""
        if self._analysis:
            nothing = self._analysis.none()
            return self._features(np.zeros((rows, *nothing.shape[1:]), nothing.dtype))
        if isinstance(self._front, LogMel):
            quiet = np.zeros(self._front.size + rows * self._front.hop, np.float32)
            return self._features(MelBands(self._front, self.rate).push(quiet)[:rows])
        return self._through(np.zeros((self.wiring.channels, rows), np.float32))

    def _come(self, outputs: dict[str, np.ndarray]) -> Made:
        shown = {port.name: outputs[port.name] for port in self.wiring.shown}
        if self.wiring.sound is None or self.wiring.out_of is None:
            return Made(np.zeros((0, 0), np.float32), shown)
        frames = self.wiring.out_of.unpack(outputs[self.wiring.sound.name])
        if self._synthesis and self._spectra is not None:
            count = len(frames)
            spectra, self._spectra = self._spectra[:count], self._spectra[count:]
            sound = self._synthesis.push(applied(frames, spectra, self._front))[None]
        else:
            sound = frames.T if frames.ndim == 2 else frames[None]
        sound = self._after.push(sound) if self._after else np.ascontiguousarray(sound)
        self._given += sound.shape[1]
        return Made(sound, shown)

    def _no_frames(self) -> np.ndarray:
        port = self.wiring.source
        return np.zeros([0 if i == port.axis else int(d) for i, d in enumerate(port.shape)], np.float32)


def features_of(spectra: np.ndarray, kind: str) -> np.ndarray:
    """`[frames, bins]` of complex as the features a model takes, float32; "ri" gives a last axis of two."""
    if kind == "ri":
        return np.ascontiguousarray(spectra).view(np.float32).reshape(*spectra.shape, 2)
    features: np.ndarray = np.abs(spectra)
    if kind != "mag":
        features = np.maximum(features**2, LEAST_POWER)
    if kind == "logpower":
        return np.asarray(np.log(features))
    return np.asarray(np.log10(features)) if kind == "log10power" else features


def applied(frames: np.ndarray, spectra: np.ndarray, front: FrontEnd) -> np.ndarray:
    """What the model gave, as spectra: its own, or those of the input under its mask or with its magnitude."""
    output = front.output if isinstance(front, Stft) else None
    if frames.ndim == 3:
        own: np.ndarray = np.ascontiguousarray(frames, np.float32).view(np.complex64)[..., 0]
        return np.asarray(own * spectra) if output == "complex-mask" else own
    if output == "magnitude":
        spectra = spectra / np.maximum(np.abs(spectra), 1e-12)
    return np.asarray(spectra * frames)
