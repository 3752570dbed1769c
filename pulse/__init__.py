"""pulse: full-signal ONNX audio models, live and exact."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pulse.errors import PulseError, PulseWarning

if TYPE_CHECKING:
    from pulse.engine.stream import Stream
    from pulse.model import PulsedModel, convert, load

__version__ = "0.1.0"
__all__ = ["PulseError", "PulseWarning", "PulsedModel", "Stream", "convert", "load"]

# Imported on first use: `pulse --help` must not pay for onnx.
_LAZY = {"PulsedModel": "pulse.model", "convert": "pulse.model", "load": "pulse.model", "Stream": "pulse.engine.stream"}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'pulse' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
