"""Every kernel of every instruction set this CPU runs, by one tester."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_problems import Problem, Trial, activated, all_kernels, check, problems_for

from pulse import _native
from pulse.engine.pick import GRAMMAR, Kernel, kernels

KERNELS = all_kernels()


def by_name(kernel: object) -> str:
    return kernel.name if isinstance(kernel, Kernel) else ""


@pytest.mark.parametrize("kernel", KERNELS, ids=by_name)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_equals_the_sum_in_double_precision(kernel: Kernel, data: st.DataObject) -> None:
    check(kernel, data.draw(problems_for(kernel)))


@pytest.mark.parametrize("kernel", KERNELS, ids=by_name)
def test_every_remainder_of_rows_and_columns(kernel: Kernel) -> None:
    layouts = {"nl": ("offset", "rows"), "dot": ("frame", "columns"), "mmm": ("strided", "strided")}
    b, c = layouts[kernel.family]
    for m in range(1, min(kernel.mr, 16) + 18):
        check(kernel, Problem(m, 5, kernel.nr + 1, b, c, act="relu"))
    for n in range(1, kernel.nr + 18):
        check(kernel, Problem(kernel.mr + 1, 5, n, b, c, accumulate=True))


@pytest.mark.parametrize(
    "problem",
    [
        Problem(161, 600, 2),  # 2^n + 1 bins leave a single row
        Problem(257, 33, 4, "channel", "rows", act="prelu"),
        Problem(120, 32, 16, act="sigmoid"),
        Problem(10, 10, 192, "channel", "rows"),
        Problem(64, 9, 33, "offset", "rows", act="relu"),
        Problem(1, 1, 1),
        Problem(5, 0, 3, act="tanh"),  # an empty sum is the bias
    ],
    ids=str,
)
def test_shapes_from_models(problem: Problem) -> None:
    for kernel in KERNELS:
        if problem.suits(kernel):
            check(kernel, problem)


@pytest.mark.parametrize("kernel", KERNELS, ids=by_name)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_stay_in_their_column(kernel: Kernel, bad: float) -> None:
    b, c = ("channel", "rows") if kernel.family == "nl" else ("frame", "columns")
    for act in ("none", "relu", "sigmoid", "tanh", "leaky"):
        tester = Trial(Problem(kernel.mr + 3, 9, kernel.nr + 2, b, c, act=act))
        clean = tester.run(kernel)
        tester.b[4, 1] = bad
        got = tester.run(kernel)
        expected, _ = tester.expected()
        assert np.array_equal(np.isnan(got), np.isnan(expected))
        others = np.arange(clean.shape[1]) != 1
        assert np.array_equal(got[:, others], clean[:, others])
        finite = np.isfinite(expected[:, 1])
        np.testing.assert_allclose(got[finite, 1], expected[finite, 1], atol=1e-6)


def test_unsplit_kernels_agree_to_the_bit() -> None:
    """With fused multiply-adds and one accumulator the order of the sum is that of k, whatever tile computes it."""
    agreeing = [
        kernel
        for kernel in KERNELS
        if kernel.isa in ("v3", "v4", "neon") and kernel.ks == 1 and kernel.family in ("mmm", "nl")
    ]
    for seed, (m, k, n) in enumerate(
        [(64, 64, 4), (100, 37, 3), (161, 50, 1), (17, 20, 33), (10, 10, 96), (75, 9, 21)]
    ):
        results = {}
        for kernel in agreeing:
            problem = Problem(m, k, n, "channel", "rows", act="relu", seed=seed)
            if problem.suits(kernel):
                results[kernel.name] = Trial(problem).run(kernel).tobytes()
        assert len(results) == len(agreeing)
        assert len(set(results.values())) == 1, {name: hash(result) for name, result in results.items()}


@pytest.mark.parametrize("isa", _native.isas())
@pytest.mark.parametrize(("act", "error"), [("sigmoid", 2e-7), ("tanh", 3e-7)])
def test_activations_keep_their_stated_error(isa: str, act: str, error: float) -> None:
    x = np.concatenate([np.linspace(-30, 30, 200_001), np.geomspace(1e-30, 3e38, 500), -np.geomspace(1e-30, 3e38, 500)])
    b, c = x.astype(np.float32), np.zeros(x.size, np.float32)
    kernel = next(kernel for kernel in kernels(isa) if kernel.family == "mmm")
    weights = _native.Packed(np.ones((1, 1), np.float32), kernel.panel)
    _native.Product(weights, b, c, x.size, ldb=x.size, bn=1, cm=x.size, cn=1, act=act).run(kernel.name)
    with np.errstate(over="ignore"):
        wanted = activated(b.astype(np.float64), act, np.zeros(1))
    assert np.abs(c - wanted).max() < error


@pytest.mark.parametrize("kernel", KERNELS, ids=by_name)
def test_name_follows_the_grammar(kernel: Kernel) -> None:
    match = GRAMMAR.fullmatch(kernel.name)
    assert match is not None
    named = Kernel(
        kernel.name,
        match["isa"],
        match["family"],
        int(match["mr"]),
        int(match["nr"]),
        int(match["ks"] or 1),
        int(match["mr"]) if match["family"] != "dot" else 1,
    )
    assert named == kernel


def test_names_are_unique() -> None:
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": 5}, "B reaches outside"),
        ({"bn": -1}, "B reaches outside"),
        ({"ldb": 1 << 40}, "below 2"),
        ({"cn": 9}, "C reaches outside"),
        ({"offsets": np.zeros(3, np.int32)}, "one value per row of B"),
        ({"offsets": np.full(4, 99, np.int32)}, "B reaches outside"),
        ({"bias": np.zeros(7, np.float32)}, "bias must"),
        ({"slope": np.zeros(9, np.float32)}, "slope must"),
        ({"act": "prelu"}, "prelu needs"),
        ({"act": "gelu"}, "act must be"),
    ],
)
def test_bad_products_are_refused(changed: dict[str, object], message: str) -> None:
    good = {"n": 4, "ldb": 1, "bn": 4, "cm": 1, "cn": 8}
    weights = _native.Packed(np.ones((8, 4), np.float32), 1)
    b, c = np.ones(16, np.float32), np.zeros(32, np.float32)
    _native.Product(weights, b, c, **good).run("ref_mmm_f32_1x1")
    with pytest.raises(ValueError, match=message):
        _native.Product(weights, b, c, **(good | changed))


def test_bad_kernels_are_refused() -> None:
    weights = _native.Packed(np.ones((8, 4), np.float32), 16)
    product = _native.Product(weights, np.ones(16, np.float32), np.zeros(32, np.float32), 4, ldb=1, bn=4, cm=1, cn=8)
    with pytest.raises(ValueError, match="no such kernel"):
        product.run("v4_mmm_f32_17x3")
    with pytest.raises(ValueError, match="another panel height"):
        product.run("ref_mmm_f32_1x1")
    for kernel in KERNELS:
        if kernel.family == "nl":
            frame = _native.Product(
                _native.Packed(np.ones((8, 4), np.float32), kernel.panel),
                np.ones(16, np.float32),
                np.zeros(32, np.float32),
                4,
                ldb=1,
                bn=4,
                cm=1,
                cn=8,
            )
            with pytest.raises(ValueError, match="cannot take B or C"):
                frame.run(kernel.name)


@pytest.mark.parametrize(("m", "panel"), [(161, 64), (80, 64), (5, 8), (1, 1), (7, 16), (48, 48), (600, 16)])
def test_packing_wastes_little(m: int, panel: int) -> None:
    heights = _native.panel_heights(panel, m)
    assert sum(heights) >= m > sum(heights[:-1])
    assert sum(heights) - m < 8
    assert heights == sorted(heights, reverse=True)
