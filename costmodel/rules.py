"""Ways to pick without a table, to compare it with: what people do by hand."""

from __future__ import annotations

from collections.abc import Sequence

from pulse.costmodel.cells import acceptable
from pulse.costmodel.shapes import Product

from pulse.engine.pick import Kernel, cycles


def always_highest(kernels: Sequence[Kernel], product: Product) -> int:
    """The highest tile of one column, 64x1 where there is one, whatever the product."""
    fitting = [i for i, k in enumerate(kernels) if k.family == "mmm" and k.nr == 1 and k.ks == 1]
    return max(fitting, key=lambda i: kernels[i].mr)


def exact_width(kernels: Sequence[Kernel], product: Product) -> int:
    """A tile exactly as wide as n if there is one, else the widest below; the highest of those that m fills."""
    fitting = [i for i, k in enumerate(kernels) if k.family == "mmm" and k.ks == 1 and k.nr <= product.n]
    widest = max(kernels[i].nr for i in fitting)
    exact = [i for i in fitting if kernels[i].nr == widest]
    filled = [i for i in exact if kernels[i].mr <= product.m]
    return max(filled, key=lambda i: kernels[i].mr) if filled else min(exact, key=lambda i: kernels[i].mr)


def counting(kernels: Sequence[Kernel], product: Product) -> int:
    """The rule that serves without a table: the fewest cycles by counting."""
    fitting = [i for i, k in enumerate(kernels) if acceptable(k, product) and (k.family != "dot" or product.m <= 12)]
    return min(fitting, key=lambda i: cycles(kernels[i], product.m, product.k, product.n))
