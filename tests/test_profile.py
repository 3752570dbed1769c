"""`pulse profile`: one row per native step, joined with product, kernel and limit."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner, Result
from native_models import path_of

import pulse
import pulse.engine.native.profile as profiling
from pulse.cli.profile import command
from pulse.engine.isa import current
from pulse.engine.pick import kernels

pytestmark = pytest.mark.filterwarnings("ignore::pulse.PulseWarning")
ENC = path_of("models/enc", None)
STEP = {
    "name", "op", "us", "share", "m", "k", "n", "count", "kernel", "picked_by", "gflops", "limit_share", "regret",
}  # fmt: skip


def call(*args: str) -> Result:
    return CliRunner().invoke(command, args)


def test_json_has_the_agreed_keys_and_adds_up() -> None:
    found = json.loads(call(str(ENC), "--pulse", "4", "--json").stdout)
    assert {"model", "pulse", "cpu", "isa", "total_us", "python_us", "limit_us", "steps"} <= set(found)
    assert (found["model"], found["pulse"], found["isa"]) == ("enc.onnx", 4, current())
    assert 0 < found["limit_us"] < found["total_us"]
    assert 0 <= found["python_us"] < found["total_us"]
    assert all(set(row) >= STEP for row in found["steps"])
    assert sum(row["share"] for row in found["steps"]) == pytest.approx(1)
    names = {kernel.name for kernel in kernels(current())}
    products = [row for row in found["steps"] if row["op"] == "product"]
    assert products
    for row in products:
        assert row["kernel"] in names
        assert row["picked_by"]
        assert min(row["m"], row["k"], row["n"], row["count"]) >= 1
        flops = 2 * row["m"] * row["k"] * row["n"] * row["count"]
        assert row["gflops"] == pytest.approx(flops / row["us"] / 1e3, rel=1e-6)
    gru = next(row for row in found["steps"] if row["op"] == "gru")
    assert (gru["m"], gru["k"], gru["count"]) == (192, 64, 4)


def test_the_table_names_what_the_source_names() -> None:
    result = call(str(ENC), "--pulse", "2")
    assert result.exit_code == 0, result.output
    assert "/emb_gru/gru/GRU" in result.stdout
    assert "us a frame" in result.stdout
    assert "of it reached" in result.stdout


class Held:
    """A pulse of 50 us on a clock that other work takes for 4 ms out of every 10."""

    def __init__(self) -> None:
        self.now = 0

    def step(self, *_: object) -> None:
        before = self.now // 10_000_000
        self.now += 50_000
        self.now += 4_000_000 * (self.now // 10_000_000 - before)

    def time(self, _: int, count: int) -> float:
        start = self.now
        for _pulse in range(count):
            self.step()
        return (self.now - start) / count

    def profile(self, _: int) -> list[float]:
        return [20_000.0, self.time(0, 1) - 20_000.0]


def test_a_core_shared_with_others_does_not_lengthen_the_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = object.__new__(profiling._Bench)
    bench.runner = held = Held()  # type: ignore[assignment]
    bench.inputs, bench.outputs = {}, {}
    monkeypatch.setattr(profiling.time, "perf_counter_ns", lambda: held.now)
    total, _, parts = bench.measure()
    assert total == pytest.approx(50)
    assert sum(parts) == pytest.approx(50)


def test_progress_is_for_terminals(tmp_path: Path) -> None:
    assert call(str(ENC), "--try-kernels").stderr == ""


def test_other_kernels_are_tried_in_place(tmp_path: Path) -> None:
    saved = tmp_path / "enc.pulse2.onnx"
    pulse.convert(ENC, 2).save(saved)
    found = json.loads(call(str(saved), "--try-kernels", "--json").stdout)
    assert found["pulse"] == 2
    products = [row for row in found["steps"] if row["op"] == "product"]
    assert all(row["regret"] is not None and row["regret"] >= 0 for row in products)
    assert all(row["regret"] is None for row in found["steps"] if row["op"] != "product")


def test_widths_and_operators_that_cannot_be_are_told(tmp_path: Path) -> None:
    unet = call(str(path_of("models/unet", None)), "--pulse", "3").exception
    assert isinstance(unet, pulse.PulseError)
    assert unet.code == "illegal-pulse"
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,S,6] x) => (float[1,S,2] y) {
        two = Constant <value_ints: ints = [2]> ()
        y, places = TopK <axis: int = 2> (x, two)
    }"""
    path = tmp_path / "ranked.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    refused = call(str(path)).exception
    assert isinstance(refused, pulse.PulseError)
    assert refused.code == "engine-unsupported"
    assert "TopK" in refused.node
