"""What a kernel does on a product, as the numbers that its time is a weighted sum of.

Per kind of cell: `run`, the nanoseconds its steps would take if only multiply-adds counted; `wait`, those by which
reading weights and B exceeds them; `read`, those of reading weights for the first time, as far as nothing hides them;
`start`, cells begun and stored. Beside them a few terms of the whole product. The weights are what `fit` finds, and
none is negative: for a perfect cell run and wait are 1, and read is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulse.costmodel.cells import cells, panel_heights
from pulse.costmodel.dataset import Limits
from pulse.costmodel.shapes import Product

from pulse.engine.pick import LANES, Kernel

Features = dict[str, float]
CHAIN = {"v2": 12, "v3": 8, "v4": 4, "neon": 8}  # multiply-adds that could start while one waits for its sum


@dataclass(frozen=True)
class Machine:
    """The limits and the cache sizes (bytes) that features are reckoned with."""

    limits: Limits
    l1: int
    l2: int

    @property
    def near(self) -> int:
        """Bytes that stay in the first level while a product runs."""
        return self.l1 * 3 // 4


def prior(name: str) -> float:
    """What a weight is taken for where nothing was measured, and what it is drawn to where little was."""
    kind = name.split(" ")[0]
    return {"run": 1.0, "wait": 1.0, "start": 4.0}.get(kind, 0.0)


def features(kernel: Kernel, product: Product, machine: Machine) -> Features:
    """The features by name: "run KIND LAYOUT MAIN", likewise "start", "wait KIND", "read KIND"; terms per family."""
    p, most, lanes = product, machine.limits, LANES[kernel.isa]
    fma = 2 * lanes / most.flops
    chain = CHAIN[kernel.isa] * fma
    parts = cells(kernel, p)
    heights = panel_heights(kernel.panel, p.m)
    whole, b_bytes, c_bytes = 4 * sum(heights) * p.k, 4 * p.k * p.n, 4 * p.m * p.n
    home = _home_bandwidth(machine, p.home, whole, b_bytes)
    b_far = b_bytes > machine.near
    found: Features = {}

    def add(name: str, value: float) -> None:
        if value:
            found[name] = found.get(name, 0.0) + value

    for part in parts:
        step = max(fma * part.vectors, chain / part.ks, fma * part.loads / 2)
        b = part.b / most.l2 if b_far else 0.0
        again = part.a / _level(machine, part.again + min(b_bytes, machine.l1 // 4))
        waits = part.fresh * max(0.0, part.a / home + b - step)
        waits += (part.count - part.fresh) * max(0.0, again + b - step)
        # With one column the two layouts are the same code.
        tags = f"{part.kind} {'frame' if p.n == 1 or p.by_frames else 'channel'} {'main' if part.main else 'rest'}"
        add(f"run {tags}", part.count * part.steps * step)
        add(f"start {tags}", part.count)
        add(f"wait {part.kind}", part.steps * waits)
        add(f"read {part.kind}", part.steps * part.fresh * part.a / home)
    family = kernel.family
    add(f"call {family}", 1.0)
    if family == "mmm":
        add("panels mmm", len(heights))
        spilt = p.m * p.n if p.scattered or p.act not in ("none", "relu") else 0
        add("scatter mmm", spilt)
        add("low mmm", 0 if spilt else sum(h for h in heights if h != kernel.mr) * p.n)
    if family == "nl" and kernel.mr % 4 == 0:  # columns that fill no vector are computed as by mmm
        add("scatter nl", p.m * (p.n % lanes % 4))
    if family == "dot":
        tail = p.k % lanes
        add("tail dot", p.m * p.n * (tail // 4).bit_count() + p.m * p.n * (tail % 4))
    if p.offsets:
        add(f"offsets {family}", sum(part.count * part.steps for part in parts))
    if c_bytes > machine.near // 2:
        add(f"out {family} {'rows' if p.scattered else 'columns'}", c_bytes / 64)
    return found


def _home_bandwidth(machine: Machine, home: str, weights: int, b: int) -> float:
    if home != "l2":
        return machine.limits.bandwidth(home)
    return _level(machine, weights + b)


def _level(machine: Machine, size: int) -> float:
    """Bytes per nanosecond from the nearest level that holds so many bytes; the first one is never waited for."""
    if size < machine.near:
        return float("inf")
    return machine.limits.l2 if size < machine.l2 * 2 // 3 else machine.limits.l3
