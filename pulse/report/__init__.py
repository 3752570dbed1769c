"""What a model costs live: sweeps over pulse widths, their figures and their report.

`pulse.report.sweep(...)` measures and returns the figures of `pulse sweep --json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pulse.report.sweeping import sweep as sweep

__all__ = ["sweep"]


def __getattr__(name: str) -> object:
    if name == "sweep":  # imported on first use, as all that needs onnx
        from importlib import import_module

        return import_module("pulse.report.sweeping").sweep
    raise AttributeError(f"module 'pulse.report' has no attribute {name!r}")
