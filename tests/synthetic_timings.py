"""Timings made from a known formula, so that the right pick of every product is known."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence

from pulse.costmodel.cells import acceptable, cells
from pulse.costmodel.dataset import Dataset, Limits, Timed
from pulse.costmodel.shapes import Product, in_homes, sweep

from pulse.engine.pick import Kernel, kernels

Truth = Callable[[Kernel, Product], float]
CPU = "Synthetic 9000, family 1, model 1"


def truth(seed: int) -> Truth:
    """Nanoseconds by a formula: per kind of cell a random cost of beginning it and of each step; and the call."""
    draw = random.Random(seed)
    costs: dict[str, tuple[float, float]] = {}

    def ns(kernel: Kernel, product: Product) -> float:
        total = 20.0
        for part in cells(kernel, product):
            if part.kind not in costs:
                ideal = 0.27 * max(part.vectors, 4 / part.ks)
                costs[part.kind] = (ideal * draw.uniform(0.9, 1.5), draw.uniform(2, 8))
            step, start = costs[part.kind]
            total += part.count * (step * part.steps + start)
        return total

    return ns


def dataset(
    products: Iterable[Product], ns: Truth, isa: str = "v3", noise: float = 0.03, outliers: float = 0.05, seed: int = 0
) -> Dataset:
    """A data set of these products: noise that only adds, and now and then a median which an interruption spoilt."""
    draw = random.Random(seed)
    samples = [_sample(isa, product, ns, noise, outliers, draw) for product in products]
    names = [kernel.name for kernel in kernels(isa)]
    limits = {isa: Limits(flops=118.0, l2=104.0, l3=75.0, cold=30.0)}
    return Dataset(
        "synthetic.txt", "0" * 64, CPU, "2026-01-01T00:00:00Z", "0.1.0", "Linux", (32768, 1 << 20, 32 << 20),
        "rounds 9 slice_us 60 drift 0.05", 0, {isa: names}, limits, samples,
    )  # fmt: skip


def _sample(isa: str, product: Product, ns: Truth, noise: float, outliers: float, draw: random.Random) -> Timed:
    odd, even = [], []
    for kernel in kernels(isa):
        if not acceptable(kernel, product):
            odd.append(math.nan)
            even.append(math.nan)
            continue
        pair = [ns(kernel, product) * (1 + abs(draw.gauss(0, noise))) for _ in range(2)]
        if draw.random() < outliers:
            pair[draw.randrange(2)] *= draw.uniform(1.5, 6)
        if draw.random() < outliers / 3:
            pair = [value * draw.uniform(1.5, 4) for value in pair]
        odd.append(pair[0])
        even.append(pair[1])
    return Timed(isa, product, 1000.0, 0.01, 0, 0.0, 0.0, tuple(odd), tuple(even))


def products(count: int = 240, seed: int = 1, homes: Sequence[str] = ("l2",)) -> list[Product]:
    """A sweep in these homes."""
    return in_homes([*sweep(count, seed, 16), *sweep(count // 4, seed + 1, 256)], homes)
