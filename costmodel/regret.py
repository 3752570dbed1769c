"""Regret: what a choice of kernel costs over the best there is; 1 is the best.

The best is chosen on the odd rounds and both are read off the even ones, so that a lucky round flatters nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from pulse.costmodel.dataset import Timed
from pulse.costmodel.shapes import Product

FLOOR = 300.0  # ns; shorter products are dominated by their call


@dataclass(frozen=True)
class Regret:
    """One product: the kernel chosen, the best, what they took (ns) and the ratio."""

    product: Product
    chosen: int
    best: int
    chosen_ns: float
    best_ns: float

    @property
    def ratio(self) -> float:
        return self.chosen_ns / self.best_ns


def regret_of(sample: Timed, chosen: int, floor: float = FLOOR) -> Regret | None:
    """The regret of a choice, by its place in the list of kernels; None where even the best takes less than `floor`."""
    best = int(np.nanargmin(sample.odd))
    if sample.even[best] < floor:
        return None
    return Regret(sample.product, chosen, best, sample.even[chosen], sample.even[best])


def regrets(samples: Iterable[Timed], choose: Callable[[Timed], int], floor: float = FLOOR) -> list[Regret]:
    """Regrets of a way to choose, over all products of at least `floor` ns."""
    return [found for s in samples if (found := regret_of(s, choose(s), floor)) is not None]


@dataclass(frozen=True)
class Summary:
    """Over some products: their number, mean regret, 9th decile and worst."""

    count: int
    mean: float
    p90: float
    worst: float

    def as_dict(self) -> dict[str, float]:
        return {"count": self.count, "mean": _short(self.mean), "p90": _short(self.p90), "worst": _short(self.worst)}


def summary(found: Iterable[float]) -> Summary:
    """The summary of these ratios; NaN where there are none."""
    values = np.array(list(found))
    if not len(values):
        return Summary(0, math.nan, math.nan, math.nan)
    return Summary(len(values), float(values.mean()), float(np.quantile(values, 0.9)), float(values.max()))


def by_width(found: Iterable[Regret]) -> dict[str, list[Regret]]:
    """Regrets by the width n: 1, 2, 3 and 4 by themselves, then 5-8, 9-16 and wider."""
    classes: dict[str, list[Regret]] = {}
    for item in sorted(found, key=lambda item: item.product.n):
        n = item.product.n
        name = str(n) if n <= 4 else "5-8" if n <= 8 else "9-16" if n <= 16 else "17 and more"
        classes.setdefault(name, []).append(item)
    return classes


def by_shape(found: Iterable[Regret]) -> dict[str, list[Regret]]:
    """Regrets by the shape of the weights: few rows, and then by how much of a cache they fill."""
    names = ("m <= 16", "weights <= 32 KiB", "weights <= 512 KiB", "weights beyond")
    classes: dict[str, list[Regret]] = {name: [] for name in names}
    for item in found:
        size = item.product.weight_bytes
        place = 0 if item.product.m <= 16 else 1 if size <= 32 << 10 else 2 if size <= 512 << 10 else 3
        classes[names[place]].append(item)
    return {name: items for name, items in classes.items() if items}


def _short(value: float) -> float:
    return round(value, 4)
