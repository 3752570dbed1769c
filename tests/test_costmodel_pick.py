"""Picking: hint, table for this CPU, table for the instruction set, rule; and what falls back with a warning."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic_timings as synthetic
from pulse.costmodel import hints as hint_files
from pulse.costmodel import table as tables
from pulse.costmodel import tune
from pulse.costmodel.fit import fit
from pulse.costmodel.hints import Hint, Hints
from pulse.costmodel.pick import Picker, cpu, find_table, picker
from pulse.costmodel.products import products
from pulse.costmodel.shapes import Product
from pulse.costmodel.table import Table

import pulse
from pulse import PulseError, PulseWarning
from pulse.engine import pick as rule
from pulse.engine.isa import available
from pulse.engine.pick import kernels

MODEL = Path(__file__).parent.parent / "models" / "enc.onnx"
ISA = "v3"
NAMES = [kernel.name for kernel in kernels(ISA)] if ISA in available() else []
pytestmark = pytest.mark.skipif(not NAMES, reason="this CPU has no kernels of v3")


@pytest.fixture(scope="module")
def table() -> Table:
    return fit(synthetic.dataset(synthetic.products(120), synthetic.truth(2)), ISA, resamples=0)[0]


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Empty folders in place of the user's tables and of those that come with pulse."""
    shipped, own = tmp_path / "shipped", tmp_path / "data" / "pulse" / "tables"
    shipped.mkdir()
    own.mkdir(parents=True)
    monkeypatch.setattr(tables, "SHIPPED", shipped)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PULSE_ISA", ISA)
    return shipped, own


def a_hint(m: int, k: int, n: int, name: str, ns: float = 100.0) -> Hint:
    kernel = next(kernel for kernel in kernels(ISA) if kernel.name == name)
    return Hint(Product(m, k, n), {kernel.panel: (name, ns)})


def some_hints(name: str = "v3_mmm_f32_8x1", **change: object) -> Hints:
    hint = a_hint(64, 384, 1, name)
    return replace(Hints(cpu(), ISA, NAMES, found={hint_files.key_of(hint.product): hint}), **change)  # type: ignore[arg-type]


def write_hints(path: Path, *entries: Hints) -> Path:
    path.write_text(hint_files.dumps(entries, "enc.onnx"))
    return path


def test_the_order_is_hint_cpu_table_isa_table_rule(table: Table, folders: tuple[Path, Path], tmp_path: Path) -> None:
    shipped, own = folders
    assert picker().pick(64, 384, 1).by == "rule"
    (shipped / f"{ISA}.json").write_text(table.dumps())
    assert picker().pick(64, 384, 1).by == "isa table"
    (own / "v3-mine.json").write_text(replace(table, cpu=cpu()).dumps())
    assert picker().pick(64, 384, 1).by == "cpu table"
    write_hints(tmp_path / "enc.onnx.hints.json", some_hints())
    found = picker(tmp_path / "enc.onnx")
    assert found.pick(64, 384, 1) == found.pick(64, 384, 1)
    assert (found.pick(64, 384, 1).by, found.pick(64, 384, 1).kernel) == ("hint", "v3_mmm_f32_8x1")
    assert found.pick(64, 384, 2).by == "cpu table"
    assert picker(tmp_path / "enc.onnx", hints="none").pick(64, 384, 1).by == "cpu table"


def test_the_newest_table_of_this_cpu_wins(table: Table, folders: tuple[Path, Path]) -> None:
    for day in (1, 3, 2):
        made = replace(table, cpu=cpu(), date=f"2026-01-0{day}T00:00:00Z")
        (folders[1] / f"v3-{day}.json").write_text(made.dumps())
    found, by = find_table(ISA)
    assert found is not None
    assert (found.date, by) == ("2026-01-03T00:00:00Z", "cpu table")


def test_pickers_of_two_models_know_nothing_of_each_other(tmp_path: Path) -> None:
    write_hints(tmp_path / "a.onnx.hints.json", some_hints())
    a, b = picker(tmp_path / "a.onnx"), picker(tmp_path / "b.onnx")
    assert (a.pick(64, 384, 1).by, b.pick(64, 384, 1).by) == ("hint", "rule")


def test_a_table_never_picks_what_the_cpu_lacks(table: Table) -> None:
    ghosts = ["v3_mmm_f32_64x16", "v3_mmm_f32_128x1", "v3_dot_f32_8x8"]
    haunted = replace(table, kernels=[*table.kernels, *ghosts])
    found = Picker(ISA, haunted, "cpu table")
    for product in synthetic.products(60, 8):
        assert found.pick(product.m, product.k, product.n, layout=product.layout).kernel in NAMES


