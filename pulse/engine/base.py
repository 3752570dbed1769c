"""What an engine is, and which ones there are."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Protocol

import numpy as np
import onnx

from pulse.errors import PulseError


class Engine(Protocol):
    """Runs the pulsed graph on one pulse."""

    name: str

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """All outputs by name, states included, for all inputs by name."""
        ...


def make_engine(name: str | None, proto: onnx.ModelProto) -> Engine:
    """The engine of that name, or by default the first one that is there."""
    if name is None:
        name = "onnxruntime" if find_spec("onnxruntime") else "reference"
    if name == "onnxruntime":
        if not find_spec("onnxruntime"):
            raise PulseError(
                "engine-missing",
                node=name,
                required="the package onnxruntime",
                found="it is not installed",
                remedy="pip install pulse-onnx[ort], or choose --engine reference",
            )
        from pulse.engine.ort import OnnxRuntimeEngine

        return OnnxRuntimeEngine(proto)
    if name == "reference":
        from pulse.engine.reference import ReferenceEngine

        return ReferenceEngine(proto)
    raise PulseError(
        "usage",
        node="engine",
        required='"onnxruntime" or "reference"',
        found=repr(name),
        remedy="choose one of them, or none for the default",
    )
