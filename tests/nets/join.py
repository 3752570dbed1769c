"""Branches of different delays and rates, joined."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hypothesis import strategies as st

from nets import forms
from nets.base import Draw, Invalid, Layer, Value, layer
from nets.builder import Builder
from nets.layout import arrange

JOINS = ("Add", "Add", "Mul", "Concat", "Concat", "Sub", "Max", "Where", "Sum")
FITS = ("crop_end", "crop_start", "pad_end", "pad_start", "crop_to")


@layer
@dataclass(frozen=True)
class Branch(Layer):
    """Paths from one value, joined on [1, C, S] after rates and lengths are made equal.

    Attributes:
        paths: the layers of each path; an empty one is a skip connection.
        join: how they come together; all but Concat first bring every path to the same channels.
        up: slower paths are up-sampled to the fastest, or faster ones decimated to the slowest.
        fit: what is done where lengths differ.
    """

    paths: tuple[tuple[Layer, ...], ...]
    join: str = "Add"
    up: bool = True
    fit: str = "crop_end"

    weight = 10

    @property
    def hides(self) -> bool:  # type: ignore[override]
        nothing = self.join == "Sub" and len(set(self.paths)) < len(self.paths)
        return nothing or self.join in ("Max", "Where") or any(step.hides for path in self.paths for step in path)

    def apply(self, b: Builder, x: Value) -> Value:
        ends = [arrange(b, b.run(path, x), "NCS") for path in self.paths]
        target = max(e.rate for e in ends) if self.up else min(e.rate for e in ends)
        ends = [_to_rate(b, e, target) for e in ends]
        ends = _to_length(b, ends, self.fit)
        if self.join == "Concat":
            channels = sum(e.size("C") for e in ends)
            return b.value(ends[0], b.op("Concat", *(e.name for e in ends), axis=1), (1, channels, -1))
        ends = [_to_channels(b, e, ends[0].size("C")) for e in ends]
        names = [e.name for e in ends]
        if self.join == "Where":
            return b.value(ends[0], b.op("Where", b.op("Greater", names[0], b.scalar(0.1)), names[-1], names[-2]))
        if self.join in ("Max", "Sum"):
            return b.value(ends[0], b.op(self.join, *names))
        result = names[0]
        for name in names[1:]:
            result = b.op(self.join, result, b.op("Tanh", name) if self.join == "Mul" else name)
        return b.value(ends[0], result)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value, depth: int = 0) -> Branch:
        from nets.strategy import draw_path  # they draw each other

        count = draw(st.sampled_from([2, 2, 2, 3]))
        longest = 3 - depth
        paths = tuple(draw_path(draw, b, x, draw(st.integers(0, longest)), depth + 1)[0] for _ in range(count))
        return cls(paths, draw(st.sampled_from(JOINS)), draw(st.booleans()), draw(st.sampled_from(FITS)))


def _to_rate(b: Builder, x: Value, target: Fraction) -> Value:
    factor = target / x.rate
    if factor == 1:
        return x
    if factor.denominator == 1:
        by = factor.numerator
        how = str(b.style.choice(["resize", "transposed"]))
        length = x.length.then(lambda n: n * by)
        if how == "resize":
            y = b.op("Resize", x.name, b.const([], "f4"), b.const([1, 1, by], "f4"), mode="nearest",
                     coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
        else:
            c = x.size("C")
            y = b.op("ConvTranspose", x.name, b.weight(c, c, by, fan=c), b.bias(c), strides=[by])
        return b.value(x, y, length=length, rate=target)
    if factor.numerator == 1:
        by = factor.denominator
        y = forms.slice_(b, x.name, 2, 0, forms.BIG, by)
        return b.value(x, y, length=x.length.then(lambda n: -(-n // by)), rate=target)
    raise Invalid("rates have no whole ratio")


def _to_length(b: Builder, ends: list[Value], fit: str) -> list[Value]:
    shortest = longest = ends[0]
    for e in ends[1:]:
        shortest = e if b.legal() and e.length.at(60 * b.multiple) < shortest.length.at(60 * b.multiple) else shortest
        longest = e if e.length.at(60 * b.multiple) > longest.length.at(60 * b.multiple) else longest
    goal = longest if fit.startswith("pad") else shortest
    result = []
    for e in ends:
        more = b.difference(e.length, goal.length)
        if more == 0:
            result.append(e)
        elif fit == "crop_to":
            if any(e.length.at(s) < goal.length.at(s) for s in b.legal()):
                raise Invalid("neither is always the shorter")
            y = forms.slice_(b, e.name, 2, 0, forms.dim1(b, goal.name, 2))
            result.append(b.value(e, y, length=goal.length))
        elif more is None:
            raise Invalid("lengths drift apart")
        elif fit.startswith("crop"):
            at = (more, forms.BIG) if fit == "crop_start" else (0, -more)
            result.append(b.value(e, forms.slice_(b, e.name, 2, *at), length=goal.length))
        else:
            pads = (-more, 0) if fit == "pad_start" else (0, -more)
            if max(pads) > 12:
                raise Invalid("a silly pad")
            result.append(b.value(e, forms.pad(b, e.name, 3, 2, *pads, "constant", 0.5), length=goal.length))
    return result


def _to_channels(b: Builder, x: Value, channels: int) -> Value:
    if x.size("C") == channels:
        return x
    w = b.weight(channels, x.size("C"), 1, fan=x.size("C"))
    return b.value(x, b.op("Conv", x.name, w, b.bias(channels), kernel_shape=[1]), (1, channels, -1))


@layer
@dataclass(frozen=True)
class Gate(Layer):
    """Squeeze and excitation of each frame: a mean over channels, through a sigmoid, broadcast back."""

    keep: bool = True

    def apply(self, b: Builder, x: Value) -> Value:
        x = arrange(b, x, "NCS")
        mean = forms.reduce(b, "ReduceMean", x.name, [1], int(self.keep))
        if not self.keep:
            mean = forms.unsqueeze(b, mean, 1)
        return b.value(x, b.op("Mul", x.name, b.op("Sigmoid", b.op("Add", mean, b.scalar(0.5)))))

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Gate:
        return cls(draw(st.booleans()))
