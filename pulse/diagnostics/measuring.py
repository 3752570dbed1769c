"""Diagnostics of kernels, timings and the cost model."""

from __future__ import annotations

from pulse.diagnostics.entry import Diagnostic

TITLE = "Kernels and the cost model"
ENTRIES = (
    Diagnostic(
        "shapes-invalid",
        2,
        what="a line in the list of products cannot be understood",
        why="Each line is one product to be timed: M K N, the layout of the data, the activation, and where the "
        "weights come from.",
        example="64x384x1",
        remedy="Write lines such as `64 384 1 frame none l3`; lines that begin with # are comments.",
    ),
)
