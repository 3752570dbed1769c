"""A small canvas for plots: scales, ticks, axes with their units, and marks that name the figure they stand for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10
from typing import Literal

from pulse.report.theme import DARK, FONT, LIGHT

Anchor = Literal["start", "middle", "end"]
DIGIT = 7.6  # pixels of a character in a plot's font, about
BOLD = 7.9  # of a bold one
MARGIN = 20  # around a plot that is a file


@dataclass(frozen=True)
class Scale:
    """Values to pixels, evenly or by their logarithm."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        if self.log:
            share = (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    def ticks(self, most: int) -> list[float]:
        """Round values, at most that many: steps of 1, 2 or 5, or powers of ten."""
        if self.log:
            decades = range(ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9) + 1)
            for steps in ((1, 2, 5), (1, 3)):
                fine = [m * 10.0**d for d in range(decades.start - 1, decades.stop) for m in steps]
                inside = [v for v in fine if self.low <= v * 1.0000001 and v <= self.high * 1.0000001]
                if len(inside) <= most:
                    return inside
            return [10.0**d for d in decades]
        rough = (self.high - self.low) / most
        power = 10.0 ** floor(log10(rough))
        step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * 0.999)
        first = ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, floor(self.high / step + 1e-9) + 1)]


def room(labels: Sequence[tuple[float, str]]) -> float:
    """Pixels to the left of a vertical axis with these labels."""
    return max(max(len(label) for _, label in labels) * DIGIT + 14, 46)


def spaced(places: Sequence[float], labels: Sequence[str]) -> list[bool]:
    """Which labels of an axis are shown, from its start: those that do not touch the one before."""
    shown, end = [], -1e9
    for place, label in zip(places, labels, strict=True):
        half = len(label) * DIGIT / 2
        shown.append(place - half > end + 4)
        end = place + half if shown[-1] else end
    return shown


def ceiling(value: float) -> float:
    """The end of an axis that begins at 0: a little above the largest value."""
    return value * 1.08 if value > 0 else 1.0


@dataclass
class Canvas:
    """An SVG that grows; `title` is what a screen reader says."""

    width: float
    height: float
    title: str
    parts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Raw SVG."""
        self.parts.append(text)

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1, dash: str = "") -> None:
        """A straight line in a colour of the theme."""
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'style="stroke:var(--{colour})" stroke-width="{width}"{dashed}/>'
        )

    def path(self, points: Sequence[tuple[float, float]], colour: str, width: float = 2, dash: str = "") -> None:
        """A line through points."""
        d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(
            f'<path d="{d}" fill="none" style="stroke:var(--{colour})" stroke-width="{width}" '
            f'stroke-linejoin="round" stroke-linecap="round"{dashed}/>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        colour: str = "soft",
        anchor: Anchor = "start",
        bold: bool = False,
        size: float = 12,
        more: str = "",
        halo: bool = False,
    ) -> None:
        """A word at its baseline; with a halo where it may lie on lines."""
        weight = ' font-weight="600"' if bold else ""
        style = f"fill:var(--{colour})"
        if halo:
            style += ";stroke:var(--card)"
            weight += ' stroke-width="4" stroke-linejoin="round" paint-order="stroke"'
        self.add(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{weight} '
            f'style="{style}"{more}>{escape(text)}</text>'
        )

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        colour: str,
        radius: float = 0,
        stroke: str = "",
        more: str = "",
    ) -> None:
        """A filled box."""
        border = f";stroke:var(--{stroke});stroke-width:1.5" if stroke else ""
        self.add(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" rx="{radius}" '
            f'style="fill:var(--{colour}){border}"{more}/>'
        )

    def axis(
        self,
        scale: Scale,
        which: Literal["x", "y"],
        at: float,
        span: tuple[float, float],
        labels: Sequence[tuple[float, str]],
    ) -> None:
        """Ticks with their labels: along x at height `at`, along y at position `at`; grid lines over `span`."""
        self.add(f'<g data-axis="{which}" data-log="{int(scale.log)}">')
        for value, label in labels:
            place = scale(value)
            if which == "x":
                self.line(place, span[0], place, span[1], "line")
                self.text(place, at + 18, label, anchor="middle", more=tick(value, place))
            else:
                self.line(span[0], place, span[1], place, "line")
                self.text(at - 8, place + 4, label, anchor="end", more=tick(value, place))
        self.add("</g>")

    def finish(self, name: str) -> str:
        """The SVG as a part of a page, whose colours it takes."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" role="img" data-plot="{name}" '
            f'font-family="{escape(FONT)}"><title>{escape(self.title)}</title>{"".join(self.parts)}</svg>'
        )


def tick(value: float, place: float) -> str:
    """Attributes by which a reader of the page finds the scale."""
    return f' data-value="{value:.12g}" data-place="{place:.2f}"'


def standalone(canvas: Canvas, name: str, heading: str) -> str:
    """A plot as a file of its own, on a ground of its own: light, or dark where its viewer likes and can do that."""
    used: set[tuple[str, str]] = set()

    def plain(found: re.Match[str]) -> str:
        pairs = [rule.split(":") for rule in found[1].split(";")]
        named = [(key, value[6:-1]) for key, value in pairs if value.startswith("var(--")]
        used.update(named)
        attributes = [f'{key}="{LIGHT[name]}"' for key, name in named]
        attributes += [f'{key}="{value}"' for key, value in pairs if not value.startswith("var(--")]
        return f'class="{" ".join(f"{key}-{name}" for key, name in named)}" ' + " ".join(attributes)

    framed = Canvas(canvas.width + 2 * MARGIN, canvas.height + 3 * MARGIN, canvas.title)
    framed.rect(0, 0, framed.width, framed.height, "card", 8)
    framed.text(MARGIN, MARGIN + 6, heading)
    framed.add(f'<g transform="translate({MARGIN} {2 * MARGIN})">{"".join(canvas.parts)}</g>')
    head, end, rest = framed.finish(name).partition("</title>")
    body = re.sub(r'style="([^"]*)"', plain, rest)
    rules = "".join(f".{key}-{name}{{{key}:{DARK[name]}}}" for key, name in sorted(used))
    return f"{head}{end}<style>@media(prefers-color-scheme:dark){{{rules}}}</style>{body}\n"


def shortened(text: str, most: int) -> str:
    """At most that many characters, the middle left out."""
    if len(text) <= most:
        return text
    tail = (most - 1) * 2 // 3
    return text[: most - 1 - tail] + "…" + text[-tail:]