def test_a_table_of_too_few_kernels_is_passed_over(table: Table, folders: tuple[Path, Path]) -> None:
    (folders[0] / f"{ISA}.json").write_text(replace(table, kernels=NAMES[:4]).dumps())
    assert find_table(ISA) == (None, "rule")


def test_kernels_that_a_table_does_not_know_are_not_picked_by_it(table: Table) -> None:
    favourite = Picker(ISA, table, "cpu table").pick(768, 256, 4).kernel
    without = replace(table, kernels=[name for name in NAMES if name != favourite])
    assert Picker(ISA, without, "cpu table").pick(768, 256, 4).kernel != favourite


def test_a_corrupt_table_is_passed_over_with_a_warning(folders: tuple[Path, Path]) -> None:
    (folders[1] / f"{ISA}.json").write_text("{")
    with pytest.warns(PulseWarning, match="passed over"):
        assert find_table(ISA) == (None, "rule")


@pytest.mark.parametrize("layout", ["frame", "taps", "channel", "conv", "turn"])
@pytest.mark.parametrize("n", [1, 5])
def test_picks_can_take_the_layout_and_the_panel(table: Table, layout: str, n: int) -> None:
    found = Picker(ISA, table, "cpu table")
    for height in sorted({kernel.panel for kernel in kernels(ISA)}):
        choice = found.find(40, 64, n, layout=layout, panel=height)
        if choice is not None:
            kernel = next(kernel for kernel in kernels(ISA) if kernel.name == choice.kernel)
            assert kernel.panel == height
            assert kernel.family != "nl" or n == 1 or layout in ("channel", "conv")
            assert kernel.family != "dot" or layout == "frame" or (layout == "channel" and n == 1)


def test_one_panel_height_serves_all_widths(table: Table) -> None:
    found = Picker(ISA, table, "cpu table")
    height = found.panel(256, 128, (1, 2, 4, 8))
    assert height in {kernel.panel for kernel in kernels(ISA)}

    def loss(panel: int) -> float:
        picks = [(found.find(256, 128, n, panel=panel), found.find(256, 128, n)) for n in (1, 2, 4, 8)]
        return sum(own.ns / best.ns for own, best in picks if own and best and own.ns and best.ns)

    assert height is not None
    assert all(loss(height) <= loss(other) + 1e-9 for other in {kernel.panel for kernel in kernels(ISA)} if other > 1)


def test_without_table_or_hint_the_rule_is_asked() -> None:
    assert Picker(ISA).panel(256, 128, (1, 2)) is None
    assert Picker(ISA).find(256, 128, 1) is None
    assert Picker(ISA).pick(256, 128, 3).kernel == rule.pick(256, 128, 3, isa=ISA)
    with pytest.raises(PulseError, match="usage"):
        Picker(ISA).pick(0, 1, 1)
    with pytest.raises(PulseError, match="usage"):
        Picker(ISA).pick(8, 8, 1, panel=7)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cpu": "Another CPU"}, "Another CPU"),
        ({"isa": "v2"}, "instruction set v2"),
        ({"kernels": NAMES[:-1]}, "another list of kernels"),
        ({"kernels": [*NAMES, "v3_mmm_f32_64x9"]}, "another list of kernels"),
    ],
)
def test_hints_for_something_else_fall_back_with_one_warning(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    write_hints(tmp_path / "enc.onnx.hints.json", some_hints(**change))
    with pytest.warns(PulseWarning) as told:
        found = picker(tmp_path / "enc.onnx")
    assert len(told) == 1
    assert reason in str(told[0].message)
    assert "pulse tune" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found.pick(64, 384, 1).by == "rule"


def test_hints_of_an_artefact_are_found_under_its_sources_name(tmp_path: Path) -> None:
    write_hints(tmp_path / "enc.onnx.hints.json", some_hints())
    artefact = tmp_path / "enc.pulse4.onnx"
    assert picker(artefact, source="enc.onnx").pick(64, 384, 1).by == "hint"
    assert picker(artefact, source="/elsewhere/enc.onnx").pick(64, 384, 1).by == "hint"
    assert picker(artefact).pick(64, 384, 1).by == "rule"
    write_hints(tmp_path / "enc.pulse4.onnx.hints.json", some_hints("v3_mmm_f32_16x1"))
    assert picker(artefact, source="enc.onnx").pick(64, 384, 1).kernel == "v3_mmm_f32_16x1"


def test_hints_beside_a_model_that_are_corrupt_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "enc.onnx.hints.json").write_text("{}")
    with pytest.warns(PulseWarning, match="left out"):
        assert picker(tmp_path / "enc.onnx").pick(64, 384, 1).by == "rule"


