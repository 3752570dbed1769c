"""What a sweep makes of its times: statistics, noise, schedule, recommendation, text. Nothing here is measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulse.report import statistics
from pulse.report.bench import Visit
from pulse.report.families import CALL, CONVOLUTION, LINEAR, MOVEMENT, RECURRENT, per_run, shares
from pulse.report.noise import PREEMPTED, Reference, Watch, verdict
from pulse.report.recommend import frontier, recommend
from pulse.report.schedule import schedule
from pulse.report.svg import Scale
from pulse.report.sweeping import _visit
from pulse.report.text import lookup, number, pointer, tile, time

times = st.lists(st.floats(0.1, 1e7), min_size=1, max_size=300)


@given(times, st.sampled_from([0.5, 0.9, 0.99, 0.999, 1.0]))
def test_a_percentile_is_the_least_time_that_covers_its_share(values: list[float], share: float) -> None:
    found = statistics.percentile(values, share)
    assert found in values
    assert sum(v <= found for v in values) >= share * len(values) - 1e-6
    assert sum(v < found for v in values) < share * len(values) + 1e-6


def test_p99_of_few_times_is_the_longest() -> None:
    assert statistics.percentile([3.0, 1.0, 2.0], 0.99) == 3.0
    assert statistics.percentile(list(range(1, 1001)), 0.999) == 999


def test_doubt_of_few_rounds_is_their_whole_range() -> None:
    assert statistics.doubt([1.0, 1.2]) == pytest.approx(0.2)
    assert statistics.doubt([1.0, 1.1, 1.1, 1.1, 2.0]) == pytest.approx(1.0)
    assert statistics.doubt([5.0]) == 0
    assert statistics.doubt([]) == 0


def test_doubt_of_many_rounds_lies_between_the_ends_of_the_interval() -> None:
    rounds = [1.0 + i / 100 for i in range(17)]
    assert statistics.doubt(rounds) == pytest.approx(1.12 / 1.04 - 1)
    assert statistics.doubt([*rounds[:-4], 9.0, 9.0, 9.0, 9.0]) == pytest.approx(1.12 / 1.04 - 1)
    assert statistics.doubt([*rounds[:-5], 9.0, 9.0, 9.0, 9.0, 9.0]) > 7


@pytest.mark.parametrize("count", [6, 9, 17, 40])
def test_doubt_encloses_the_true_middle_as_often_as_it_says(count: int) -> None:
    """The interval's ends are found again from its ratio: of times of which no two quotients are equal."""
    draws = np.random.default_rng(count).lognormal(0, 0.3, (2000, count))
    held = 0
    for rounds in np.sort(draws, axis=1):
        wide = statistics.doubt(rounds) + 1
        ends = [(rounds[i], rounds[-1 - i]) for i in range(count // 2) if np.isclose(rounds[-1 - i] / rounds[i], wide)]
        held += any(low <= 1.0 <= high for low, high in ends)
    assert held > 0.94 * len(draws)


@given(st.lists(times, min_size=1, max_size=4))
def test_a_histogram_holds_every_time(groups: list[list[float]]) -> None:
    bins = statistics.edges(groups)
    assert np.all(np.diff(bins) > 0)
    assert len(bins) <= statistics.MOST_BINS + 2
    assert bins[0] <= min(map(min, groups)) * 1.0001
    assert bins[-1] >= max(map(max, groups)) * 0.9999
    for group in groups:
        assert sum(statistics.histogram(group, bins)) == len(group)


def watch(reference: list[float], lost: float = 0.0) -> Watch:
    found = Watch()
    for probe in reference:
        found.start_round()
        found.saw(probe)
    found.computed(1_000_000, int(1_000_000 * (1 - lost)))
    return found


@pytest.mark.parametrize(
    ("seen", "rounds", "reason"),
    [
        (watch([100, 101, 102, 103]), {"P = 1": ([10.0, 10.2], [40.0, 44.0])}, ""),
        (watch([100, 101, 102, 125]), {}, "constant work"),
        (watch([100, 100], lost=PREEMPTED * 1.5), {}, "other programs"),
        (
            watch([100, 100]),
            {"P = 4": ([10.0, 12.0], []), "P = 1": ([10.0, 11.5], [])},
            "the time of P = 4 is known within 20 % only",
        ),
        (watch([100, 100]), {"P = 1": ([], [40.0, 60.0])}, "paced, the time of P = 1"),
    ],
)
def test_noise_is_told_with_its_reason(seen: Watch, rounds: dict[str, Any], reason: str) -> None:
    found = verdict(seen, rounds)
    assert found["noisy"] == bool(reason)
    assert reason in "; ".join(map(str, found["reasons"]))


class Scripted:
    """Constant work, and a bench, whose times are given."""

    def __init__(self, probes: list[float]) -> None:
        self.probes, self.visits = probes, 0
        self.hot_us: list[list[float]] = []

    def probe(self) -> float:
        return self.probes.pop(0)

    def steady(self, *probes: float) -> bool:
        return max(probes) < 105

    def run_hot(self, seconds: float, most: int) -> Visit:
        self.visits += 1
        return Visit([float(self.visits)], 1000, 1000)


@pytest.mark.parametrize(
    ("probes", "spare", "kept", "repeated"),
    [
        ([100, 101], 60.0, 1.0, 0),
        ([100, 150, 100, 101], 60.0, 2.0, 1),
        ([150, 100, 150, 150, 100, 100], 60.0, 3.0, 2),
        ([100, 150], 0.0, 1.0, 0),
    ],
)
def test_a_disturbed_visit_is_made_again_while_there_is_time(
    probes: list[float], spare: float, kept: float, repeated: int
) -> None:
    scripted, seen = Scripted(probes), Watch()
    seen.start_round()
    last = probes[-2:]
    left = _visit(scripted, schedule([10.0], 1, 1), scripted, seen, spare)  # type: ignore[arg-type]
    assert scripted.hot_us == [[kept]]
    assert seen.repeated == repeated
    assert seen.reference_us == [last]
    assert seen.wall_ns == 1000, "what is thrown away does not count as work"
    assert (left < spare) == bool(repeated)


def test_steady_is_told_from_a_quarter_of_the_probes() -> None:
    reference = Reference()
    usual = reference.probe()
    assert reference.steady(usual / 100)
    assert not reference.steady(usual / 100, usual * 100)


def row(pulse: int, per_frame: float, load: float | None = None, total: float | None = None) -> dict[str, Any]:
    keeps_up = None if load is None else load < 1
    return {
        "pulse": pulse,
        "us_per_frame": per_frame,
        "cpu_load": load,
        "keeps_up": keeps_up,
        "delay_ms": {"total": total},
    }


ROWS = [
    row(1, 112, 0.041, 0.4),
    row(2, 93, 0.026, 10.5),
    row(4, 70, 0.0165, 30.7),
    row(8, 60, 0.011, 70.9),
    row(16, 55, 0.0105, 151.7),
]


def test_without_a_budget_the_smallest_width_near_the_least_time_per_frame() -> None:
    found = recommend(ROWS)
    assert (found["pulse"], found["meets"]) == (8, True)
    assert "60 µs per frame, within 10 % of the least (55 µs at P = 16)" in found["why"]
    assert recommend([row(1, 50), row(2, 52), row(4, 60)])["pulse"] == 1
    assert "wider pulses only add latency" in recommend([row(1, 50), row(2, 52)])["why"]
    assert "P = 2 takes 13 % more" in recommend([row(1, 90), row(2, 56.5), row(4, 50)])["why"]


def test_a_latency_budget_asks_for_the_least_load_within_it() -> None:
    assert recommend(ROWS, budget_ms=40)["pulse"] == 4
    assert recommend(ROWS, budget_ms=200)["pulse"] == 8  # within 10 % of the load at 16
    assert recommend(ROWS, budget_ms=5)["pulse"] == 1


def test_a_load_budget_asks_for_the_least_latency_within_it() -> None:
    assert recommend(ROWS, cpu_budget=3)["pulse"] == 2
    assert recommend(ROWS, budget_ms=100, cpu_budget=1.2)["pulse"] == 8


def test_a_budget_that_nothing_meets_says_by_how_much() -> None:
    found = recommend(ROWS, budget_ms=0.3)
    assert (found["pulse"], found["meets"], found["nearest"]["pulse"]) == (None, False, 1)
    assert found["nearest"]["over_ms"] == pytest.approx(0.1)
    assert found["nearest"]["over_percent"] is None
    assert "P = 1, takes 0.4 ms, 0.1 ms too much" in found["why"]
    both = recommend(ROWS, budget_ms=20, cpu_budget=2)
    assert both["nearest"] == {"pulse": 2, "over_ms": None, "over_percent": pytest.approx(0.6)}
    assert "needs 2.6 % of a core, 0.6 points too much" in both["why"]


def test_a_width_that_does_not_keep_up_is_never_recommended() -> None:
    assert recommend([row(1, 90, 1.3), row(2, 95, 0.9, 12.0)])["pulse"] == 2
    found = recommend([row(1, 900, 1.8), row(2, 800, 1.6)], budget_ms=40)
    assert found["pulse"] is None
    assert "no width keeps up with real time: at best, P = 2 needs 1.6 cores" in found["why"]


def test_a_noisy_machine_is_part_of_the_advice() -> None:
    assert "too noisy" in recommend(ROWS, noisy=True)["why"]
    assert "too noisy" in recommend(ROWS, budget_ms=0.3, noisy=True)["why"]
    assert "too noisy" not in recommend(ROWS)["why"]


def test_the_frontier_has_what_nothing_beats() -> None:
    dominated = row(32, 60, 0.012, 311.0)
    behind = row(3, 400, 1.2)
    assert frontier([*ROWS, dominated, behind]) == ROWS
    assert frontier([row(1, 10)]) == []


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize(("widths", "engines", "frame_ms"), [(5, 1, 10.0), (5, 2, 10.0), (8, 1, 20.0), (1, 1, 0.0625)])
def test_a_schedule_ends_in_time_and_times_every_width(widths: int, engines: int, frame_ms: float, quick: bool) -> None:
    periods = [frame_ms * 2**i for i in range(widths)] * engines
    plan = schedule(periods, widths * engines, widths, quick)
    assert len(plan.paced) == widths * engines
    assert min(plan.paced) >= 1
    asleep = sum(period * (count + 1) for period, count in zip(periods, plan.paced, strict=True)) * plan.rounds / 1000
    assert plan.seconds == pytest.approx(asleep + plan.rounds * plan.hot_s * widths * engines)
    if widths == 5:
        assert plan.seconds < (8 if quick else 52)
    assert schedule(None, 2, 2).paced == ()


def test_shares_come_from_the_middle_of_the_runs() -> None:
    events: list[dict[str, Any]] = [{"cat": "Session", "name": "session_initialization", "ts": 0, "dur": 9}]
    for begin, conv in ((100, 900), (2000, 29), (3000, 31)):  # the first run is cold
        node = {"cat": "Node", "ts": begin + 1, "dur": conv, "args": {"op_name": "Conv"}, "name": "c_kernel_time"}
        gru = node | {"dur": 9, "args": {"op_name": "GRU"}, "name": "g_kernel_time"}
        fence = node | {"dur": 500, "name": "c_fence_before"}
        events += [node, gru, fence, {"cat": "Session", "name": "model_run", "ts": begin, "dur": 950}]
    spent = per_run(events)
    assert spent == {CONVOLUTION: 31.5, RECURRENT: 9.5}
    told = shares(spent, 50.0, 82.0)
    assert told is not None
    assert told.families == pytest.approx({CONVOLUTION: 31.5 / 82, RECURRENT: 9.5 / 82, CALL: 41 / 82})
    crowded = shares(spent, 20.5, 41.0)  # the profile itself cost time: the operators fill at most the run
    assert crowded is not None
    assert crowded.families == pytest.approx({CONVOLUTION: 31.5 / 82, RECURRENT: 9.5 / 82, CALL: 0.5})
    assert shares({}, 1.0, 1.0) is None


def test_native_steps_become_families_and_kernels() -> None:
    from pulse.engine.native.plan import Step
    from pulse.report.native import told

    gru = {"m": 768, "k": 256, "kernel": "v4_mmm_f32_64x1"}
    steps = [
        Step("copy", "History:x", {}),
        Step("depthwise", "c.0", {}),
        Step("product", "c.1", {}, facts={"kernel": "v4_nl_f32_8x16"}),
        Step("product", "g", {}, facts=gru),
        Step("gru", "g", {}, facts={"kernel": "gru"}),
    ]
    found = told(steps, [1.0, 2.0, 3.0, 4.0, 8.0], 20.0, {"c.1": "Conv", "g": "GRU"})
    wanted = {CONVOLUTION: 0.25, RECURRENT: 0.4, LINEAR: 0.2, MOVEMENT: 0.05, CALL: 0.1}
    assert found.families == pytest.approx(wanted)
    assert found.kernels == {"c.1": "v4_nl_f32_8x16", "g": "v4_mmm_f32_64x1", "g (gru)": "gru"}
    assert found.product_us == {"c.1": 3.0, "g": 4.0, "g (gru)": 8.0}


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (0.0, "0"), (35.123, "35.1"), (0.05123, "0.0512"), (1214.4, "1,214"), (1200, "1,200")],
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert number(value) == text


def test_times_have_the_unit_that_reads_best() -> None:
    assert [time(v) for v in (35.12, 1210.0, 2.5e6)] == ["35.1 µs", "1.21 ms", "2.5 s"]


def test_kernels_are_told_by_their_tile() -> None:
    assert [tile(k) for k in ("v4_mmm_f32_16x1k4", "v3_nl_f32_8x8", "gru")] == ["16x1k4", "nl 8x8", "gru"]


def test_pointers_find_odd_names() -> None:
    figures = {"widths": [{"kernels": {"/a~b/Conv.1": "k"}, "none": None}]}
    assert lookup(figures, pointer("widths", 0, "kernels", "/a~b/Conv.1")) == "k"
    assert lookup(figures, "/widths/0/none/median") is None


@given(st.floats(1e-2, 1e6), st.floats(1.2, 1e4), st.booleans())
def test_ticks_are_few_and_on_the_axis(low: float, factor: float, log: bool) -> None:
    scale = Scale(low, low * factor, 0, 100, log)
    for tick in scale.ticks(6):
        assert -0.01 <= scale(tick) <= 100.01
    assert log or 1 <= len(scale.ticks(6)) <= 7
