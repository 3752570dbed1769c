"""How large a stream's parts may be. What asks for more is a mistake in the file, or no stream worth having."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import prod

MOST_FRAMES = 1 << 22  # of delay, padding or one window: over four minutes of sound at 16 kHz
MOST_NUMBERS = 1 << 27  # in one state, prefix or constant made at conversion: half a gigabyte of float32
MOST_GRAIN = 1 << 18  # frames that belong together, and frames in a pulse: five seconds at 48 kHz


class TooLarge(ValueError):
    """A size beyond the limits; the walk turns it into `state-too-large`."""

    def __init__(self, required: str, found: str) -> None:
        self.required, self.found = required, found
        super().__init__(f"{found}: more than {required}")


def frames(count: int, what: str) -> int:
    """The count, if it is within the limits."""
    if abs(count) > MOST_FRAMES:
        raise TooLarge(f"{what} of at most {MOST_FRAMES} frames", f"{what} of {count} frames")
    return count


def numbers(shape: Iterable[int], what: str) -> tuple[int, ...]:
    """The shape, if an array of it is within the limits."""
    dims = tuple(shape)
    if prod(dims) > MOST_NUMBERS:
        raise TooLarge(f"{what} of at most {MOST_NUMBERS} numbers", f"{what} of shape {list(dims)}")
    return dims


def grain(value: int | Fraction, what: str) -> None:
    """Checks a stride, a rate, a period."""
    part = Fraction(value)
    if max(abs(part.numerator), part.denominator) > MOST_GRAIN:
        raise TooLarge(f"{what} of at most {MOST_GRAIN} frames", f"{what} of {value}")
