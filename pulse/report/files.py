"""Writing what a sweep found: the page, the spreadsheet, the plots; each whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pulse.errors import PulseError
from pulse.model import write_atomically
from pulse.report.html import render
from pulse.report.plots import PLOTS, WIDE
from pulse.report.spreadsheet import as_csv
from pulse.report.svg import standalone
from pulse.targets import file_target


def write(
    figures: dict[str, Any], html: Path | None = None, csv: Path | None = None, plots: Path | None = None
) -> list[Path]:
    """Writes the files asked for, the plots into a folder as `NAME.svg`; returns their paths.

    Raises PulseError output-unwritable.
    """
    texts: dict[Path, str] = {}
    if html is not None:
        texts[html] = render(figures)
    if csv is not None:
        texts[csv] = as_csv(figures)
    if plots is not None:
        drawn = {name: draw(figures, WIDE) for name, draw in PLOTS.items()}
        isa = f" ({figures['isa']})" if figures["isa"] else ""
        heading = f"{figures['model']} · {figures['cpu']}{isa} · {figures['machine']['date'][:10]}"
        texts |= {plots / f"{name}.svg": standalone(c, name, heading) for name, c in drawn.items() if c is not None}
    for path, text in texts.items():
        write_atomically(path, text.encode())
    return list(texts)


def check_writable(html: Path | None, csv: Path | None, plots: Path | None) -> None:
    """Finds out before a long measurement, rather than after it, that a file could not be written.

    Raises PulseError output-unwritable.
    """
    try:
        if plots is not None:
            plots.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PulseError("output-unwritable", node=str(plots), found=error.strerror or str(error)) from error
    for path in (html, csv):
        if path is not None and not (folder := file_target(path).parent).is_dir():
            found = f"no folder {folder}"
            raise PulseError("output-unwritable", node=str(path), required="a file that can be written", found=found)
