"""What `--frontend` says, as values."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import NoReturn

import numpy as np

from pulse.errors import PulseError

FEATURES = ("ri", "mag", "power", "logpower", "log10power")
OUTPUTS = ("spectrum", "mask", "complex-mask", "magnitude")
MELS = ("htk", "slaney", "kaldi")
LOGS = ("ln", "log10", "db", "none")


@dataclass(frozen=True)
class Stft:
    """`stft:SIZE,HOP,WINDOW[,FEATURES[,OUTPUT]]`: frames of a spectrum, and sound from what the model makes of them."""

    size: int
    hop: int
    window: str
    features: str = "ri"
    output: str | None = None


@dataclass(frozen=True)
class LogMel:
    """`logmel:SIZE,HOP,BANDS[,KEY=VALUE...]`: log energies of triangular bands on the mel scale.

    Attributes:
        fmin, fmax: edges of the lowest and the highest band in Hz; fmax 0 is half the rate.
        log: "ln", "log10", "db" (10·log10) or "none".
        floor: least value before the logarithm.
        scale: what full scale 1 is multiplied with first; 32768 for models trained on 16-bit numbers.
        power: 2 for energies, 1 for magnitudes.
        mel: "htk" (2595·log10(1 + f/700)), "slaney" (linear below 1 kHz, bands of equal area) or "kaldi" (as htk, the
            triangles straight in mel rather than in Hz).
        fft: length of the transform, zeros after the frame; 0 is the frame's own.
        preemphasis: share of the sample before that is taken off each sample of a frame.
        dc: 1 to take its mean off each frame first.
    """

    size: int
    hop: int
    bands: int
    window: str = "hann"
    fmin: float = 0.0
    fmax: float = 0.0
    log: str = "ln"
    floor: float = 1e-10
    scale: float = 1.0
    power: int = 2
    mel: str = "htk"
    fft: int = 0
    preemphasis: float = 0.0
    dc: int = 0


FrontEnd = Stft | LogMel | None


def parse(text: str | None) -> FrontEnd:
    """The front end that a description names; None for the waveform itself. Raises PulseError frontend-invalid."""
    kind, _, rest = (text or "none").partition(":")
    if kind == "none" and not rest:
        return None
    words = [word.strip() for word in rest.split(",")]
    plain = [word for word in words if "=" not in word]
    try:
        if kind == "stft" and len(words) in (3, 4, 5) and len(plain) == len(words):
            return _checked_stft(text or "", Stft(int(words[0]), int(words[1]), *words[2:]))
        if kind == "logmel" and len(plain) == 3 and words[:3] == plain:
            return _checked_mel(text or "", _log_mel(words))
    except (ValueError, KeyError) as error:
        _refuse(text, str(error))
    _refuse(text, text or "nothing")


def window(name: str, size: int) -> np.ndarray:
    """A periodic analysis window by name, `[size]`. Raises KeyError."""
    phase = 2 * np.pi * np.arange(size) / size
    hann = 0.5 - 0.5 * np.cos(phase)
    shapes = {
        "hann": hann,
        "sqrt-hann": np.sqrt(hann),
        "hamming": 0.54 - 0.46 * np.cos(phase),
        "vorbis": np.sin(np.pi / 2 * np.sin(np.pi * (np.arange(size) + 0.5) / size) ** 2),
        "povey": (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / (size - 1))) ** 0.85,
        "rect": np.ones(size),
    }
    if name not in shapes:
        raise KeyError(f"window {name}; there are {', '.join(shapes)}")
    return shapes[name]


def _log_mel(words: list[str]) -> LogMel:
    given: dict[str, str] = {}
    for word in words[3:]:
        key, _, value = word.partition("=")
        given[key] = value
    kinds = {item.name: type(item.default) for item in fields(LogMel) if item.default is not MISSING}
    unknown = [key for key in given if key not in kinds]
    if unknown:
        raise KeyError(f"key {unknown[0]}; there are {', '.join(kinds)}")
    values = {key: kinds[key](value) for key, value in given.items()}
    return LogMel(int(words[0]), int(words[1]), int(words[2]), **values)


def _checked_stft(text: str, spec: Stft) -> Stft:
    _check_frames(text, spec.size, spec.hop)
    shape = window(spec.window, spec.size)
    if spec.features not in FEATURES:
        _refuse(text, f"features {spec.features}; there are {', '.join(FEATURES)}")
    if spec.output is not None and spec.output not in OUTPUTS:
        _refuse(text, f"output {spec.output}; there are {', '.join(OUTPUTS)}")
    overlap = np.pad(shape**2, (0, -spec.size % spec.hop)).reshape(-1, spec.hop).sum(0)
    if overlap.min() < 1e-6:
        _refuse(text, f"a {spec.window} window of {spec.size} every {spec.hop} samples, which leaves sound out")
    return spec


def _checked_mel(text: str, spec: LogMel) -> LogMel:
    _check_frames(text, spec.size, spec.hop)
    window(spec.window, spec.size)
    known = spec.log in LOGS and spec.mel in MELS and spec.power in (1, 2) and spec.dc in (0, 1)
    if not known or spec.bands < 2 or (spec.fft and spec.fft < spec.size):
        _refuse(text, text)
    return spec


def _check_frames(text: str, size: int, hop: int) -> None:
    if size < 2 or hop < 1 or size > 1 << 16:
        _refuse(text, f"frames of {size} every {hop} samples")
    if hop > size:
        _refuse(text, f"a hop of {hop}, longer than the window of {size}")


def _refuse(text: str | None, found: str) -> NoReturn:
    raise PulseError(
        "frontend-invalid",
        node=f"--frontend {text}",
        required="none, stft:N,HOP,WINDOW[,FEATURES[,OUTPUT]] or logmel:N,HOP,BANDS[,KEY=VALUE...]",
        found=found.strip("'\""),
    )
