"""Kernels on bf16 weights: against the exact sum over the weights so rounded, and against float32 kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_problems import Problem, Trial, problems_for

from pulse import _native
from pulse.engine.native.lower.choose import Choice, halved
from pulse.engine.pick import GRAMMAR, Kernel, kernels

ISAS = _native.isas()
HALVES = [kernel for isa in ISAS for kernel in kernels(isa, "bf16")]


def by_name(kernel: object) -> str:
    return kernel.name if isinstance(kernel, Kernel) else ""


def nearest(x: np.ndarray) -> np.ndarray:
    """Of the two bf16 numbers around each float the nearer one, at equal distance the even one."""
    below = x.view(np.uint32) & np.uint32(0xFFFF0000)
    above = below + np.uint32(0x10000)
    down, up = (np.abs(x.astype(np.float64) - side.view(np.float32)) for side in (below, above))
    return np.where((up < down) | ((up == down) & (below & 0x10000 != 0)), above, below).view(np.float32)


def check(kernel: Kernel, problem: Problem) -> None:
    """The kernel is given float32 weights, and must give the sum over the rounded ones."""
    trial = Trial(problem)
    got = trial.run(kernel)
    trial.a = nearest(trial.a)
    wanted, tolerance = trial.expected()
    assert (np.abs(got - wanted) <= tolerance).all(), (kernel.name, problem, np.abs(got - wanted).max())


@pytest.mark.parametrize("kernel", HALVES, ids=by_name)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_equals_the_sum_in_double_precision(kernel: Kernel, data: st.DataObject) -> None:
    check(kernel, data.draw(problems_for(kernel)))


@pytest.mark.parametrize("kernel", HALVES, ids=by_name)
def test_every_remainder_of_rows_columns_and_k(kernel: Kernel) -> None:
    for m in range(1, kernel.mr + 18):
        check(kernel, Problem(m, 5, kernel.nr + 1, "strided", "strided", act="relu"))
    for n in range(1, kernel.nr + 18):
        check(kernel, Problem(kernel.mr + 1, 5, n, "offset", "columns", accumulate=True))
    for k in range(12):
        check(kernel, Problem(kernel.mr + 21, k, kernel.nr + 1, "offset-strided", "rows", act="tanh"))
        check(kernel, Problem(kernel.mr + 21, k, 1, "frame", "columns"))


@pytest.mark.parametrize("kernel", HALVES, ids=by_name)
def test_weights_that_bf16_holds_give_what_float32_gives(kernel: Kernel) -> None:
    for m, k, n in ((161, 600, 1), (161, 599, 4), (64, 9, 33), (400, 161, 3), (1, 1, 1)):
        trial = Trial(Problem(m, k, n, bias=False))
        trial.a = nearest(trial.a)
        plain = next(f for f in kernels(kernel.isa) if f.family == "mmm")
        scale = np.abs(trial.a) @ np.abs(trial.b)
        assert (np.abs(trial.run(kernel) - trial.run(plain)) <= 1e-6 * scale).all()


@pytest.mark.parametrize("kernel", HALVES, ids=by_name)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_stay_in_their_column(kernel: Kernel, bad: float) -> None:
    trial = Trial(Problem(kernel.mr + 3, 9, kernel.nr + 2))
    clean = trial.run(kernel)
    trial.b[8, 1] = bad  # the last of an odd number of rows
    got = trial.run(kernel)
    assert not np.isfinite(got[:, 1]).any()
    others = np.arange(clean.shape[1]) != 1
    assert np.array_equal(got[:, others], clean[:, others])


@pytest.mark.parametrize("kernel", HALVES, ids=by_name)
def test_names_follow_the_grammar(kernel: Kernel) -> None:
    match = GRAMMAR.fullmatch(kernel.name)
    assert match is not None
    assert (match["isa"], match["family"], match["type"]) == (kernel.isa, "mmm", "bf16")
    assert (int(match["mr"]), int(match["nr"]), int(match["ks"] or 1)) == (kernel.mr, kernel.nr, kernel.ks)
    assert kernel.panel == kernel.mr


@pytest.mark.parametrize("isa", ISAS)
def test_every_float32_kernel_of_the_family_has_a_nearest_one(isa: str) -> None:
    everything = [*kernels(isa), *kernels(isa, "bf16")]
    own = kernels(isa, "bf16")
    for index, kernel in enumerate(kernels(isa)):
        found = halved(Choice(kernel, index, "rule"), isa)
        if kernel.family != "mmm":
            assert found is None
            continue
        assert found is not None
        assert everything[found.index] == found.kernel
        assert abs(found.kernel.panel - kernel.panel) == min(abs(other.panel - kernel.panel) for other in own)


def test_one_panel_height_for_all_widths() -> None:
    """Float32 kernels of one height have bf16 kernels of one height, so that a model's widths share their weights."""
    for isa in ISAS:
        found: dict[int, set[int]] = {}
        for index, kernel in enumerate(kernels(isa)):
            half = halved(Choice(kernel, index, "rule"), isa)
            if half:
                found.setdefault(kernel.panel, set()).add(half.kernel.panel)
        assert all(len(heights) == 1 for heights in found.values())


def test_weights_of_another_type_are_refused() -> None:
    b, c = np.ones(16, np.float32), np.zeros(32, np.float32)
    for dtype, kernel in (("bf16", "ref_mmm_f32_1x1"), ("f32", "ref_mmm_bf16_1x1")):
        weights = _native.Packed(np.ones((8, 4), np.float32), 1, dtype=dtype)
        with pytest.raises(ValueError, match="another type"):
            _native.Product(weights, b, c, 4, ldb=1, bn=4, cm=1, cn=8).run(kernel)
    with pytest.raises(ValueError, match="f32 or bf16"):
        _native.Packed(np.ones((8, 4), np.float32), 1, dtype="f16")
    with pytest.raises(ValueError, match="f32 or bf16"):
        _native.kernels("ref", "f16")
