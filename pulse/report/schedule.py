"""How long to measure what: rounds, pulses and seconds, so that a sweep ends when it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ROUNDS, QUICK_ROUNDS = 17, 3  # of 17, the 5th and the 13th enclose the middle at 95 %
PACED_S, QUICK_PACED_S = 7.5, 0.7  # per width, shared by the engines
HOT_S, QUICK_HOT_S = 1.0, 0.15
INSIGHT_S, QUICK_INSIGHT_S = 0.25, 0.05  # per width and engine
SPARE_S, QUICK_SPARE_S = 6.0, 0.0  # for visits that are repeated
HOT_PULSES = 40_000  # per width and engine: more would only take memory


@dataclass(frozen=True)
class Schedule:
    """The plan of a sweep.

    Attributes:
        rounds: times that all widths are visited.
        hot_s, hot_pulses: seconds, and most pulses, of a visit back to back.
        paced: pulses of a paced visit, per bench; empty where the duration of a frame is not known.
        seconds: what it takes, about, if no visit is repeated.
        spare_s: seconds that repeating visits back to back may take, all together.
        insight_s: seconds that a look into each engine's operators may take, afterwards.
    """

    rounds: int
    hot_s: float
    hot_pulses: int
    paced: tuple[int, ...]
    seconds: float
    spare_s: float
    insight_s: float


def schedule(periods_ms: Sequence[float] | None, benches: int, widths: int, quick: bool = False) -> Schedule:
    """The plan for that many benches (widths times engines); `periods_ms` is the real time of a pulse, per bench.

    Half of the paced time goes in equal numbers of pulses to all, half in equal time, so that wide pulses get enough of
    them and narrow ones are not bored.
    """
    rounds = QUICK_ROUNDS if quick else ROUNDS
    hot = (QUICK_HOT_S if quick else HOT_S) * widths / benches / rounds
    paced: tuple[int, ...] = ()
    if periods_ms is not None:
        half = 1000 * (QUICK_PACED_S if quick else PACED_S) * widths / 2
        equal = half / sum(periods_ms)
        paced = tuple(max(round((equal + half / benches / period) / rounds), 1) for period in periods_ms)
    asleep = sum((count + 1) * period for count, period in zip(paced, periods_ms or (), strict=True)) / 1000
    seconds = rounds * (benches * hot + asleep)
    spare, insight = (QUICK_SPARE_S, QUICK_INSIGHT_S) if quick else (SPARE_S, INSIGHT_S)
    return Schedule(rounds, hot, HOT_PULSES // rounds, paced, seconds, spare, insight)
