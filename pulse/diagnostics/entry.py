"""What one diagnostic consists of."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Diagnostic:
    """One row of the table behind `pulse explain` and docs/diagnostics.md.

    Attributes:
        code: kebab-case name, as in `PulseError.code`.
        exit_status: 1 when the answer to what was asked is no (the model cannot stream, the stream differs);
            2 when the command, a file or an array is at fault.
        what: one sentence without a full stop, which also heads the error message.
        why: why it cannot be done, or why it matters.
        example: a line or two in which it happens.
        remedy: what to do.
    """

    code: str
    exit_status: int
    what: str
    why: str
    example: str
    remedy: str

    def as_dict(self) -> dict[str, str | int]:
        """The fields as in `pulse explain --json`."""
        return asdict(self)
