"""Layouts: transposes and reshapes that bring a value where the next layer wants it."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from nets import forms
from nets.base import Draw, Invalid, Layer, Value, layer
from nets.builder import Builder

LAYOUTS = ("NCS", "NSF", "NCSF", "NCFS", "SNF", "SF", "NSCF", "CS")


def statics(layout: str) -> str:
    return layout.replace("N", "").replace("S", "")


def arrange(b: Builder, x: Value, want: str, channels: int | None = None) -> Value:
    """`x` in layout `want`. One static letter splits into `channels` times the rest; two merge, C outside.

    Raises:
        Invalid: the features do not divide, or there is more than one and `want` has no letter for them.
    """
    x = _match_statics(b, x, want, channels)
    x = _match_batch(b, x, want)
    return transpose(b, x, want)


def transpose(b: Builder, x: Value, want: str) -> Value:
    if x.layout == want:
        return x
    perm = [x.layout.index(letter) for letter in want]
    return b.value(x, b.op("Transpose", x.name, perm=perm), [x.dims[p] for p in perm], layout=want)


def _match_statics(b: Builder, x: Value, want: str, channels: int | None) -> Value:
    have, wanted = statics(x.layout), statics(want)
    if len(have) == len(wanted):
        layout = x.layout.replace(have, wanted) if len(have) == 1 else x.layout
        return Value(x.name, x.dims, layout, x.length, x.rate)
    if len(have) == 2:
        order = "N" * ("N" in x.layout) + "SCF"
        x = transpose(b, x, order)
        if len(wanted) == 1:
            dims = (*x.dims[:-2], x.dims[-1] * x.dims[-2])
            return b.value(x, forms.reshape(b, x, dims), dims, layout=order[:-2] + wanted)
    if len(have) == 1 and len(wanted) == 2:
        c = channels or x.size(have)
        if x.size(have) % c:
            raise Invalid("channels do not divide")
        order = "N" * ("N" in x.layout) + "S" + have
        x = transpose(b, x, order)
        dims = (*x.dims[:-1], c, x.dims[-1] // c)
        return b.value(x, forms.reshape(b, x, dims), dims, layout=order[:-1] + "CF")
    if not have:
        rank = len(x.dims)
        axes = list(range(rank, rank + len(wanted)))
        dims = x.dims + (1,) * len(wanted)
        return b.value(x, forms.unsqueeze(b, x.name, *axes), dims, layout=x.layout + wanted)
    raise Invalid("features in the way")


def _match_batch(b: Builder, x: Value, want: str) -> Value:
    if ("N" in x.layout) == ("N" in want):
        return x
    if "N" in want:
        at = min(want.index("N"), len(x.dims))
        dims = (*x.dims[:at], 1, *x.dims[at:])
        return b.value(x, forms.unsqueeze(b, x.name, at), dims, layout=x.layout[:at] + "N" + x.layout[at:])
    at = x.layout.index("N")
    dims = x.dims[:at] + x.dims[at + 1 :]
    return b.value(x, forms.squeeze(b, x.name, at), dims, layout=x.layout.replace("N", ""))


@layer
@dataclass(frozen=True)
class Layout(Layer):
    """Nothing but transposes and reshapes to `to`."""

    to: str
    channels: int | None = None

    def apply(self, b: Builder, x: Value) -> Value:
        return arrange(b, x, self.to, self.channels)

    @classmethod
    def draw(cls, draw: Draw, b: Builder, x: Value) -> Layout:
        divisors = [c for c in range(1, x.features + 1) if x.features % c == 0]
        return cls(draw(st.sampled_from(LAYOUTS)), draw(st.sampled_from(divisors)))
