"""`pulse kernels list` and `pulse kernels time`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result
from pulse.costmodel.pick import picker

from pulse import PulseError
from pulse.cli.kernels import command
from pulse.engine.isa import available, current
from pulse.engine.pick import kernels


def call(*args: str) -> Result:
    return CliRunner().invoke(command, args)


def test_list_names_every_kernel() -> None:
    result = call("list")
    assert result.exit_code == 0, result.output
    assert all(kernel.name in result.stdout for kernel in kernels(current()))


def test_list_as_json() -> None:
    found = json.loads(call("list", "--json").stdout)
    assert found["isa"] == current()
    assert found["available"] == available()
    assert found["cpu"]
    assert [row["name"] for row in found["kernels"]] == [kernel.name for kernel in kernels(current())]


def test_list_obeys_the_forced_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULSE_ISA", "ref")
    assert json.loads(call("list", "--json").stdout)["isa"] == "ref"
    monkeypatch.setenv("PULSE_ISA", "mmx")
    assert isinstance(call("list").exception, PulseError)


def test_time_as_json_has_the_agreed_keys() -> None:
    found = json.loads(call("time", "16", "24", "2", "--json").stdout)
    assert {"m", "k", "n", "isa", "cpu", "picked", "picked_by", "limit_ns", "kernels"} <= set(found)
    assert (found["m"], found["k"], found["n"]) == (16, 24, 2)
    assert found["picked"] == picker().pick(16, 24, 2, act="relu").kernel
    assert found["picked_by"] in {"cpu table", "isa table", "rule"}
    for row in found["kernels"]:
        assert set(row) == {"name", "median_ns", "min_ns", "gflops", "limit_share"}
        assert 0 < row["min_ns"] <= row["median_ns"]
        assert row["gflops"] == pytest.approx(2 * 16 * 24 * 2 / row["median_ns"])
        assert row["limit_share"] == pytest.approx(found["limit_ns"] / row["median_ns"])
    medians = [row["median_ns"] for row in found["kernels"]]
    assert medians == sorted(medians)
    assert found["picked"] in {row["name"] for row in found["kernels"]}


def test_time_as_a_table_marks_the_pick() -> None:
    result = call("time", "32", "9", "96", "--layout", "channel")
    assert result.exit_code == 0, result.output
    marked = [line.split()[0] for line in result.stdout.splitlines() if line.rstrip().endswith("picked")]
    assert marked == [picker().pick(32, 9, 96, layout="channel", act="relu").kernel]


@pytest.mark.parametrize("sizes", [("0", "1", "1"), ("1", "x", "1"), ("1", "1")])
def test_sizes_that_make_no_sense_are_usage_errors(sizes: tuple[str, ...]) -> None:
    assert call("time", *sizes).exit_code == 2
