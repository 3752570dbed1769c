"""`pulse sweep` and `pulse.report.sweep` on bundled models, with as little waiting as they allow."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import pulse
import pulse.report
from pulse.cli import main
from pulse.engine.timing import pinned
from pulse.errors import PulseError
from pulse.live.wav import WavWriter
from pulse.report import schedule
from pulse.report.bench import Bench, cut

pytest.importorskip("onnxruntime", reason="the engine that is swept here")

MODELS = Path(__file__).resolve().parent.parent / "models"
ENC = MODELS / "enc.onnx"


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick sweep of a fraction of a second."""
    monkeypatch.setattr(schedule, "QUICK_ROUNDS", 2)
    monkeypatch.setattr(schedule, "QUICK_PACED_S", 0.1)
    monkeypatch.setattr(schedule, "QUICK_HOT_S", 0.05)
    monkeypatch.setattr(schedule, "QUICK_INSIGHT_S", 0.01)


def run(*args: object) -> Result:
    return CliRunner().invoke(main, ["sweep", *(str(arg) for arg in args), "--quick", "--engines", "onnxruntime"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sweep")


@pytest.fixture
def swept(folder: Path) -> dict[str, Any]:
    """One sweep with all its files; the ways of telling it are compared below."""
    told = folder / "figures.json"
    if not told.exists():
        files = ["--html", folder / "s.html", "--csv", folder / "s.csv", "--plots", folder / "plots"]
        result = run(ENC, "--pulses", "1,2,4", "--frame-ms", 10, "--json", *files)
        assert result.exit_code == 0, result.output
        told.write_text(result.stdout)
    found = json.loads(told.read_text())
    assert isinstance(found, dict)
    return found


def test_figures_have_the_stable_keys(swept: dict[str, Any]) -> None:
    assert set(swept) >= {"model", "cpu", "isa", "frame_ms", "noisy", "recommended", "widths"}
    assert set(swept["recommended"]) >= {"pulse", "why"}
    assert (swept["model"], swept["frame_ms"], swept["engine"]) == ("enc.onnx", 10, "onnxruntime")
    assert [row["pulse"] for row in swept["widths"]] == [1, 2, 4]
    for row in swept["widths"]:
        assert set(row["us_per_pulse"]) == {"median", "p99", "p999", "max"}
        assert set(row["paced_us_per_pulse"]) == {"median", "p99", "max"}
        assert set(row["delay_ms"]) >= {"model", "buffering", "total"}
        assert row["kernels"] == {}


def test_figures_agree_with_one_another(swept: dict[str, Any]) -> None:
    for row in swept["widths"]:
        hot, paced, delay = row["us_per_pulse"], row["paced_us_per_pulse"], row["delay_ms"]
        assert 0 < hot["median"] <= hot["p99"] <= hot["p999"] <= hot["max"]
        assert 0 < paced["median"] <= paced["p99"] <= paced["max"]
        assert row["us_per_frame"] == pytest.approx(hot["median"] / row["pulse"])
        assert row["cpu_load"] == pytest.approx(paced["median"] / (10_000 * row["pulse"]))
        assert delay["model"] == 0
        assert delay["buffering"] == 10 * (row["pulse"] - 1)
        assert delay["total"] == pytest.approx(delay["buffering"] + paced["median"] / 1000)
        assert sum(row["families"].values()) == pytest.approx(1)
        assert sum(row["families_us_per_frame"].values()) == pytest.approx(row["us_per_frame"])
        assert sum(row["distribution"]["counts"]) == row["pulses"]["paced"] > 0
        assert row["weight_bytes"] > 100_000
        assert row["state_bytes"] == swept["widths"][0]["state_bytes"] > 0
    assert swept["noisy"] == bool(swept["noise"]["reasons"])


def test_the_spreadsheet_and_the_plots_say_the_same(swept: dict[str, Any], folder: Path) -> None:
    rows = list(csv.DictReader((folder / "s.csv").open()))
    assert [int(row["pulse"]) for row in rows] == [1, 2, 4]
    for line, row in zip(rows, swept["widths"], strict=True):
        assert float(line["us_per_frame"]) == row["us_per_frame"]
        assert float(line["delay_ms_total"]) == row["delay_ms"]["total"]
        assert float(line["us_per_frame_recurrent"]) == row["families_us_per_frame"]["recurrent"]
    assert sorted(p.name for p in (folder / "plots").iterdir()) == ["distribution.svg", "families.svg", "latency.svg"]
    latency = (folder / "plots" / "latency.svg").read_text()
    assert "var(" not in latency, "viewers without custom properties draw it too"
    assert "prefers-color-scheme:dark" in latency


def test_the_page_embeds_the_json(swept: dict[str, Any], folder: Path) -> None:
    page = (folder / "s.html").read_text()
    text = page.partition('id="figures">')[2].partition("</script>")[0]
    assert json.loads(text) == swept


def test_text_has_a_line_per_width_and_the_advice() -> None:
    result = run(ENC, "--pulses", "1,2", "--rate", 16000, "--hop", 160)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["1", "2"]
    assert "latency: 0 ms of the model + (pulse - 1) frames of 10 ms + paced compute" in lines
    assert any(line.startswith("recommended: P = ") for line in lines)
    assert "measuring, about" in result.stderr


def test_without_the_duration_of_a_frame_loads_and_delays_are_null(tmp_path: Path) -> None:
    result = run(ENC, "--pulses", "1,2", "--json", "--html", tmp_path / "s.html")
    row = json.loads(result.stdout)["widths"][0]
    assert row["cpu_load"] is None
    assert row["paced_us_per_pulse"] is None
    assert row["delay_ms"] == {"model": None, "buffering": None, "compute": None, "total": None}
    assert "give --frame-ms" in (tmp_path / "s.html").read_text()
    assert "need the duration of a frame: --frame-ms, or --rate and --hop" in run(ENC, "--pulses", 1).stdout


def test_illegal_widths_are_told_and_left_out() -> None:
    result = run(MODELS / "unet.onnx", "--pulses", "4,8,12", "--json")
    found = json.loads(result.stdout)
    assert [row["pulse"] for row in found["widths"]] == [8]
    assert [(s["pulse"], s["code"], s["legal"][:2]) for s in found["skipped"]] == [
        (4, "illegal-pulse", [8, 16]),
        (12, "illegal-pulse", [8, 16]),
    ]
    assert "P = 12 is left out" in result.stderr


def test_where_no_width_is_legal_it_says_which_are() -> None:
    result = run(MODELS / "unet.onnx", "--pulses", "3,5", "--json")
    assert result.exit_code == 2
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "illegal-pulse"
    assert "8, 16" in error["remedy"]


def test_default_widths_follow_the_granularity() -> None:
    found = pulse.report.sweep(MODELS / "unet.onnx", quick=True, engines=["onnxruntime"])
    assert [row["pulse"] for row in found["widths"]] == [8, 16, 32, 64, 128]


def test_a_pulsed_file_has_its_own_width(tmp_path: Path) -> None:
    pulse.convert(ENC, 2).save(tmp_path / "two.onnx")
    found = json.loads(run(tmp_path / "two.onnx", "--pulses", "1,2", "--json").stdout)
    assert [row["pulse"] for row in found["widths"]] == [2]
    assert [s["pulse"] for s in found["skipped"]] == [1]
    assert run(tmp_path / "two.onnx", "--pulses", "3").exit_code == 2
    pulse.convert(ENC).save(tmp_path / "any.onnx")
    found = json.loads(run(tmp_path / "any.onnx", "--pulses", "1,3", "--json").stdout)
    assert [row["pulse"] for row in found["widths"]] == [1, 3]


def test_budgets() -> None:
    result = run(ENC, "--pulses", "1,2,4", "--frame-ms", 10, "--budget-ms", 25, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["recommended"]["pulse"] in (1, 2)
    result = run(ENC, "--pulses", "4,8", "--frame-ms", 10, "--budget-ms", 25, "--json")
    assert result.exit_code == 1
    advice = json.loads(result.stdout)["recommended"]
    assert (advice["pulse"], advice["nearest"]["pulse"]) == (None, 4)
    assert advice["nearest"]["over_ms"] > 5
    result = run(ENC, "--budget-ms", 25)
    assert result.exit_code == 2
    assert "--frame-ms" in result.stderr


@pytest.fixture
def interrupting(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """The user presses Ctrl-C in the paced round of that number."""
    after, calls, paced = {"rounds": 0}, [0], Bench.run_paced

    def pressed(bench: Bench, pulses: int, period_ms: float) -> None:
        calls[0] += 1
        if calls[0] > after["rounds"]:
            raise KeyboardInterrupt
        paced(bench, pulses, period_ms)

    monkeypatch.setattr(Bench, "run_paced", pressed)
    return after


def test_an_interrupted_sweep_tells_what_it_has(interrupting: dict[str, int], tmp_path: Path) -> None:
    interrupting["rounds"] = 2
    result = run(ENC, "--pulses", "1,2,4", "--frame-ms", 10, "--json", "--html", tmp_path / "s.html")
    assert result.exit_code == 130
    found = json.loads(result.stdout)
    assert found["interrupted"] is True
    assert [row["pulse"] for row in found["widths"]] == [1, 2]
    assert found["widths"][0]["families"] is None
    assert "The sweep was interrupted" in (tmp_path / "s.html").read_text()


def test_an_interrupt_before_any_figure_is_an_interrupt(interrupting: dict[str, int]) -> None:
    with pytest.raises(KeyboardInterrupt):
        pulse.report.sweep(ENC, [1], frame_ms=10, quick=True, engines=["onnxruntime"])


def test_a_hog_on_the_same_core_makes_it_noisy() -> None:
    with pinned():  # the hog inherits the core
        hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        found = pulse.report.sweep(ENC, [1, 4], frame_ms=2, quick=True, engines=["onnxruntime"])
    finally:
        hog.kill()
        hog.wait()
    assert found["noisy"] is True
    assert "other programs took" in found["noise"]["reasons"][0]
    assert "too noisy" in found["recommended"]["why"]


def test_engines_are_compared(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        main, ["sweep", str(ENC), "--pulses", "1", "--engines", "onnxruntime,reference", "--quick", "--json"]
    )
    found = json.loads(result.stdout)
    assert found["engines"] == ["onnxruntime", "reference"]
    assert [row["engine"] for row in found["widths"]] == ["onnxruntime"]
    assert [row["engine"] for row in found["compared"]] == ["reference"]
    unknown = CliRunner().invoke(main, ["sweep", str(ENC), "--engines", "abacus", "--quick", "--json"])
    assert unknown.exit_code == 2
    assert json.loads(unknown.stdout)["error"]["code"] == "usage"


def test_the_native_engine_tells_families_and_kernels() -> None:
    pytest.importorskip("pulse._native", reason="the native module is not built")
    found = pulse.report.sweep(ENC, [1, 4], engines=["native"], quick=True)
    assert found["engine"] == "native"
    for row in found["widths"]:
        assert sum(row["families"].values()) == pytest.approx(1)
        assert {"convolution", "recurrent", "linear"} <= set(row["families"])
        assert set(row["products_us"]) == set(row["kernels"]) != set()
    for change in found["kernel_changes"]:
        assert len(set(change["kernels"].values())) == 2
        assert change["kernels"]["1"] == found["widths"][0]["kernels"][change["product"]]


def test_a_recording_is_fed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shapes = {"feat_erb": (1, 1, 7, 16), "feat_spec": (1, 2, 7, 32)}
    np.savez(tmp_path / "in.npz", **{n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()})
    for way in ("--data", "--input"):
        result = run(ENC, "--pulses", "2,16", way, tmp_path / "in.npz", "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["signal"] == "given"
    np.savez(tmp_path / "bad.npz", feat_erb=np.zeros((1, 1, 7, 9), np.float32), feat_spec=np.zeros((1, 2, 7, 32)))
    result = run(ENC, "--data", tmp_path / "bad.npz", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["code"] in ("wrong-shape", "wrong-dtype")
    assert run(ENC, "--data", tmp_path / "none.npz").exit_code == 2
    assert run(ENC, "--data", tmp_path / "in.npz", "--input", tmp_path / "in.npz").exit_code == 2


def test_sound_is_fed_and_gives_the_duration_of_a_frame(tmp_path: Path) -> None:
    with open(tmp_path / "in.wav", "wb") as out:
        writer = WavWriter(out, 16000, 2, "pcm16")
        writer.write(np.random.default_rng(0).standard_normal((2, 8000)).astype(np.float32) / 8)
        writer.finish()
    result = run(MODELS / "unet.onnx", "--pulses", "160,320", "--data", tmp_path / "in.wav", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["frame_ms"] == 1 / 16
    assert found["widths"][0]["delay_ms"]["model"] == pytest.approx(15 / 16)


def test_pulses_begin_the_signal_anew_where_it_ends() -> None:
    model = pulse.convert(ENC, 4)
    rng = np.random.default_rng(0)
    signal = {
        "feat_erb": rng.standard_normal((1, 1, 6, 16)).astype(np.float32),
        "feat_spec": rng.standard_normal((1, 2, 6, 32)).astype(np.float32),
    }
    (only,) = cut(model.inputs, signal, 4)
    assert np.array_equal(only["feat_spec"], signal["feat_spec"][:, :, :4])
    (wide,) = cut(model.inputs, signal, 9)
    assert np.array_equal(wide["feat_erb"][0, 0], signal["feat_erb"][0, 0][[0, 1, 2, 3, 4, 5, 0, 1, 2]])
    with pytest.raises(PulseError, match="at least one source frame"):
        cut(model.inputs, {name: array[:, :, :0] for name, array in signal.items()}, 4)


@pytest.mark.parametrize("option", ["--html", "--csv", "--plots"])
def test_what_cannot_be_written_is_told_before_measuring(tmp_path: Path, option: str) -> None:
    (tmp_path / "file").write_text("")
    result = run(ENC, "--pulses", 1, option, tmp_path / "file" / "out", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["code"] == "output-unwritable"
    assert "measuring" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [["--pulses", "dynamic"], ["--pulses", "0"], ["--budget-ms", "-1"], ["--hop", "160"], ["--cpu-budget", "x"]],
)
def test_bad_options_are_usage_errors(arguments: list[str]) -> None:
    assert run(ENC, *arguments).exit_code == 2


def test_widths_no_stream_would_have_are_refused() -> None:
    for widths, frame_ms in (([1 << 21], None), ([1 << 14], 10.0), ([True], None), ([0], None)):
        with pytest.raises(PulseError) as caught:
            pulse.report.sweep(ENC, widths, frame_ms=frame_ms, quick=True)
        assert caught.value.code == "illegal-pulse"
