"""The rule that picks kernels, the instruction set it picks for, and what is timed."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from pulse import PulseError, _native
from pulse.engine.isa import available, current
from pulse.engine.pick import GRAMMAR, kernels, pick, pick_panel
from pulse.engine.timing import time_product

ISAS = available()
WIDEST = ISAS[-1]
SHAPES = [
    (1, 256, 1),
    (16, 96, 1),
    (32, 128, 1),
    (64, 384, 1),
    (768, 256, 1),
    (161, 600, 2),
    (64, 64, 48),
    (5, 160, 96),
]


def tile(name: str) -> tuple[str, int, int]:
    match = GRAMMAR.fullmatch(name)
    assert match
    return match["family"], int(match["mr"]), int(match["nr"])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
def test_picks_a_kernel_of_the_set(isa: str, m: int, k: int, n: int) -> None:
    for layout in ("frame", "channel"):
        assert pick(m, k, n, isa=isa, layout=layout) in {kernel.name for kernel in kernels(isa)}


@pytest.mark.skipif("v4" not in ISAS, reason="this CPU has no AVX-512")
def test_picks_what_measurements_favour() -> None:
    assert tile(pick(1, 256, 1, isa="v4"))[0] == "dot"  # lanes along m would idle
    assert tile(pick(64, 64, 96, isa="v4", layout="channel")) != ("mmm", 64, 1)
    assert tile(pick(5, 160, 96, isa="v4", layout="channel"))[0] == "nl"
    assert tile(pick(10, 10, 96, isa="v4", layout="channel"))[0] == "nl"
    for n in (1, 2, 3, 4):
        assert tile(pick(256, 256, n, isa="v4"))[2] == n  # exact, never padded to four


@pytest.mark.skipif("v4" not in ISAS, reason="this CPU has no AVX-512")
def test_one_column_is_picked_by_the_rows() -> None:
    heights = [tile(pick(m, 128, 1, isa="v4"))[1] for m in (16, 32, 64, 128)]
    assert heights[0] == 16
    assert heights == sorted(heights)


@pytest.mark.parametrize("isa", [isa for isa in ISAS if isa != "ref"])
def test_a_panel_serves_every_width(isa: str) -> None:
    widths = (1, 2, 3, 4, 8, 16)
    panel = pick_panel(256, 256, widths, isa)
    picked = {pick(256, 256, n, isa=isa, panel=panel) for n in widths}
    assert {kernel.panel for kernel in kernels(isa) if kernel.name in picked} == {panel}
    assert len(picked) > 1


@pytest.mark.parametrize(
    ("shape", "more"),
    [
        ((0, 1, 1), {}),
        ((4, 4, -1), {}),
        ((4, 4, 4), {"dtype": "f64"}),
        ((4, 4, 4), {"panel": 7}),
        ((4, 4, 4), {"isa": "v5"}),
    ],
)
def test_what_cannot_be_picked_is_said(shape: tuple[int, int, int], more: dict[str, object]) -> None:
    with pytest.raises(PulseError) as caught:
        pick(*shape, **more)  # type: ignore[arg-type]
    assert caught.value.code == "usage"
    assert caught.value.required
    assert caught.value.found


def test_the_environment_forces_a_lower_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULSE_ISA", raising=False)
    assert current() == _native.best_isa() == WIDEST
    for isa in ISAS:
        monkeypatch.setenv("PULSE_ISA", isa)
        assert current() == isa
        assert pick(64, 64, 4).startswith(isa + "_")
        assert current(WIDEST) == WIDEST  # an argument goes before the environment


@pytest.mark.parametrize(
    ("wanted", "found"), [("v9", "no such"), ("neon" if "v2" in ISAS else "v4", "does not have it")]
)
def test_a_set_that_cannot_be_had_is_a_diagnostic(monkeypatch: pytest.MonkeyPatch, wanted: str, found: str) -> None:
    monkeypatch.setenv("PULSE_ISA", wanted)
    with pytest.raises(PulseError, match=found) as caught:
        current()
    assert caught.value.node == f"PULSE_ISA={wanted}"
    assert WIDEST in caught.value.required


def test_timings_cover_the_kernels_that_fit() -> None:
    timing = time_product(24, 16, 4, isa=WIDEST, rounds=3)
    assert set(timing.samples) == {kernel.name for kernel in kernels(WIDEST) if kernel.family != "nl"}
    assert all(len(samples) == 3 and min(samples) > 0 for samples in timing.samples.values())
    assert timing.ranked()[0] == min(timing.samples, key=timing.median_ns)
    assert math.isnan(timing.limit_ns) or 0 < timing.limit_ns < min(map(min, timing.samples.values()))


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not pin threads")
def test_timing_gives_the_cores_back() -> None:
    before = os.sched_getaffinity(0)
    time_product(4, 4, 1, names=["ref_mmm_f32_1x1"], isa="ref", rounds=1)
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("shape", [(0, 1, 1), (1, 1 << 20, 1 << 20)])
def test_sizes_beyond_reason_are_not_timed(shape: tuple[int, int, int]) -> None:
    with pytest.raises(PulseError):
        time_product(*shape)


def test_the_native_library_is_small() -> None:
    assert Path(_native.__file__).stat().st_size < 1.5e6
