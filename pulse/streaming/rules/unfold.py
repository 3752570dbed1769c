"""Framing: overlapping windows of the signal, taken by Gather with positions, or by STFT."""

from __future__ import annotations

import numpy as np

from pulse.errors import PulseError
from pulse.graph.ir import Node
from pulse.graph.limits import frames, grain
from pulse.streaming.context import Context
from pulse.streaming.facts import Const, Stream, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.framewise import const_ints, normal_axis, stream_of
from pulse.streaming.window import Window, slide


def unfold(ctx: Context, node: Node, data: Value, indices: Stream) -> Value:
    """Gather of frames `step*j + table` of the data: a window as wide as the table reaches, moved by `step`."""
    fact, affine = stream_of(data), indices.affine
    assert affine is not None
    table = affine.table
    low, high = int(table.min()), int(table.max())
    if affine.step < 1 or affine.step * indices.rate != fact.rate or low < 0:
        raise PulseError(
            "gather-over-stream",
            node=node.label,
            required=f"positions that move along with the signal, {fact.rate / indices.rate} frames a step",
            found=f"positions {affine.step}*j + {low}..{high}",
            remedy="frame the signal by a constant hop, counted from its start",
        )
    grain(affine.step, "a stride")
    window = Window(frames(high - low + 1, "a window"), affine.step, -low, indices.length)
    axis = normal_axis(node.attrs.get("axis", 0), len(fact.shape))
    rank = table.ndim
    shape = (*fact.shape[:axis], *indices.shape, *fact.shape[axis + 1 :])

    def run(block: str) -> str:
        return _gather(ctx, node, block, axis, indices.axis, window, table - low)

    def compute(block: np.ndarray) -> np.ndarray:
        count = (block.shape[axis] - window.extent) // window.stride + 1
        starts = (np.arange(count) * window.stride).reshape([-1 if i == indices.axis else 1 for i in range(rank)])
        windows: np.ndarray = np.take(block, starts + table - low, axis=axis)
        return windows

    # `slide` thinks of one axis before and after: the windows are on another axis than the signal was.
    return slide(ctx, data, window, 0, run, compute, shape, fact.dtype, axis + indices.axis)


def _gather(ctx: Context, node: Node, block: str, axis: int, at: int, window: Window, table: np.ndarray) -> str:
    """Windows of a block: as many as fit."""
    emit = ctx.emit

    def number(v: int) -> str:
        return emit.const(np.array(v, np.int64))

    dims = emit.node("Shape", [block], outputs=["block.shape"])[0]
    frames = emit.node("Gather", [dims, number(axis)], outputs=["block.frames"])[0]
    room = emit.node("Sub", [frames, number(window.extent - 1)], outputs=["room"])[0]
    starts = emit.node("Range", [number(0), room, number(window.stride)], outputs=["starts"])[0]
    column = emit.const(np.array([-1 if i == at else 1 for i in range(table.ndim)], np.int64))
    starts = emit.node("Reshape", [starts, column], outputs=["starts.column"])[0]
    places = emit.node("Add", [starts, emit.const(table.astype(np.int64))], outputs=["places"])[0]
    return emit.node("Gather", [block, places], {"axis": axis}, node.outputs, label=node.name)[0]


@rule("STFT")
def stft(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """Signal [batch, S, 1]; frames of the window's length every frame_step samples."""
    value = inputs[0]
    fact = stream_of(value)
    assert value is not None
    hop = (const_ints(ctx, node, inputs[1], "frame_step") or [0])[0]
    window = inputs[2] if len(inputs) > 2 else None
    size = const_ints(ctx, node, inputs[3], "frame_length") if len(inputs) > 3 else None
    if fact.axis == 0:
        return ctx.per_frame(node, inputs, 0)
    if window is not None and not isinstance(window.fact, Const):
        raise ctx.depends(node.label)
    if size is None and window is None:
        raise ctx.misfit(node, "neither a window nor a frame length")
    extent = frames(size[0] if size else int(window.fact.dims[0]), "a window")  # type: ignore[union-attr]
    if min(hop, extent) < 1:
        raise ctx.misfit(node, f"frames of {extent}, a step of {hop}")
    grain(hop, "a stride")
    length = ((fact.length - extent) // hop + 1).clamp()
    rest = list(inputs[1:])
    dtype, shape = ctx.shapes(node, inputs)[0]

    def run(block: str) -> str:
        return ctx.emit.node("STFT", [block, *(ctx.use(v) for v in rest)], node.attrs, node.outputs, label=node.name)[0]

    def compute(block: np.ndarray) -> np.ndarray:
        # onnx.reference leaves out the last frame that fits
        starts = np.arange(0, block.shape[1] - extent + 1, hop)
        frames = block.reshape(block.shape[:2])[:, starts[:, None] + np.arange(extent)]
        weights = np.ones(extent) if window is None else window.fact.value  # type: ignore[union-attr]
        spectrum = np.fft.fft(frames * weights, axis=-1)[..., : shape[2]]
        return np.stack([spectrum.real, spectrum.imag], axis=-1).astype(block.dtype)

    cut = tuple(0 if i == 1 else d for i, d in enumerate(shape))
    return [slide(ctx, value, Window(extent, hop, 0, length), 0, run, compute, cut, dtype)]
