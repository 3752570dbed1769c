"""Colours of the report and of its plots, light and dark. Text and lines keep 4.5:1 against what they lie on."""

from __future__ import annotations

from pulse.report.families import CALL, CONVOLUTION, ELEMENTWISE, LINEAR, MOVEMENT, NORMALISATION, RECURRENT

LIGHT = {
    "page": "#f6f5f2",
    "card": "#ffffff",
    "ink": "#1f1f1d",
    "soft": "#5d5b55",
    "line": "#e3e1db",
    "accent": "#1b5cb8",
    "on-accent": "#ffffff",
    "wash": "#e8effa",
    "other": "#a14400",
    "warn": "#8f3d00",
    "warn-wash": "#fdf0e3",
    "good": "#1d6b3a",
    "good-wash": "#e7f4eb",
    "heat-0": "#f1f4f9",
    "heat-1": "#d5e3f6",
    "heat-2": "#a9c8ee",
    "heat-3": "#2f6fc4",
    "heat-4": "#154585",
    "on-heat-low": "#1f1f1d",
    "on-heat-high": "#ffffff",
    "convolution": "#1b5cb8",
    "recurrent": "#a14400",
    "linear": "#1d6b3a",
    "normalisation": "#74399f",
    "elementwise": "#0b6375",
    "data-movement": "#7d5a00",
    "call": "#6a6862",
}
DARK = {
    "page": "#161615",
    "card": "#1f1f1d",
    "ink": "#ecebe6",
    "soft": "#aeaca4",
    "line": "#383732",
    "accent": "#82b2f5",
    "on-accent": "#10151d",
    "wash": "#202b3b",
    "other": "#f0a264",
    "warn": "#f3b27a",
    "warn-wash": "#38291b",
    "good": "#8fd3a4",
    "good-wash": "#1f3325",
    "heat-0": "#272a2f",
    "heat-1": "#22374f",
    "heat-2": "#274f7f",
    "heat-3": "#82b2f5",
    "heat-4": "#c5dcfb",
    "on-heat-low": "#ecebe6",
    "on-heat-high": "#10151d",
    "convolution": "#82b2f5",
    "recurrent": "#f0a264",
    "linear": "#8fd3a4",
    "normalisation": "#c9a0ee",
    "elementwise": "#6fcadb",
    "data-movement": "#d9bd6a",
    "call": "#a5a39b",
}
FAMILY_COLOUR = {
    name: name.replace(" ", "-")
    for name in (CONVOLUTION, RECURRENT, LINEAR, NORMALISATION, ELEMENTWISE, MOVEMENT, CALL)
}
HEAT_STEPS = (0.05, 0.10, 0.20, 0.40)  # shares of a pulse's time at which the next colour begins
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif'


def variables(colours: dict[str, str]) -> str:
    """As CSS custom properties."""
    return "".join(f"--{name}:{value};" for name, value in colours.items())


def heat(share: float | None) -> tuple[str, str]:
    """Names of the colours of a cell and of the text on it, for a share of a pulse's time."""
    step = 0 if share is None else sum(share >= limit for limit in HEAT_STEPS)
    return f"heat-{step}", "on-heat-high" if step >= 3 else "on-heat-low"
