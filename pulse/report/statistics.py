"""Times as the few numbers that describe them. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

import numpy as np
from scipy.stats import binom

BINS_PER_DECADE = 16
MOST_BINS = 96
CONFIDENCE = 0.95


def percentile(times: Sequence[float], share: float) -> float:
    """The smallest of `times` which at least `share` of them do not exceed (nearest rank).

    With fewer than 100 times the 99th percentile is therefore the largest: it never flatters.
    """
    ordered = sorted(times)
    return ordered[max(ceil(share * len(ordered) - 1e-9), 1) - 1]


def median(times: Sequence[float]) -> float:
    """The middle value, or the mean of the two."""
    return float(np.median(np.asarray(times)))


def doubt(rounds: Sequence[float]) -> float:
    """How far off the middle of rounds may be: upper end of its 95 % confidence interval over the lower, less 1.

    0.1 means that it is known within 10 %. The interval needs no distribution: its ends are the k-th least and the k-th
    largest, k by the binomial law (Conover, Practical Nonparametric Statistics, section 3.2). Of fewer than 6 rounds,
    which allow no such interval, the least and the largest.
    """
    ordered = sorted(rounds)
    inner = max(int(binom.ppf((1 - CONFIDENCE) / 2, len(ordered), 0.5)), 1) - 1 if ordered else 0
    low, high = (ordered[inner], ordered[-1 - inner]) if ordered else (0.0, 0.0)
    return high / low - 1 if low > 0 else 0.0


def edges(times: Sequence[Sequence[float]]) -> list[float]:
    """Edges of bins that all of the given times share: even steps of the logarithm, on round powers of ten."""
    low = min(min(group) for group in times)
    high = max(max(group) for group in times)
    first = floor(log10(max(low, 1e-3)) * BINS_PER_DECADE)
    last = max(ceil(log10(max(high, 1e-3)) * BINS_PER_DECADE), first + 1)
    step = -(-(last - first) // MOST_BINS)
    last = first + -(-(last - first) // step) * step
    return [10 ** (index / BINS_PER_DECADE) for index in range(first, last + step, step)]


def histogram(times: Sequence[float], bins: Sequence[float]) -> list[int]:
    """How many of `times` lie in each bin; those on the outermost edges count."""
    inside = np.clip(np.asarray(times), bins[0], bins[-1])
    return [int(count) for count in np.histogram(inside, np.asarray(bins))[0]]
