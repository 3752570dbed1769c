"""Fitting: what a known formula teaches, purity, constraints, too few samples, kernels that are gone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
import synthetic_timings as synthetic
from pulse.costmodel import table as tables
from pulse.costmodel.cells import acceptable
from pulse.costmodel.constraints import DEFAULT, Constraint, read_constraints
from pulse.costmodel.fit import Candidate, fit, fit_absolute
from pulse.costmodel.shapes import Product, in_homes, sweep
from pulse.costmodel.table import Table

from pulse.engine.isa import available
from pulse.engine.pick import kernels
from pulse.errors import PulseError

needs_v3 = pytest.mark.skipif("v3" not in available(), reason="this CPU has no kernels of v3")
pytestmark = needs_v3


@pytest.fixture(scope="module")
def ns() -> synthetic.Truth:
    return synthetic.truth(5)


@pytest.fixture(scope="module")
def fitted(ns: synthetic.Truth) -> Table:
    return fit(synthetic.dataset(synthetic.products(), ns), "v3", resamples=1)[0]


def true_regrets(table: Table, ns: synthetic.Truth) -> list[float]:
    """What the picks cost by the formula itself, on products of another seed."""
    found = []
    for product in in_homes(sweep(150, 77, 16), ["l2"]):
        takers = [kernel for kernel in kernels("v3") if acceptable(kernel, product)]
        best = min(ns(kernel, product) for kernel in takers)
        if best >= 300:
            found.append(ns(min(takers, key=lambda k: table.ns(k, product)), product) / best)
    return found


def test_a_known_formula_is_recovered_through_noise_and_outliers(fitted: Table, ns: synthetic.Truth) -> None:
    regrets = true_regrets(fitted, ns)
    assert len(regrets) > 50
    assert mean(regrets) < 1.01


def test_an_absolute_fit_of_the_same_features_is_worse(fitted: Table, ns: synthetic.Truth) -> None:
    data = synthetic.dataset(synthetic.products(), ns)
    assert mean(true_regrets(fit_absolute(data, fitted), ns)) > mean(true_regrets(fitted, ns))


def test_fitting_is_pure(ns: synthetic.Truth) -> None:
    data = synthetic.dataset(synthetic.products(120), ns)
    first, second = (fit(data, "v3", seed=3, resamples=1)[0].dumps() for _ in range(2))
    assert first == second


def test_a_table_survives_its_file(fitted: Table) -> None:
    again = tables.loads(fitted.dumps(), "here")
    product = Product(100, 77, 3, home="l2")
    for kernel in kernels("v3"):
        if acceptable(kernel, product):
            assert again.ns(kernel, product) == pytest.approx(fitted.ns(kernel, product), rel=1e-3)
    assert again.dumps() == fitted.dumps()


def test_the_report_says_what_failed(ns: synthetic.Truth) -> None:
    data = synthetic.dataset(synthetic.products(120), ns)
    free, report = fit(data, "v3", resamples=0)
    chosen, *others = report.candidates["l2"]
    product, other = next(
        (product, other)
        for product in in_homes(sweep(400, 9, 16), ["l2"])
        for other in others
        if _picked_by(free, other, product) != _picked_by(free, chosen, product)
    )
    wanted = _picked_by(free, other, product)
    held, report = fit(data, "v3", [Constraint(product, one_of=(wanted,))], resamples=0)
    assert _pick(held, product) == wanted
    failed = next(c for c in report.candidates["l2"] if c.name == chosen.name)
    assert _picked_by(free, chosen, product) in failed.broken[0]
    assert str(product) in failed.broken[0]


def _picked_by(table: Table, candidate: Candidate, product: Product) -> str:
    return _pick(replace(table, homes={"l2": tables.Fitted(candidate.weights, candidate.variant)}), product)


def _pick(table: Table, product: Product) -> str:
    takers = [kernel for kernel in kernels("v3") if acceptable(kernel, product)]
    return min(takers, key=lambda kernel: table.ns(kernel, product)).name


def test_constraints_that_nobody_can_keep(ns: synthetic.Truth) -> None:
    data = synthetic.dataset(synthetic.products(120), ns)
    with pytest.raises(PulseError) as caught:
        fit(data, "v3", [Constraint(Product(64, 64, 4, home="l2"), one_of=("*_mmm_f32_8x1",))], resamples=0)
    assert caught.value.code == "constraints-unsatisfied"
    assert "64 64 4 frame none l2" in caught.value.found


def test_too_few_samples(ns: synthetic.Truth) -> None:
    with pytest.raises(PulseError, match="dataset-too-small"):
        fit(synthetic.dataset(synthetic.products(20), ns), "v3")


def test_kernels_that_no_longer_exist(ns: synthetic.Truth) -> None:
    data = synthetic.dataset(synthetic.products(60), ns)
    names = ["v3_mmm_f32_8x9", *data.kernels["v3"][1:]]
    with pytest.raises(PulseError, match="kernels-gone") as caught:
        fit(replace(data, kernels={"v3": names}), "v3")
    assert "v3_mmm_f32_8x9" in caught.value.found


def test_another_instruction_set_than_the_data(ns: synthetic.Truth) -> None:
    with pytest.raises(PulseError, match="dataset-foreign"):
        fit(synthetic.dataset(synthetic.products(60), ns), "neon")


def test_the_shipped_constraints_are_read() -> None:
    assert {rule.product for rule in read_constraints(DEFAULT)} >= {Product(32, 9, 96, "channel", home="l2")}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '[{"product": "32x9x96", "one_of": ["*"]}]',
        '[{"product": "32 9 96 frame none l2"}]',
        '[{"product": "32 9 96 frame none l2", "one_of": "nl"}]',
        '[{"product": "32 9 96 frame none l2", "only": ["*"]}]',
    ],
)
def test_constraints_that_cannot_be_understood(tmp_path: Path, text: str) -> None:
    path = tmp_path / "constraints.json"
    path.write_text(text)
    with pytest.raises(PulseError, match="constraints-invalid"):
        read_constraints(path)


@pytest.mark.parametrize("cut", ["isa", "weights", "limits", "version", "kernels", "format"])
def test_tables_that_cannot_be_used(tmp_path: Path, fitted: Table, cut: str) -> None:
    data = json.loads(fitted.dumps())
    if cut == "weights":
        data["homes"]["l2"]["weights"]["call mmm"] = -1
    elif cut == "limits":
        data["machine"]["limits"]["flops"] = 0
    elif cut == "version":
        data["version"] = 99
    elif cut == "kernels":
        data["kernels"].append("v4_mmm_f32_64x1")
    else:
        del data[cut]
    path = tmp_path / "v3.json"
    path.write_text(json.dumps(data))
    with pytest.raises(PulseError, match="table-invalid"):
        tables.load(path)
    path.write_bytes(b"\xff\xfe not JSON")
    with pytest.raises(PulseError, match="table-invalid"):
        tables.load(path)
