"""From a data set to a table: several candidates, of which one is chosen by what it would cost on products held out.

A pure function of the data set, the constraints and a seed. For each home of the weights candidates differ in which
weights they keep apart, in how far they are drawn to an ideal cell's, and in the sample of products they see. Those
that break a sanity constraint are out; among the others the least mean regret on the products held out wins.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pulse.costmodel.cells import kernel_from_name
from pulse.costmodel.constraints import Constraint, broken
from pulse.costmodel.dataset import Dataset, Timed, too_few
from pulse.costmodel.features import Machine, features
from pulse.costmodel.regret import Regret, by_width, regret_of, summary
from pulse.costmodel.shapes import HOMES
from pulse.costmodel.solve import System, merged, solve, system
from pulse.costmodel.table import Fitted, Table, Variant

from pulse.engine.pick import Kernel
from pulse.engine.pick import kernels as built
from pulse.errors import PulseError

LEAST = 40  # products per home
VARIANTS = tuple(Variant(layout, main) for layout in (False, True) for main in (False, True))
RIDGES = (1e-3, 3e-2, 0.3)
HELD_OUT = 5  # one product in so many
UNSTEADY = 0.1  # drift at which a sample counts half


@dataclass
class Candidate:
    """One fit: its name, weights, held-out regrets, and the constraints it breaks."""

    name: str
    variant: Variant
    weights: dict[str, float]
    regrets: list[Regret] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return summary(r.ratio for r in self.regrets).mean

    def as_dict(self) -> dict[str, Any]:
        return {"candidate": self.name, **summary(r.ratio for r in self.regrets).as_dict(), "broken": self.broken}


@dataclass
class Report:
    """Per home: all candidates, the one chosen first."""

    candidates: dict[str, list[Candidate]] = field(default_factory=dict)


def fit(
    dataset: Dataset,
    isa: str,
    constraints: Sequence[Constraint] = (),
    *,
    seed: int = 0,
    resamples: int = 3,
    tool: str = "",
    date: str = "",
) -> tuple[Table, Report]:
    """The table of one instruction set.

    Raises:
        PulseError: `dataset-foreign`, `kernels-gone`, `dataset-too-small`; `constraints-unsatisfied` where every
            candidate breaks one.
    """
    if isa not in dataset.kernels:
        raise PulseError(
            "dataset-foreign",
            node=dataset.path,
            required=f"samples of instruction set {isa}",
            found=", ".join(dataset.kernels),
            remedy="gather with --isa, or fit one of those that are there",
        )
    check_kernels(dataset.path, isa, dataset.kernels[isa])
    machine = Machine(dataset.limits[isa], *dataset.caches[:2])
    kernels = [kernel_from_name(name) for name in dataset.kernels[isa]]
    homes: dict[str, Fitted] = {}
    report = Report()
    present = [home for home in HOMES if dataset.of(isa, home)]
    for home in present or HOMES[:1]:
        samples = dataset.of(isa, home)
        if len(samples) < LEAST:
            raise too_few(dataset.path, len(samples), LEAST, [isa, f"home {home}"])
        bench = Bench(samples, kernels, machine, seed)
        candidates = list(bench.candidates(resamples, seed))
        for candidate in candidates:
            candidate.broken = broken(constraints, kernels, Fitted(candidate.weights, candidate.variant), machine, home)
        candidates.sort(key=lambda c: (bool(c.broken), c.mean))
        report.candidates[home] = candidates
        best = candidates[0]
        if best.broken:
            raise _unsatisfied(candidates, isa, home)
        widths = {n: summary(r.ratio for r in found).as_dict() for n, found in by_width(best.regrets).items()}
        whole = summary(r.ratio for r in best.regrets).as_dict()
        homes[home] = Fitted(best.weights, best.variant, best.name, {**whole, "by_n": widths})
    facts = {
        "sha256": dataset.sha256,
        "date": dataset.date,
        "system": dataset.system,
        "settings": dataset.settings,
        "samples": len(dataset.of(isa)),
        "seed": seed,
    }
    table = Table(
        isa, dataset.cpu, date or dataset.date, tool or dataset.tool, facts, machine, dataset.kernels[isa], homes
    )
    return table, report


def check_kernels(label: str, isa: str, names: Sequence[str]) -> None:
    """Raises PulseError `kernels-gone` for names which this build, if it has the instruction set, does not know."""
    here = {kernel.name for kernel in built(isa)}
    gone = [name for name in names if here and name not in here]
    if gone:
        raise PulseError(
            "kernels-gone",
            node=label,
            required=f"kernels of this pulse: `pulse kernels list` under PULSE_ISA={isa}",
            found=", ".join(gone[:4]) + (f" and {len(gone) - 4} more" if len(gone) > 4 else ""),
            remedy="gather and fit again with this version of pulse",
        )


class Bench:
    """The samples of one home as a system of equations, split into products to learn from and products held out."""

    def __init__(self, samples: Sequence[Timed], kernels: Sequence[Kernel], machine: Machine, seed: int) -> None:
        self.samples = list(samples)
        rows, times, groups, self.places = [], [], [], []
        for group, sample in enumerate(self.samples):
            for place, (kernel, ns) in enumerate(zip(kernels, sample.ns, strict=True)):
                if ns == ns:  # the others cannot take this layout
                    rows.append(features(kernel, sample.product, machine))
                    times.append(ns)
                    groups.append(group)
                    self.places.append(place)
        self.full = system(rows, times, groups)
        self.systems = {variant: merged(self.full, variant.rename) for variant in VARIANTS}
        # By the numbers of the product alone, so that no kind of home or layout of it is learnt from.
        held = [
            zlib.crc32(f"{seed} {p.m} {p.k} {p.n}".encode()) % HELD_OUT == 0 for p in (s.product for s in self.samples)
        ]
        self.held = np.array(held)
        steady = np.array([1 / (1 + (s.drift / UNSTEADY) ** 2) for s in self.samples])
        self.counts = np.where(self.held, 0.0, steady)

    def candidates(self, resamples: int, seed: int) -> Iterable[Candidate]:
        """Every variant with every ridge on all samples; the best two settings again on resampled products."""
        settings = [(variant, ridge) for variant in VARIANTS for ridge in RIDGES]
        first = [self._candidate(variant, ridge, self.counts, "all") for variant, ridge in settings]
        yield from first
        draw = np.random.default_rng(seed)
        ranked = sorted(range(len(settings)), key=lambda i: first[i].mean)
        for place in ranked[:2]:
            variant, ridge = settings[place]
            drawn = []
            for number in range(resamples):
                often = draw.multinomial(len(self.samples), np.full(len(self.samples), 1 / len(self.samples)))
                drawn.append(self._candidate(variant, ridge, self.counts * often, f"resample {number + 1}"))
            yield from drawn
            if drawn:
                names = drawn[0].weights
                mean = {name: float(np.mean([c.weights[name] for c in drawn])) for name in names}
                yield self._scored(drawn[0].name.rsplit(", ", 1)[0] + ", mean of resamples", variant, mean)

    def _candidate(self, variant: Variant, ridge: float, counts: np.ndarray, which: str) -> Candidate:
        given = self.systems[variant]
        weights = solve(given, counts[given.groups], ridge)
        apart = " and ".join(["cell", *(["layout"] if variant.layout else []), *(["tail"] if variant.main else [])])
        return self._scored(f"by {apart}, ridge {ridge:g}, {which}", variant, weights)

    def _scored(self, name: str, variant: Variant, weights: dict[str, float]) -> Candidate:
        found = []
        for group, place in self.choices(self.systems[variant], weights).items():
            if self.held[group] and (item := regret_of(self.samples[group], place)) is not None:
                found.append(item)
        return Candidate(name, variant, weights, found)

    def choices(self, given: System, weights: dict[str, float]) -> dict[int, int]:
        """Per sample the place of the kernel with the least forecast."""
        forecast = given.rows @ np.array([weights[name] for name in given.names])
        best: dict[int, tuple[float, int]] = {}
        for group, place, ns in zip(given.groups.tolist(), self.places, forecast.tolist(), strict=True):
            if group not in best or ns < best[group][0]:
                best[group] = (ns, place)
        return {group: place for group, (_, place) in best.items()}


def fit_absolute(dataset: Dataset, table: Table) -> Table:
    """The same features fitted on absolute errors: a control, known to mispick small products."""
    kernels = [kernel_from_name(name) for name in table.kernels]
    homes = {}
    for home, fitted in table.homes.items():
        bench = Bench(dataset.of(table.isa, home), kernels, table.machine, 0)
        given = bench.systems[fitted.variant]
        homes[home] = Fitted(solve(given, np.ones(len(given.times)), 0.0, relative=False), fitted.variant, "absolute")
    return Table(table.isa, table.cpu, table.date, table.tool, table.dataset, table.machine, table.kernels, homes)


def _unsatisfied(candidates: Sequence[Candidate], isa: str, home: str) -> PulseError:
    closest = min(candidates, key=lambda c: len(c.broken))
    return PulseError(
        "constraints-unsatisfied",
        node=f"{isa}, home {home}",
        required="a candidate that keeps every constraint",
        found=f"{len(candidates)} candidates; the closest ({closest.name}) breaks: " + "; ".join(closest.broken),
        remedy="look at these products with `pulse kernels time M K N`: either a constraint asks for a slow kernel, or "
        "the samples are too few or too noisy",
    )
