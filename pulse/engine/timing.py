"""Times every kernel on one product, against what this core could do at best.

Samples of all kernels are interleaved, on one core, in buffers aligned as the engine aligns its own; the limits are
measured in the same rounds, so that a slow moment of the machine touches all alike.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from pulse.engine.isa import current, native
from pulse.engine.pick import Kernel, Layout, kernels, takes
from pulse.errors import PulseError

if TYPE_CHECKING:
    from pulse._native import Floats, Packed, Product

ROUNDS = 15
PLACEMENTS = 3  # sets of buffers taken in turn: where they lie is worth several percent to short products
SHORT = 1 << 16  # weights of products for which that is done
SAMPLE_NS = 60_000  # a sample repeats the product for about as long
GUESS = 60.0  # operations per nanosecond, for the number of repeats in the first round
LARGEST = 1 << 24  # elements of one matrix: the weights are held once per panel height
THIRD_LEVEL = 8 << 20  # bytes of weights that no second-level cache holds


@dataclass
class Timing:
    """What the kernels took for one product, in nanoseconds, and the limits; arrays of one value per round."""

    m: int
    k: int
    n: int
    isa: str
    samples: dict[str, list[float]] = field(default_factory=dict)
    peaks: list[float] = field(default_factory=list)
    bandwidths: list[float] = field(default_factory=list)

    @property
    def limit_ns(self) -> float:
        """max(2 m k n / peak, weight bytes / bandwidth), NaN where unknown.

        The peak is the best of its probes, being a constant of the core; the bandwidth is their median, for other
        programs take their share of it from the kernels too.
        """
        if not any(self.peaks):
            return math.nan
        flops, bandwidth = max(self.peaks), median(self.bandwidths)
        return max(2 * self.m * self.k * self.n / flops, 4 * self.m * self.k / bandwidth)

    def median_ns(self, kernel: str) -> float:
        """The middle of the kernel's samples."""
        return median(self.samples[kernel])

    def share(self, kernel: str) -> float:
        """The limit over the kernel's median: 1 is as fast as this core goes."""
        return self.limit_ns / self.median_ns(kernel)

    def ranked(self) -> list[str]:
        """Kernel names, the fastest first."""
        return sorted(self.samples, key=self.median_ns)


def time_product(
    m: int,
    k: int,
    n: int,
    *,
    isa: str | None = None,
    layout: Layout = "frame",
    names: Iterable[str] | None = None,
    rounds: int = ROUNDS,
    cold: bool = False,
) -> Timing:
    """Time C = relu(A B + bias) by every kernel that takes it, or by those in `names`.

    Args:
        layout: of B, see `pick`. C is written as suits the kernel: rows contiguous for nl, columns for the others.
        cold: weights rotate through copies which only the third cache level holds; without, they stay where they fit.

    Raises:
        PulseError: `usage` for sizes below 1 or beyond what a product can have.
    """
    chosen = current(isa)
    if min(m, k, n) < 1 or max(m * k, k * n, m * n) > LARGEST:
        raise PulseError(
            "usage",
            node="time",
            required=f"m, k and n of at least 1, and at most {LARGEST} elements a matrix",
            found=f"{m} x {k} x {n}",
        )
    wanted = None if names is None else set(names)
    fitting = [
        kernel for kernel in kernels(chosen) if takes(kernel, n, layout) and (wanted is None or kernel.name in wanted)
    ]
    timing = Timing(m, k, n, chosen, {kernel.name: [] for kernel in fitting})
    copies = 1
    if cold:  # as many as fill the cache, as long as going round them all takes no more than a millisecond
        copies = max(1, min(THIRD_LEVEL // (4 * m * k), int(1e6 / (2 * m * k * n / GUESS + 20))))
    with pinned():
        benches = [_Bench(m, k, n, chosen, layout, fitting, copies) for _ in range(PLACEMENTS if m * k <= SHORT else 1)]
        for index in range(rounds):
            benches[index % len(benches)].round(timing)
    return timing


@contextlib.contextmanager
def pinned() -> Iterator[None]:
    """Keep this thread on one core, the last it may use; where the system cannot, nothing happens."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def aligned(count: int) -> Floats:
    """Zeros that start at a multiple of 64 bytes."""
    raw = np.zeros(count + 16, np.float32)
    start = -raw.ctypes.data // 4 % 16
    return raw[start : start + count]


class _Bench:
    """The product in the form each kernel takes, and the buffers whose reading gives the bandwidth."""

    def __init__(self, m: int, k: int, n: int, isa: str, layout: Layout, fitting: list[Kernel], copies: int) -> None:
        random = np.random.default_rng(0)
        self.probe = isa if isa != "ref" else str(native().best_isa())  # portable code has no limit of its own
        self.operations = 2 * m * k * n
        weights = random.standard_normal((m, k), np.float32)
        packed: dict[int, Packed] = {}
        self.copies, self.rows = copies, native().Packed(weights, 1, copies)
        bias, b = aligned(m), aligned(k * n)
        bias[:], b[:] = random.standard_normal(m), random.standard_normal(k * n)
        ldb, bn = (1, k) if layout == "frame" else (n, 1)
        self.products: dict[str, Product] = {}
        for kernel in fitting:
            if kernel.panel not in packed:
                packed[kernel.panel] = native().Packed(weights, kernel.panel, copies)
            cm, cn = (n, 1) if kernel.family == "nl" else (1, m)
            self.products[kernel.name] = native().Product(
                packed[kernel.panel], b, aligned(m * n), n, ldb=ldb, bn=bn, cm=cm, cn=cn, bias=bias, act="relu"
            )

    def round(self, timing: Timing) -> None:
        """One sample of everything."""
        timing.peaks.append(native().peak_flops(self.probe))
        read = 1 + SAMPLE_NS * 50 // (self.rows.nbytes * self.copies)
        timing.bandwidths.append(self.rows.read_bandwidth(self.probe, read))
        for name, product in self.products.items():
            samples = timing.samples[name]
            expected = samples[-1] if samples else self.operations / GUESS + 20
            samples.append(product.time(name, max(self.copies, int(SAMPLE_NS / expected))))
