"""The arithmetic of ops that slide a window along the signal: convolutions, pooling, framing, strided slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pulse.errors import PulseError
from pulse.graph.expr import Expr
from pulse.graph.ir import Node
from pulse.graph.limits import frames, grain, numbers
from pulse.streaming.context import Context, Tail
from pulse.streaming.emit import np_type
from pulse.streaming.facts import Stream, Value
from pulse.streaming.mirror import window_over


@dataclass(frozen=True)
class Window:
    """A window along one axis: `extent` frames wide (dilation included), moved by `stride`, `before` frames of padding
    in front. `length` is that of the output."""

    extent: int
    stride: int
    before: int
    length: Expr

    def delay(self, delay: int) -> int:
        """Output delay for an input delay: frame j is ready when input frame j*stride - before + extent - 1 is in."""
        return -((self.before - delay - self.extent) // self.stride) - 1

    def history(self, delay: int) -> int:
        """Input frames kept between pulses; negative: frames to drop from the front of each pulse."""
        return self.delay(delay) * self.stride + self.before - delay

    def reads_past_end(self, length: Expr) -> bool:
        """Whether the last output frame reads input frames past the end."""
        over = (self.length - 1) * self.stride + self.extent - self.before - length
        signals = self.length.trials()
        return bool((over.at(signals)[self.length.at(signals) > 0] > 0).any())


def slide(
    ctx: Context,
    value: Value,
    window: Window,
    fill: Any,
    run: Callable[[str], str],
    compute: Callable[[np.ndarray], np.ndarray],
    shape: tuple[int, ...],
    dtype: int,
    axis: int | None = None,
) -> Value:
    """The streaming form of a window op: `run` emits it without padding on the stream axis, `compute` evaluates it.

    `fill` is what padding reads as; `shape` (0 at the stream axis) and `dtype` are those of the result, `axis` is its
    stream axis, by default that of the input.
    """
    fact = value.fact
    assert isinstance(fact, Stream)
    axis = fact.axis if axis is None else axis
    delay = window.delay(fact.delay)
    rate = fact.rate / window.stride
    if value.mirror is not None:
        seen = window_over(ctx, value, window, f"{value.name}.window")
        if seen is not None:
            return Value(Stream(dtype, shape, axis, rate, seen[1], window.length), run(seen[0]))
    start, end = window.before > 0, window.reads_past_end(fact.length)
    plain = ctx.masked(value, fill, start=start, end=False)  # made first: it may take the place of `block`
    block = ctx.masked(value, fill, start=start, end=True, tail=True) if end else plain
    name = run(ctx.history(block, fact, window.history(fact.delay), fill))
    if end:

        def matters(frames: Expr) -> bool:
            return replace(window, length=frames - delay).reads_past_end(fact.length)

        ctx.tails.append(Tail(block, plain, name, matters))
    prefix = None
    if delay < 0:
        lead = np.full(numbers(fact.block(window.before), "padding"), fill, np_type(fact.dtype))
        known = np.concatenate([lead, fact.frames(0, max(-fact.delay, 0))], axis=fact.axis)
        cut = [slice(None)] * len(shape)
        cut[axis] = slice(0, -delay)
        prefix = compute(known)[tuple(cut)]
    return Value(Stream(dtype, shape, axis, rate, delay, window.length, prefix), name)


@dataclass(frozen=True)
class Spatial:
    """Kernel geometry on all spatial axes, as lists; `pads` are (before, after) pairs."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[tuple[int, int]]

    def extent(self, i: int) -> int:
        return (self.kernel[i] - 1) * self.dilations[i] + 1

    def attrs(self, stream: int) -> dict[str, Any]:
        """Attributes of the op without padding on spatial axis `stream`."""
        pads = [(0, 0) if i == stream else p for i, p in enumerate(self.pads)]
        return {
            "kernel_shape": self.kernel,
            "strides": self.strides,
            "dilations": self.dilations,
            "pads": [p[0] for p in pads] + [p[1] for p in pads],
        }


def read_steps(node: Node, kernel: Sequence[int], n: int) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Strides, dilations and explicit pads for `n` spatial axes. Refuses what is no geometry."""
    strides = list(node.attrs.get("strides", [1] * n))
    dilations = list(node.attrs.get("dilations", [1] * n))
    flat = list(node.attrs.get("pads", [0] * (2 * n)))
    counts = [len(kernel), len(strides), len(dilations), len(flat) / 2]
    told = node.attrs.get("kernel_shape", kernel)
    if (
        any(c != n for c in counts)
        or list(told) != list(kernel)
        or min(*kernel, *strides, *dilations) < 1
        or min(flat, default=0) < 0
    ):
        raise Context.misfit(
            node, f"kernel {list(kernel)}, strides {strides}, dilations {dilations}, pads {flat} for {n} axes"
        )
    for size, step, spread in zip(kernel, strides, dilations, strict=True):
        frames((size - 1) * spread + 1, "a window")
        grain(step, "a stride")
    for pad in flat:
        frames(pad, "padding")
    return strides, dilations, [(flat[i], flat[i + n]) for i in range(n)]


def read_spatial(ctx: Context, node: Node, fact: Stream, kernel: Sequence[int]) -> Spatial:
    """The geometry of a Conv or pooling node over a stream, automatic padding made explicit."""
    n = len(fact.shape) - 2
    strides, dilations, pads = read_steps(node, kernel, n)
    auto = node.attrs.get("auto_pad", "NOTSET")
    if auto == "VALID":
        pads = [(0, 0)] * n
    elif auto not in ("NOTSET", "SAME_UPPER", "SAME_LOWER"):
        raise ctx.misfit(node, f"auto_pad `{auto}`")
    elif auto != "NOTSET":
        for i in range(n):
            extent, stride = (kernel[i] - 1) * dilations[i] + 1, strides[i]
            if i + 2 == fact.axis:
                total = _same_stream(ctx, node, fact, extent, stride)
            else:
                size = fact.shape[i + 2]
                total = max((-(-size // stride) - 1) * stride + extent - size, 0)
            small, large = total // 2, total - total // 2
            pads[i] = (small, large) if auto == "SAME_UPPER" else (large, small)
    return Spatial(list(kernel), strides, dilations, pads)


def _same_stream(ctx: Context, node: Node, fact: Stream, extent: int, stride: int) -> int:
    """SAME padding along the signal: with a stride it depends on the length's remainder."""
    if stride == 1:
        return extent - 1
    last = min(64 * ctx.promise * stride, ctx.promise << 20)
    remainders = fact.length.at(np.arange(ctx.promise, last + 1, ctx.promise)) % stride
    if remainders.min() != remainders.max():
        raise PulseError(
            "same-padding-stride",
            node=node.label,
            required=f"a length whose remainder by {stride} is known: SAME padding with a stride depends on it",
            found=f"length {fact.length}",
            remedy=f"promise --length-multiple-of {stride * fact.rate.denominator}, or export with explicit pads",
        )
    remainder = int(remainders[0])
    return max(extent - (remainder or stride), 0)
