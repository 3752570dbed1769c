"""Was the machine quiet enough to believe the figures?

Three witnesses: constant work that is timed again and again between the measurements, the share of the processor's
time that other programs took away while we were computing, and how well the rounds of each width agree on its time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median as middle

import numpy as np

from pulse.report.statistics import doubt

REFERENCE = 0.10  # most that the time of the constant work may be in doubt
PREEMPTED = 0.02  # largest share of the time that other programs may take
ROUNDS = 0.10  # most that the hot time of a width may be in doubt
PACED_ROUNDS = 0.30  # likewise paced, where caches and clocks start cold
REPEATS = 7
DRIFT = 0.05  # most that constant work may be slower than usual around a visit that counts at once
AWAKE_NS = 5_000_000  # of work before a probe: after a pause caches are cold and the clock is slow
SMALL, LARGE = 4096, 1 << 18  # floats: in the first cache level; in the second or third


class Reference:
    """Constant work: arithmetic in the first cache level, and a read of one megabyte."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self._small = random.standard_normal(SMALL, np.float32)
        self._made = np.empty_like(self._small)
        self._large = random.standard_normal(LARGE, np.float32)
        self._seen: list[float] = []
        self.probe()

    def probe(self) -> float:
        """Microseconds that the work takes now: the middle of a few times."""
        awake = time.perf_counter_ns() + AWAKE_NS
        while time.perf_counter_ns() < awake:
            self._work()
        self._seen.append(middle(self._work() for _ in range(REPEATS)))
        return self._seen[-1]

    def steady(self, *probes: float) -> bool:
        """Whether these are no slower than a quarter of all probes so far, but for a little."""
        return max(probes) <= (1 + DRIFT) * float(np.quantile(self._seen, 0.25))

    def _work(self) -> float:
        start = time.perf_counter_ns()
        for _ in range(12):
            np.multiply(self._small, self._small, out=self._made)
            np.sqrt(self._made, out=self._made)
        self._large.sum()
        return (time.perf_counter_ns() - start) / 1e3


@dataclass
class Watch:
    """What the witnesses saw during a sweep, times in microseconds and nanoseconds as named."""

    reference_us: list[list[float]] = field(default_factory=list)  # per round
    wall_ns: int = 0
    cpu_ns: int = 0
    repeated: int = 0  # visits made again because constant work was slow

    def start_round(self) -> None:
        """Begin a round of probes."""
        self.reference_us.append([])

    def saw(self, probe_us: float) -> None:
        """A probe of the reference work."""
        self.reference_us[-1].append(probe_us)

    def computed(self, wall_ns: int, cpu_ns: int) -> None:
        """A stretch of computing without a pause: by the clock on the wall, and by that of the thread."""
        self.wall_ns += wall_ns
        self.cpu_ns += cpu_ns

    @property
    def reference_spread(self) -> float:
        """How far the rounds leave the probe's time in doubt, 0.1 being 10 %."""
        return doubt([middle(probes) for probes in self.reference_us if probes])

    @property
    def preempted(self) -> float:
        """The share of the time in which the thread wanted to compute and did not get to."""
        return max(1 - self.cpu_ns / self.wall_ns, 0.0) if self.wall_ns else 0.0


def verdict(watch: Watch, rounds: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> dict[str, object]:
    """The JSON form of what the witnesses say.

    Args:
        rounds: of every width, by the name it is told by: the medians of its hot rounds and of its paced ones.

    Returns:
        `{"noisy", "reference_spread", "preempted", "repeated", "reasons": [text]}`, shares of 1 and a number of visits.
    """
    reasons = []
    if watch.preempted > PREEMPTED:
        reasons.append(
            f"other programs took {_percent(watch.preempted)} of this core while it was computing "
            f"(quiet: under {_percent(PREEMPTED)})"
        )
    if watch.reference_spread > REFERENCE:
        reasons.append(
            f"by its rounds, the time of constant work is known within {_percent(watch.reference_spread)} only "
            f"(quiet: {_percent(REFERENCE)})"
        )
    for kind, place, limit in (("back to back", 0, ROUNDS), ("paced", 1, PACED_ROUNDS)):
        found = {name: doubt(times[place]) for name, times in rounds.items()}
        worst = max(found, key=lambda name: found[name], default="")
        if worst and found[worst] > limit:
            known = f"the time of {worst} is known within {_percent(found[worst])} only"
            reasons.append(f"{kind}, {known} (quiet: {_percent(limit)})")
    return {
        "noisy": bool(reasons),
        "reference_spread": watch.reference_spread,
        "preempted": watch.preempted,
        "repeated": watch.repeated,
        "reasons": reasons,
    }


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.1f} %"
