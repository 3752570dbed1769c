"""The models that the native engine must run, and random signals for them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from published import GRAPHS

from pulse.manifest import Port
from pulse.model import PulsedModel, convert

ROOT = Path(__file__).parents[1]
BUNDLED = ("enc", "fsmn", "kws_tcn", "lookahead", "spectral_gate", "unet")
NAMES = (*(f"models/{n}" for n in BUNDLED), *(f"shared/{n}" for n in GRAPHS))


def path_of(name: str, shared: Path | None) -> Path:
    """The file of one of `NAMES`; skips the test where the published models are missing."""
    kind, _, rest = name.partition("/")
    if kind == "models":
        return ROOT / "models" / f"{rest}.onnx"
    if shared is None:
        pytest.skip("no published models here: set PULSE_SHARED to the folder that holds them")
    return shared / "models" / f"{rest}.onnx"


@cache
def source(path: Path) -> onnx.ModelProto:
    return onnx.load(path)


@cache
def pulsed(path: Path, width: int | str) -> PulsedModel:
    """The model at a width given in granules, or dynamic."""
    dynamic = convert(path, "dynamic")
    return dynamic if isinstance(width, str) else convert(path, width * dynamic.granularity)


def noise(ports: list[Port], frames: int, seed: int = 0, scale: float = 1.0) -> dict[str, np.ndarray]:
    """A random signal of `frames` source frames."""
    random = np.random.default_rng(seed)
    shapes = {p.name: [p.frames(frames) if i == p.axis else int(d) for i, d in enumerate(p.shape)] for p in ports}
    return {name: scale * random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def cut(ports: list[Port], signal: dict[str, np.ndarray], start: int, stop: int) -> dict[str, np.ndarray]:
    """Source frames [start, stop) of a signal, contiguous."""
    parts = {}
    for p in ports:
        index = [slice(None)] * signal[p.name].ndim
        index[p.axis or 0] = slice(p.frames(start), p.frames(stop))
        parts[p.name] = np.ascontiguousarray(signal[p.name][tuple(index)])
    return parts
