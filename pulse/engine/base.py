"""What an engine is, and which ones there are."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from pulse.errors import PulseError

if TYPE_CHECKING:
    from pulse.model import PulsedModel


class Engine(Protocol):
    """Runs the pulsed graph on one pulse."""

    name: str

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """All outputs by name, states included, for all inputs by name."""
        ...


@runtime_checkable
class Holder(Protocol):
    """An engine that keeps the state itself: its `run` takes and gives no states."""

    name: str
    most: int  # source frames of the widest pulse worth a program of its own
    widths: list[int]  # pulses it is ready for

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """All outputs by name for all inputs by name, states left out."""
        ...

    def try_pulse(self, inputs: dict[str, np.ndarray], width: int) -> dict[str, np.ndarray] | None:
        """As `run` for a pulse of `width` source frames; None, and nothing done, where the arrays do not fit."""
        ...

    def bind(self, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> tuple[Any, int]:
        """Checks the arrays of one pulse. Something whose `step(inputs, outputs, length)` runs it, and its width."""
        ...

    def reset(self) -> None:
        """The states of a stream's start."""
        ...

    def export(self) -> dict[str, np.ndarray]:
        """A copy of the states, by the names of their inputs."""
        ...

    def load(self, states: Mapping[str, np.ndarray]) -> None:
        """Takes over states that an engine exported or a stream kept."""
        ...


WEIGHTS = ("f32", "bf16")  # what the native engine can store large weights in


def make_engine(name: str | None, model: PulsedModel, weights: str = "f32") -> Engine | Holder:
    """The engine of that name; by default native where it covers the model, else the first other one that is there.

    `weights` other than "f32" are the native engine's alone: no other takes its place.
    """
    proto = model.proto
    if weights not in WEIGHTS:
        raise PulseError("usage", node="weights", required='"f32" or "bf16"', found=repr(weights))
    if weights != "f32" and name not in (None, "native"):
        raise PulseError(
            "usage",
            node="weights",
            required=f'the native engine, which alone stores weights as "{weights}"',
            found=f"the engine {name!r}",
            remedy="leave out either of the two",
        )
    if name in (None, "native"):
        from pulse.engine.native.compile import compiled
        from pulse.engine.native.engine import NativeEngine

        try:
            return NativeEngine(compiled(model, weights))
        except PulseError as error:
            if name == "native" or weights != "f32" or error.code not in ("engine-unsupported", "engine-missing"):
                raise
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
        required='"native", "onnxruntime" or "reference"',
        found=repr(name),
        remedy="choose one of them, or none for the default",
    )
