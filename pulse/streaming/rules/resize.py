"""Resize (and Upsample) along the signal by a whole factor: each frame repeated, or one in so many kept."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from pulse.errors import PulseError
from pulse.graph.expr import Expr
from pulse.graph.ir import Node
from pulse.graph.limits import grain
from pulse.streaming.context import Context
from pulse.streaming.facts import Const, Value
from pulse.streaming.rules import Inputs, rule
from pulse.streaming.rules.framewise import normal_axis, stream_of
from pulse.streaming.window import Window, slide


@rule("Resize")
def resize(ctx: Context, node: Node, inputs: Inputs) -> list[Value]:
    """Other axes are resized frame by frame; along the signal only nearest-neighbour by a whole factor is exact."""
    value = inputs[0]
    fact = stream_of(value)
    assert value is not None
    factors = _factors(ctx, node, inputs)
    along = factors[fact.axis]
    rest = [float(f) if i != fact.axis else 1.0 for i, f in enumerate(factors)]
    if any(f != 1 for f in rest):
        scales = Value(Const.of(np.array(rest, np.float32)), f"{node.outputs[0]}.scales")
        attrs = {k: v for k, v in node.attrs.items() if k not in ("axes", "keep_aspect_ratio_policy")}
        if attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize":
            raise _refuse(node, "crops")
        run = Node("Resize", ["x", "", "scales"], node.outputs, attrs, node.name)
        value = ctx.per_frame(run, [value, None, scales], fact.axis)[0]
    if along == 1:
        return [value]
    return [_along_stream(ctx, node, value, along)]


def _factors(ctx: Context, node: Node, inputs: Inputs) -> list[Fraction]:
    """Growth of every axis."""
    fact = stream_of(inputs[0])
    rank = len(fact.shape)
    axes = [normal_axis(a, rank) for a in node.attrs.get("axes") or range(rank)]
    out = [Fraction(1)] * rank
    scales = inputs[2] if len(inputs) > 2 else None
    sizes = inputs[3] if len(inputs) > 3 else None
    if node.attrs.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise _refuse(node, "a kept aspect ratio")
    if scales is not None and isinstance(scales.fact, Const) and scales.fact.value.size:
        for axis, scale in zip(axes, scales.fact.value.reshape(-1), strict=True):
            out[axis] = _ratio(ctx, node, scale)
    elif sizes is not None and isinstance(sizes.fact, Const):
        for axis, size in zip(axes, sizes.fact.value.reshape(-1), strict=True):
            size = size if isinstance(size, Expr) else Expr.of(int(size))
            if axis != fact.axis:
                out[axis] = Fraction(int(size), fact.shape[axis])
                continue
            if size.constant:
                raise _refuse(node, f"a fixed size of {size} frames")
            out[axis] = size.slope / fact.length.slope
            ctx.same_length([size, (fact.length * out[axis]).floor()], node)
    else:
        raise ctx.depends(node.label)
    return out


def _ratio(ctx: Context, node: Node, scale: object) -> Fraction:
    if isinstance(scale, Expr):
        if not scale.constant:
            raise ctx.depends(node.label)
        return scale.const
    return Fraction(float(scale)).limit_denominator(1 << 12)  # type: ignore[arg-type]


def _along_stream(ctx: Context, node: Node, value: Value, factor: Fraction) -> Value:
    fact = stream_of(value)
    if node.attrs.get("mode", "nearest") != "nearest":
        raise _refuse(node, f"mode `{node.attrs['mode']}`")
    if factor.denominator != 1 and factor.numerator != 1:
        raise _refuse(node, f"a factor of {factor}")
    grain(factor, "a factor")
    # Which frame each output frame takes must be floor(j / factor): other roundings look ahead or depend on the length.
    numbers = np.arange(12 * max(factor.numerator, factor.denominator))
    wanted = numbers * factor.denominator // factor.numerator
    if not np.array_equal(_nearest(node, numbers, factor), wanted):
        raise _refuse(node, _modes(node))
    if factor > 1:
        repeat = int(factor)
        scales = np.array([repeat if i == fact.axis else 1 for i in range(len(fact.shape))], np.float32)
        attrs = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        made = ctx.emit.node(
            "Resize", [ctx.use(value), "", ctx.emit.const(scales)], attrs, node.outputs, label=node.name
        )[0]
        prefix = None if fact.prefix is None else np.repeat(fact.prefix, repeat, axis=fact.axis)
        grown = fact.on(
            rate=fact.rate * repeat, delay=fact.delay * repeat, length=fact.length * repeat, prefix=prefix, affine=None
        )
        return Value(grown, made)
    step = factor.denominator
    ints = [ctx.emit.const(np.array([v], np.int64)) for v in (0, np.iinfo(np.int64).max, fact.axis, step)]

    def run(block: str) -> str:
        return ctx.emit.node("Slice", [block, *ints], outputs=node.outputs, label=node.name)[0]

    def compute(block: np.ndarray) -> np.ndarray:
        return np.take(block, np.arange(0, block.shape[fact.axis], step), axis=fact.axis)

    return slide(ctx, value, Window(1, step, 0, fact.length // step), 0, run, compute, fact.shape, fact.dtype)


def _nearest(node: Node, numbers: np.ndarray, factor: Fraction) -> np.ndarray:
    """Source frame of each output frame, by the formulas of the ONNX operator."""
    scale = float(factor)
    mode = node.attrs.get("coordinate_transformation_mode", "half_pixel")
    if mode == "asymmetric":
        places = numbers / scale
    elif mode in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric"):
        places = (numbers + 0.5) / scale - 0.5
    else:
        raise _refuse(node, _modes(node))
    rounding = node.attrs.get("nearest_mode", "round_prefer_floor")
    if rounding == "floor":
        return np.maximum(np.floor(places), 0)
    if rounding == "ceil":
        return np.ceil(places)
    if rounding == "round_prefer_ceil":
        return np.floor(places + 0.5)
    return np.maximum(np.ceil(places - 0.5), 0)


def _modes(node: Node) -> str:
    mode = node.attrs.get("coordinate_transformation_mode", "half_pixel")
    return f"coordinates `{mode}`, rounding `{node.attrs.get('nearest_mode', 'round_prefer_floor')}`"


def _refuse(node: Node, found: str) -> PulseError:
    return PulseError(
        "resize-mode",
        node=node.label,
        required="nearest-neighbour resizing of the signal by a whole factor, in which frame j is source frame "
        "floor(j/factor)",
        found=found,
        remedy="use mode `nearest` with `asymmetric` coordinates and `floor` rounding, or a transposed convolution",
    )
