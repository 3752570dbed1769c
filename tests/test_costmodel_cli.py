"""The commands around the cost model, on budgets of seconds."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
import synthetic_timings as synthetic
from click.testing import CliRunner, Result
from pulse.costmodel import table as tables
from pulse.costmodel.dataset import read_dataset, write_dataset

from pulse.cli import main
from pulse.engine.isa import available

MODEL = Path(__file__).parent.parent / "models" / "enc.onnx"
ISA = "v3"
QUICK = ("--rounds", "4", "--slice-us", "5")
pytestmark = pytest.mark.skipif(ISA not in available(), reason="this CPU has no kernels of v3")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and no tables but those made here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PULSE_ISA", ISA)
    monkeypatch.setattr(tables, "SHIPPED", tmp_path / "shipped")
    return tmp_path


@pytest.fixture
def dataset(here: Path) -> Path:
    data = synthetic.dataset(synthetic.products(80, homes=("l2", "l3")), synthetic.truth(3))
    path = here / "data.txt"
    path.write_text(write_dataset(data))
    return path


def run(*args: object) -> Result:
    return CliRunner().invoke(main, ["costmodel", *map(str, args)])


def error_of(result: Result) -> str:
    assert result.exit_code == 2, result.output
    return str(json.loads(result.stdout)["error"]["code"])


def test_from_timing_to_picks(here: Path) -> None:
    gathered = run("gather", "--sweep", "50", "--wide", "6", "--isa", ISA, "--homes", "l2", "-o", "d.txt", *QUICK)
    assert gathered.exit_code == 0, gathered.output
    assert "56 samples" in gathered.stdout
    assert "left" in gathered.stderr
    fitted = run("fit", "d.txt", "--constraints", constraints(here), "--resamples", "0")
    assert fitted.exit_code == 0, fitted.output
    assert "chosen" in fitted.stdout
    name = tables.file_name(ISA, read_dataset("d.txt").cpu)
    assert (tables.own_folder() / name).is_file()
    shown = run("show", "--json", "--product", "64,384,1")
    facts = json.loads(shown.stdout)
    assert facts["picked_by"] == "cpu table"
    assert Path(facts["table"]) == tables.own_folder() / name
    assert facts["regret"]["l2"]["count"] > 0
    assert facts["forecasts"][0]["product"] == "64 384 1 frame none l3"
    times = [ns for _, ns in facts["forecasts"][0]["kernels"]]
    assert times == sorted(times)
    assert "picks by n" in run("show").stdout


def constraints(folder: Path) -> Path:
    """None that a few quick samples could break."""
    path = folder / "none.json"
    path.write_text("[]")
    return path


def test_validate_compares_ways_to_pick(here: Path, dataset: Path) -> None:
    table = here / "v3.json"
    assert run("fit", dataset, "-o", table, "--constraints", constraints(here), "--resamples", "0").exit_code == 0
    dataset.rename(here / "v3.data.txt")
    options = ("--table", table, "--count", "12", "--homes", "l2", "--keep", "fresh.txt", *QUICK)
    result = run("validate", *options, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    row = found["homes"]["l2"]["rows"][0]
    assert set(row["ways"]) == {"this table", "absolute fit", "counting rule", "exact NR", "always 64x1"}
    assert found["products"] + found["seen"] == 16
    assert row["over_limit"]["count"] == row["count"] == row["ways"]["this table"]["count"]
    again = run("validate", *options)  # the timings are there already
    assert again.exit_code == 0
    assert "always 64x1" in again.stdout
    assert "time over limit" in again.stdout
    elsewhere = (here / "fresh.txt").read_text().replace("\ncpu ", "\ncpu Board ", 1)
    (here / "board.txt").write_text(elsewhere)
    judged = json.loads(run("validate", "--table", table, "--timed", "board.txt", "--json").stdout)
    assert judged["cpu"].startswith("Board ")
    assert judged["homes"]["l2"]["rows"][0]["ways"]["this table"] == row["ways"]["this table"]


def test_shapes_for_a_board(here: Path) -> None:
    assert run("shapes", "--sweep", "5", "--wide", "0", "--homes", "l2,cold").stdout.count("\n") == 11
    assert run("shapes", "--sweep", "0", "--wide", "0", MODEL, "-o", "list.txt").exit_code == 0
    listed = (here / "list.txt").read_text()
    assert "frame" in listed
    fresh = run("shapes", "--fresh", "--sweep", "9", "--homes", "l2").stdout
    assert fresh.count("\n") == 14
    assert "32 9 96 channel none l2" in fresh
    refused = run("shapes", "--sweep", "1", "-o", "list.txt")
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert (here / "list.txt").read_text() == listed
    assert run("gather", "--shapes", "list.txt", "--isa", ISA, *QUICK).exit_code == 0
    assert len(read_dataset("pulse-dataset.txt").samples) == listed.count("\n") - 1


def test_tables_are_not_written_over(here: Path, dataset: Path) -> None:
    options = (dataset, "-o", "t.json", "--constraints", constraints(here), "--resamples", "0", "--json")
    assert run("fit", *options).exit_code == 0
    before = (here / "t.json").read_bytes()
    assert error_of(run("fit", *options)) == "output-exists"
    assert (here / "t.json").read_bytes() == before
    assert run("fit", *options, "--force").exit_code == 0


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("fit", "missing.txt"), "file-not-found"),
        (("fit", "notes.txt"), "dataset-corrupt"),
        (("fit", "data.txt", "--isa", "neon"), "dataset-foreign"),
        (
            ("fit", "data.txt", "-o", "nowhere/t.json", "--resamples", "0", "--constraints", "none.json"),
            "output-unwritable",
        ),
        (("fit", "data.txt", "--constraints", "missing.json"), "file-not-found"),
        (("fit", "data.txt", "--constraints", "notes.txt"), "constraints-invalid"),
        (("fit", "data.txt", "--constraints", "hard.json", "--resamples", "0"), "constraints-unsatisfied"),
        (("show", "notes.txt"), "table-invalid"),
        (("show", "missing.json"), "file-not-found"),
        (("show", "--isa", "v9"), "usage"),
        (("show",), "usage"),
        (("validate", "--table", "notes.txt"), "table-invalid"),
    ],
)
def test_bad_input_is_told(here: Path, dataset: Path, args: tuple[str, ...], code: str) -> None:
    (here / "notes.txt").write_text("notes\n")
    (here / "hard.json").write_text('[{"product": "64 64 4 frame none l2", "one_of": ["*_nothing"]}]')
    constraints(here)
    assert error_of(run(*args, "--json")) == code


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("gather", "--shapes", "notes.txt"), "shapes-invalid"),
        (("gather", "--shapes", "missing.txt"), "file-not-found"),
        (("gather", "--isa", "v9"), "usage"),
        (("gather", "--core", "9999", "--sweep", "1", "--wide", "0"), "core-unavailable"),
        (("gather", "--sweep", "1", "--wide", "0", "-o", "nowhere/d.txt"), "output-unwritable"),
        (("gather", "missing.onnx"), "file-not-found"),
    ],
)
def test_bad_input_to_gather_is_told(here: Path, args: tuple[str, ...], code: str) -> None:
    (here / "notes.txt").write_text("notes\n")
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert f"pulse explain {code}" in result.stderr


def tune(*args: object) -> Result:
    return CliRunner().invoke(main, ["tune", *map(str, args)])


def test_tune_writes_hints_that_are_found_again(here: Path) -> None:
    from pulse.costmodel.products import products

    import pulse

    model = here / "enc.onnx"
    model.write_bytes(MODEL.read_bytes())
    result = tune(model, "--pulses", "1,4", "--rounds", "4", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["hints"] == f"{model}.hints.json"
    assert {row["pulse"] for row in found["products"]} == {1, 4}
    assert all(row["gain"] is None or row["gain"] >= 1 for row in found["products"])
    listed = products(pulse.convert(model, pulse=4), 4)
    assert listed
    assert {item.picked_by for item in listed} == {"hint"}
    assert error_of(tune(model, "--json")) == "output-exists"
    assert tune(model, "--pulses", "1", "--rounds", "4", "--force").exit_code == 0


def test_a_model_without_products_has_nothing_to_tune(here: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[1,S,4] x) => (float[1,S,4] y) { y = Relu(x) }'
    onnx.save(onnx.parser.parse_model(text), here / "plain.onnx")
    result = tune(here / "plain.onnx")
    assert result.exit_code == 2
    assert "there is nothing to tune here" in result.stderr
    assert "timed" not in result.stderr


@pytest.mark.parametrize("name", ["unet", "spectral_gate", "enc"])
def test_widths_are_counted_in_the_granularity_of_the_model(here: Path, name: str) -> None:
    model = Path(__file__).resolve().parent.parent / "models" / f"{name}.onnx"
    grain = {"unet": 8, "spectral_gate": 160, "enc": 1}[name]
    found = tune(model, "--rounds", 4, "--json", "-o", "h.json")
    assert found.exit_code == 0, found.output
    assert sorted({row["pulse"] for row in json.loads(found.stdout)["products"]}) == [grain * n for n in (1, 2, 4, 8)]
    assert len(run("shapes", model, "--sweep", 0, "--wide", 0, "--homes", "l3").stdout.splitlines()) > 4


def test_hints_can_be_named_or_left_out(here: Path) -> None:
    model = here / "enc.onnx"
    model.write_bytes(MODEL.read_bytes())
    assert tune(model, "--pulses", "4", "--rounds", "4", "-o", "other.json").exit_code == 0

    def picked_by(*more: str) -> set[str]:
        result = CliRunner().invoke(main, ["profile", str(model), "--pulse", "4", "--json", *more])
        assert result.exit_code == 0, result.output
        return {row["picked_by"] for row in json.loads(result.stdout)["steps"] if row["op"] == "product"}

    assert picked_by() == {"rule"}
    assert picked_by("--hints", "other.json") == {"hint"}
    (here / "other.json").rename(f"{model}.hints.json")
    assert picked_by() == {"hint"}
    assert picked_by("--hints", "none") == {"rule"}
    bad = CliRunner().invoke(main, ["profile", str(model), "--hints", "enc.onnx", "--json"])
    assert error_of(bad) == "hints-invalid"


def test_tune_takes_timings_from_another_machine(here: Path) -> None:
    assert run("shapes", "--sweep", "0", "--wide", "0", "--homes", "l3", MODEL, "-o", "list.txt").exit_code == 0
    assert run("gather", "--shapes", "list.txt", "--isa", ISA, "-o", "board.txt", *QUICK).exit_code == 0
    text = (here / "board.txt").read_text()
    (here / "board.txt").write_text(text.replace("\ncpu ", "\ncpu Board ", 1))
    result = tune(MODEL, "--dataset", "board.txt", "-o", "board.hints.json", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["cpu"].startswith("Board ")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((MODEL, "-o", "nowhere/h.json", "--pulses", "1", "--rounds", "4"), "output-unwritable"),
        (("missing.onnx",), "file-not-found"),
        ((MODEL, "--dataset", "notes.txt", "-o", "h.json"), "dataset-corrupt"),
        ((MODEL, "--isa", "v9", "-o", "h.json"), "usage"),
    ],
)
def test_bad_input_to_tune_is_told(here: Path, args: tuple[object, ...], code: str) -> None:
    (here / "notes.txt").write_text("notes\n")
    assert error_of(tune(*args, "--json")) == code
    assert not (here / "h.json").exists()
