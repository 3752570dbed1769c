"""What every layer shares: lengths as functions of the signal's length, values, the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

Draw = Callable[..., Any]  # Hypothesis' draw

MAX_FEATURES = 48  # static elements per frame: keeps nets small enough to run hundreds of them
MAX_NEED = 40  # frames below which a net may be illegal
MAX_GRANULARITY = 12


class Invalid(Exception):
    """The layer does not fit the value it was given."""


class Length:
    """Frames of a value as a function of the source's frames `S`."""

    def __init__(self, at: Callable[[int], int]) -> None:
        self.at = at

    def then(self, step: Callable[[int], int]) -> Length:
        """This length after an op that maps length to length."""
        return Length(lambda s: step(self.at(s)))


@dataclass(frozen=True)
class Value:
    """A float32 tensor with one stream axis.

    Attributes:
        dims: its shape, -1 at the stream axis.
        layout: one letter per dim: N batch of 1, S stream, C and F features.
        rate: frames per source frame, remainders aside.
    """

    name: str
    dims: tuple[int, ...]
    layout: str
    length: Length
    rate: Fraction

    @property
    def axis(self) -> int:
        return self.layout.index("S")

    @property
    def features(self) -> int:
        """Static elements per frame."""
        product = 1
        for dim in self.dims:
            product *= abs(dim)
        return product

    def size(self, letter: str) -> int:
        return self.dims[self.layout.index(letter)]


class Layer:
    """One problem step. `apply` adds its nodes to a builder; `draw` draws one that may fit.

    Attributes:
        hides: the output may not depend on all it formally reads (a maximum, a selection), so that measured delays
            may be smaller than any honest declaration.
        weight: how often it is drawn.
        reference: whether onnx.reference runs its ops as the standard says.
    """

    hides: ClassVar[bool] = False
    weight: ClassVar[int] = 2
    reference: ClassVar[bool] = True

    def apply(self, b: Any, x: Value) -> Value:
        raise Invalid

    @classmethod
    def draw(cls, draw: Draw, b: Any, x: Value) -> Layer:
        raise Invalid


LAYERS: list[type[Layer]] = []


def layer(cls: type[Layer]) -> type[Layer]:
    """Registers a frozen dataclass as a layer the strategy may draw."""
    LAYERS.append(cls)
    return cls


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)
