"""The one exception for refusals and bad input, and the one warning.

Every diagnostic has a code from the table in `pulse.diagnostics`; `pulse explain CODE` prints what it means.
"""

from __future__ import annotations


class PulseWarning(UserWarning):
    """Something was left out or assumed; the conversion itself is exact."""


class PulseError(Exception):
    """A refusal or bad input, told in the user's terms.

    Attributes:
        code: key into `pulse.diagnostics.CODES`, e.g. `"reduce-over-stream"`.
        node: the node, value, file or option at fault, as the user knows it; "" where there is none.
        required: what must hold.
        found: what was there instead.
        remedy: what to do about it.
    """

    def __init__(self, code: str, *, node: str = "", required: str = "", found: str = "", remedy: str = "") -> None:
        self.code, self.node, self.required, self.found, self.remedy = code, node, required, found, remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        where = f" at `{self.node}`" if self.node else ""
        parts = [f"{self.code}{where}"]
        if self.required:
            parts.append(f"required: {self.required}")
        if self.found:
            parts.append(f"found: {self.found}")
        if self.remedy:
            parts.append(f"to do: {self.remedy}")
        return "\n  ".join(parts)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.code, self.node, self.required, self.found, self.remedy)

    def as_dict(self) -> dict[str, str]:
        """The fields as in `--json` output."""
        return {
            "code": self.code,
            "node": self.node,
            "required": self.required,
            "found": self.found,
            "remedy": self.remedy,
        }


def _rebuild(code: str, node: str, required: str, found: str, remedy: str) -> PulseError:
    return PulseError(code, node=node, required=required, found=found, remedy=remedy)
