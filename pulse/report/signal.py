"""Sound as the signal that a sweep feeds to a model, through a front end where the model needs one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pulse.errors import PulseError
from pulse.live.audiofile import open_audio
from pulse.live.chain import features_of
from pulse.live.logmel import MelBands
from pulse.live.resample import Resampler
from pulse.live.spec import LogMel, Stft, parse
from pulse.live.stft import Analysis
from pulse.live.wiring import wire
from pulse.model import PulsedModel

MOST_SECONDS = 30


def from_sound(
    model: PulsedModel, path: Path, front: str | None, rate: int | None
) -> tuple[dict[str, np.ndarray], float]:
    """The inputs of `model` for the first half minute of a sound file, and milliseconds per source frame.

    Args:
        front: description of the front end, None for the waveform itself.
        rate: the model's rate in Hz, by default the file's.

    Raises:
        PulseError: file-not-found, bad-audio-file, frontend-mismatch, channels-mismatch, rate-unsupported.
    """
    spec = parse(front)
    wiring = wire(model.inputs, model.outputs, spec)
    file = open_audio(path)
    sound = next(iter(file.blocks(MOST_SECONDS * file.rate)), np.zeros((file.channels, 0), np.float32))
    if wiring.channels == 1:
        sound = sound.mean(0, keepdims=True, dtype=np.float32)
    elif wiring.channels != len(sound):
        required = f"{wiring.channels} channels, as the model's input `{wiring.source.name}`"
        raise PulseError("channels-mismatch", node=str(path), required=required, found=str(len(sound)))
    at = rate or file.rate
    if at != file.rate:
        sound = Resampler(file.rate, at, len(sound)).push(np.ascontiguousarray(sound))
    if isinstance(spec, Stft):
        frames = features_of(Analysis(spec).push(sound[0]), spec.features)
    elif isinstance(spec, LogMel):
        frames = MelBands(spec, at).push(sound[0])
    else:
        frames = sound[0] if wiring.channels == 1 else sound.T
    packed = wiring.into.pack(np.ascontiguousarray(frames, np.float32))
    return wiring.constants | {wiring.source.name: packed}, 1000 * (spec.hop if spec else 1) / at
