"""Products as the cost model sees them: dimensions, how they lie in memory, where their weights come from."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pulse.errors import PulseError

LAYOUTS = ("frame", "taps", "channel", "conv", "turn")
ACTS = ("none", "relu", "leaky", "prelu", "sigmoid", "tanh")
HOMES = ("l2", "l3", "cold")
NARROW, WIDE = (45, 10, 20, 15, 10), (15, 5, 40, 30, 10)  # how often a swept product has each layout
LARGEST_FLOPS = 2**25  # of a swept product: a third of a millisecond on one core of today
LARGEST_WEIGHTS = 2**21  # values


@dataclass(frozen=True, order=True)
class Product:
    """C (m, n) = act(A (m, k) * B (k, n) + bias), A being the weights.

    Attributes:
        layout: how B and C lie. "frame": columns contiguous in both, as in linear and recurrent layers; "taps": the
            same, B addressed by offsets, as in 1-D convolutions; "channel": rows contiguous in both, as in 2-D
            convolutions; "conv": the same by offsets; "turn": as conv, but columns of C contiguous, as before a linear
            layer.
        act: the activation in the store.
        home: where the weights come from: "l2", the nearest cache that holds this product's; "l3", the one that holds
            a whole model's; "cold", memory, as after a pause.
    """

    m: int
    k: int
    n: int
    layout: str = "frame"
    act: str = "none"
    home: str = "l3"

    @property
    def by_frames(self) -> bool:
        """Whether columns of B are contiguous."""
        return self.layout in ("frame", "taps")

    @property
    def offsets(self) -> bool:
        """Whether B is addressed by offsets."""
        return self.layout in ("taps", "conv", "turn")

    @property
    def scattered(self) -> bool:
        """Whether rows of C are contiguous, so that lanes along m must be turned."""
        return self.layout in ("channel", "conv")

    @property
    def flops(self) -> int:
        return 2 * self.m * self.k * self.n

    @property
    def weight_bytes(self) -> int:
        """Bytes of A without padding."""
        return 4 * self.m * self.k

    def __str__(self) -> str:
        return f"{self.m} {self.k} {self.n} {self.layout} {self.act} {self.home}"

    @staticmethod
    def parse(text: str) -> Product:
        """The inverse of `str`. Raises ValueError where it is malformed."""
        m, k, n, layout, act, home = text.split()
        found = Product(int(m), int(k), int(n), layout, act, home)
        if min(found.m, found.k, found.n) < 1 or layout not in LAYOUTS or act not in ACTS or home not in HOMES:
            raise ValueError(text)
        return found


def sweep(count: int, seed: int, widest: int = 512) -> list[Product]:
    """`count` different products, m, k and n log-uniform (m, k to 2048, n to `widest`), home l2.

    Half of the m and k are multiples of 8, as networks have them. Columns wider than 16 come from 2-D convolutions, so
    most of those have contiguous rows.
    """
    draw = random.Random(seed)
    found: dict[Product, None] = {}
    while len(found) < count:
        m, k = (_natural(_log_uniform(draw, 2048), draw) for _ in range(2))
        n = _log_uniform(draw, widest)
        layout = draw.choices(LAYOUTS, NARROW if n <= 16 else WIDE)[0]
        product = Product(m, k, n, layout, home="l2")
        if product.flops <= LARGEST_FLOPS and m * k <= LARGEST_WEIGHTS:
            found[product] = None
    return list(found)


def _log_uniform(draw: random.Random, most: int) -> int:
    """A whole number from 1 to `most`, each octave as likely as another."""
    return int(math.exp(draw.uniform(0, math.log(most + 1))))


def _natural(size: int, draw: random.Random) -> int:
    return max(8, round(size / 8) * 8) if size > 4 and draw.random() < 0.5 else size


def in_homes(products: Iterable[Product], homes: Iterable[str]) -> list[Product]:
    """Each product once per home, in random order of products so that an unfinished run covers all kinds alike."""
    wanted = tuple(homes)
    return [replace(product, home=home) for product in products for home in wanted]


def write_list(products: Iterable[Product]) -> str:
    """The text that `pulse-gather` reads."""
    return "# M K N LAYOUT ACT HOME\n" + "".join(f"{product}\n" for product in products)


def read_list(text: str, label: str) -> list[Product]:
    """Products of a list. Raises PulseError `shapes-invalid`."""
    return list(_read(text, label))


def _read(text: str, label: str) -> Iterator[Product]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            yield Product.parse(line)
        except ValueError:
            raise PulseError(
                "shapes-invalid",
                node=f"{label}, line {number}",
                required="M K N LAYOUT ACT HOME, for example `64 384 1 frame none l3`",
                found=line[:80],
            ) from None