@pytest.mark.parametrize("cut", ["version", "entries", "kernel", "panel", "count", "act"])
def test_hints_that_were_asked_for_must_be_good(tmp_path: Path, cut: str) -> None:
    data = json.loads(hint_files.dumps([some_hints()], "enc.onnx"))
    product = data["entries"][0]["products"][0]
    if cut == "kernel":
        product["panels"] = {"8": ["v3_mmm_f32_8x77", 1.0]}
    elif cut == "panel":
        product["panels"] = {"16": ["v3_mmm_f32_8x1", 1.0]}
    elif cut == "count":
        product["m"] = 0
    elif cut == "act":
        product["act"] = "gelu"
    else:
        del data[cut]
    path = tmp_path / "hints.json"
    path.write_text(json.dumps(data))
    with pytest.raises(PulseError, match="hints-invalid"):
        picker("enc.onnx", hints=path)
    with pytest.raises(PulseError, match="file-not-found"):
        picker("enc.onnx", hints=tmp_path / "none.json")


def test_the_engine_takes_the_hints_of_its_model(tmp_path: Path) -> None:
    path = tmp_path / "enc.onnx"
    path.write_bytes(MODEL.read_bytes())
    plain = products(pulse.convert(path, pulse=4), 4)
    target = max(plain, key=lambda item: item.product.flops)
    other = next(
        kernel for kernel in kernels(ISA) if kernel.name != target.kernel and kernel.family == "mmm" and kernel.nr == 1
    )
    hint = Hint(
        target.product, {kernel.panel: (kernel.name, 5000.0) for kernel in kernels(ISA) if kernel.family == "mmm"}
    )
    hint.panels[other.panel] = (other.name, 1.0)
    entry = Hints(cpu(), ISA, NAMES, found={hint_files.key_of(target.product): hint})
    write_hints(tmp_path / "enc.onnx.hints.json", entry)
    model = pulse.convert(path, pulse=4)
    hinted = next(item for item in products(model, 4) if item.product == target.product)
    assert hinted.picked_by == "hint"
    saved = tmp_path / "enc.pulse4.onnx"
    model.save(saved)
    assert any(item.picked_by == "hint" for item in products(pulse.load(saved), 4))
    without = pulse.load(saved)
    without.hints = "none"
    assert not any(item.picked_by == "hint" for item in products(without, 4))


def test_hints_are_the_best_kernel_per_panel_height(tmp_path: Path) -> None:
    shapes = [Product(48, 32, n) for n in (1, 2, 4)]
    ns = synthetic.truth(4)
    data = synthetic.dataset(shapes, ns, noise=0.0, outliers=0.0)
    made = tune.hints_from(data, ISA, {})
    for product in shapes:
        own = {k: ns(k, product) for k in kernels(ISA) if k.family != "nl" or product.n == 1}
        best = min(own, key=lambda k: own[k])
        assert made.kernel(product) == best.name
        for panel in {k.panel for k in own}:
            assert made.kernel(product, panel) == min((k for k in own if k.panel == panel), key=lambda k: own[k]).name
    path = write_hints(tmp_path / "hints.json", made)
    assert hint_files.load(path) == [replace(made, times={})]


def test_tuning_again_keeps_hints_for_other_cpus(tmp_path: Path) -> None:
    path = tmp_path / "enc.onnx.hints.json"
    tune.write(path, [some_hints(cpu="Another CPU")], "enc.onnx", force=False)
    tune.write(path, [some_hints()], "enc.onnx", force=False)
    assert [entry.cpu for entry in hint_files.load(path)] == ["Another CPU", cpu()]
    with pytest.raises(PulseError, match="output-exists"):
        tune.write(path, [some_hints()], "enc.onnx", force=False)
    with pytest.raises(PulseError, match="output-exists"):
        tune.check_room(path, ISA, force=False)
    tune.write(path, [some_hints("v3_mmm_f32_16x1")], "enc.onnx", force=True)
    assert [entry.kernel(Product(64, 384, 1)) for entry in hint_files.load(path)] == [
        "v3_mmm_f32_8x1",
        "v3_mmm_f32_16x1",
    ]
    path.write_text("notes")
    with pytest.raises(PulseError, match="output-exists"):
        tune.write(path, [some_hints()], "enc.onnx", force=False)
    assert path.read_text() == "notes"
