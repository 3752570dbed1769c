"""Write docs/diagnostics.md from the table of diagnostics: `python docs/make_diagnostics.py`."""

from __future__ import annotations

from pathlib import Path

from pulse.diagnostics import THEMES, Diagnostic

PAGE = Path(__file__).with_name("diagnostics.md")

HEAD = """# Diagnostics

<!-- Written by docs/make_diagnostics.py from pulse/diagnostics; edit the table there. -->

Every refusal and every complaint about input has a code. `pulse explain CODE` prints its entry; `PulseError.code` holds
it in Python. Exit status 1 means that the answer to what was asked is no (the model cannot stream, the stream differs),
2 that the command, a file or an array is at fault.
"""


def page() -> str:
    """The whole page as Markdown."""
    return HEAD + "".join(
        f"\n## {title}\n" + "".join(section(entry) for entry in entries) for title, entries in THEMES.items()
    )


def section(entry: Diagnostic) -> str:
    """One entry as Markdown."""
    return (
        f"\n### {entry.code}\n\n{entry.what[:1].upper() + entry.what[1:]}. (Exit status {entry.exit_status}.)\n\n"
        f"*Why.* {entry.why}\n\n    {entry.example}\n\n*What to do.* {entry.remedy}\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
