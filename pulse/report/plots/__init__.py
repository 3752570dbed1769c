"""The plots of a sweep, each drawn by Python as SVG for a wide page and for a narrow one.

A plot is a function `(figures, width) -> Canvas`, or None where the figures have nothing to show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pulse.report.plots.distribution import distribution
from pulse.report.plots.families import families
from pulse.report.plots.kernels import kernels
from pulse.report.plots.latency import latency
from pulse.report.svg import Canvas

WIDE, NARROW = 760, 330
PLOTS: dict[str, Callable[[dict[str, Any], int], Canvas | None]] = {
    "latency": latency,
    "families": families,
    "kernels": kernels,
    "distribution": distribution,
}
