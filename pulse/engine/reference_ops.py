"""Operators of onnx.reference that need mending, as replacements it accepts."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_conv_transpose import ConvTranspose as _Plain

from pulse.engine.reference_recurrent import REPAIRED as RECURRENT


class ConvTranspose(_Plain):
    """The grouped form, which onnx.reference gets wrong or fails at: one group at a time."""

    op_domain = ""

    def _run(  # type: ignore[override]
        self, X: np.ndarray, W: np.ndarray, B: np.ndarray | None = None, **attrs: Any
    ) -> tuple[np.ndarray]:
        group = attrs.pop("group", None) or 1
        width, made = X.shape[1] // group, W.shape[1]
        parts = []
        for g in range(group):
            bias = None if B is None else B[g * made : (g + 1) * made]
            x, w = X[:, g * width : (g + 1) * width], W[g * width : (g + 1) * width]
            parts.append(super()._run(x, w, bias, group=1, **attrs)[0])  # type: ignore[no-untyped-call]
        return (np.concatenate(parts, axis=1),)


class LRN(OpRun):
    """onnx.reference counts channels by the batch and takes four axes only."""

    op_domain = ""

    def _run(self, x: np.ndarray, **attrs: Any) -> tuple[np.ndarray]:
        size, channels = attrs["size"], x.shape[1]
        square, before = np.square(x), (size - 1) // 2
        sums = [square[:, max(c - before, 0) : c - before + size].sum(axis=1) for c in range(channels)]
        scale = attrs["bias"] + attrs["alpha"] / size * np.stack(sums, axis=1)
        return ((x / scale ** attrs["beta"]).astype(x.dtype),)


class LpNormalization(OpRun):
    """onnx.reference divides by the sum of the numbers, not of their sizes, where p is 1."""

    op_domain = ""

    def _run(self, x: np.ndarray, **attrs: Any) -> tuple[np.ndarray]:
        axis, p = attrs.get("axis"), attrs.get("p")
        size = np.linalg.norm(x, ord=2 if p is None else p, axis=-1 if axis is None else axis, keepdims=True)
        return (np.divide(x, size, out=np.zeros_like(x), where=size != 0),)


class DequantizeLinear(OpRun):
    """The form of opsets 10 to 18, which onnx.reference has lost."""

    op_domain = ""

    def _run(
        self, x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None = None, **attrs: int | None
    ) -> tuple[np.ndarray]:
        axis = attrs.get("axis")
        if scale.ndim:
            column = [-1 if a == (1 if axis is None else axis) % x.ndim else 1 for a in range(x.ndim)]
            scale, zero = scale.reshape(column), None if zero is None else zero.reshape(column)
        moved = x.astype(np.int64) - (0 if zero is None else zero.astype(np.int64))
        return ((moved.astype(scale.dtype) * scale).astype(scale.dtype),)


def repaired(opset: int) -> list[type[OpRun]]:
    """What a ReferenceEvaluator for that opset takes as `new_ops`."""
    return [ConvTranspose, LRN, LpNormalization, *RECURRENT, *([DequantizeLinear] if opset < 19 else [])]
