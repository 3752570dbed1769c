"""The table of diagnostics behind `pulse explain`, error messages and docs/diagnostics.md.

One row per code, in small files by theme. To add one: a row in the file of its theme, and the `PulseError` that
raises it.
"""

from __future__ import annotations

from difflib import get_close_matches

from pulse.diagnostics import audio, axes, costmodel, devices, files, lengths, measuring, runtime, usage, whole_signal
from pulse.diagnostics.entry import Diagnostic

__all__ = ["CODES", "THEMES", "Diagnostic", "closest", "exit_status"]

# In the order of the documentation: from the command line inwards.
THEMES: dict[str, tuple[Diagnostic, ...]] = {
    theme.TITLE: theme.ENTRIES
    for theme in (usage, files, runtime, audio, devices, axes, whole_signal, lengths, measuring, costmodel)
}
CODES: dict[str, Diagnostic] = {entry.code: entry for entries in THEMES.values() for entry in entries}


def exit_status(code: str) -> int:
    """Exit status of a command that ends with this diagnostic: 1 or 2."""
    return CODES[code].exit_status if code in CODES else 2


def closest(name: str, count: int = 3) -> list[str]:
    """Up to `count` codes that resemble `name`, best first: by spelling, then by a word spelt alike."""
    wanted = name.lower().replace("_", "-")
    found = get_close_matches(wanted, CODES, n=count, cutoff=0.6)
    words = [word for word in wanted.split("-") if len(word) > 3]
    for cutoff in (1.0, 0.8):
        alike = [code for code in CODES if any(get_close_matches(w, code.split("-"), 1, cutoff) for w in words)]
        found += [code for code in alike if code not in found]
    return found[:count]
