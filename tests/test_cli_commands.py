"""The commands convert, inspect, check and run on the bundled encoder and small models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from cli_models import ENC, OUTPUTS, error_of, pulse
from onnx.reference import ReferenceEvaluator


def test_convert_writes_beside_the_source_and_says_what_it_made(enc: Path) -> None:
    result = pulse("convert", enc, "--pulse", 2)
    assert result.exit_code == 0, result.output
    target = enc.with_name("enc.pulse2.onnx")
    onnx.checker.check_model(str(target), full_check=True)
    assert f"written: {target}" in result.stdout
    assert "[1, 2, 2, 32]" in result.stdout
    assert "checked: equal to the full-signal model" in result.stdout
    assert sorted(path.name for path in enc.parent.iterdir()) == ["enc.onnx", "enc.pulse2.onnx"]


def test_convert_as_json(enc: Path) -> None:
    result = pulse("convert", enc, "--pulse", 4, "--no-check", "--rate", 16000, "--hop", 160, "--json")
    made = json.loads(result.stdout)
    assert made["pulse"] == 4
    assert made["granularity"] == 1
    assert made["check"] is None
    assert [port["name"] for port in made["outputs"]] == OUTPUTS
    assert {port["delay"] for port in made["outputs"]} == {0}
    assert {port["delay_ms"] for port in made["outputs"]} == {0.0}
    model = onnx.load(made["output"])
    assert made["states"] == len(model.graph.output) - len(OUTPUTS)
    assert made["state_bytes"] > 0


def test_convert_dynamic_and_flat(enc: Path) -> None:
    assert pulse("convert", enc, "--pulse", "dynamic", "--flat", "--no-check").exit_code == 0
    assert not onnx.load(enc.with_name("enc.pulsedyn.onnx")).functions


def test_convert_keeps_only_the_outputs_asked_for(enc: Path) -> None:
    result = pulse("convert", enc, "--pulse", 1, "--outputs", "c0", "--no-check", "--json")
    assert [port["name"] for port in json.loads(result.stdout)["outputs"]] == ["c0"]


def test_a_refusal_does_not_advise_to_leave_out_the_only_output(averaging: Path, tmp_path: Path) -> None:
    assert "--outputs" not in pulse("convert", averaging, "--pulse", 4).stderr
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,4,S] x) => (float[1,4,S] y, float[1,4,S] z) {
        m = GlobalAveragePool(x)
        y = Mul(x, m)
        z = Relu(x)
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "gated.onnx")
    assert "the outputs that can stream: --outputs z" in pulse("convert", tmp_path / "gated.onnx", "--pulse", 4).stderr


def test_inputs_without_the_signal_have_neither_rate_nor_delay(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,S,4] x, float[1,1,4] speaker) => (float[1,S,4] y) {
        y = Add(x, speaker)
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "told.onnx")
    source, pulsed = tmp_path / "told.onnx", tmp_path / "told.pulse4.onnx"
    for command in (["convert", source, "--pulse", 4], ["inspect", source], ["inspect", pulsed]):
        row = next(line for line in pulse(*command, "--frame-ms", 10).stdout.splitlines() if "speaker" in line)
        assert row.split("]")[1].split() == ["–"] * 4
    assert (
        json.loads(pulse("convert", source, "--pulse", 4, "--frame-ms", 10, "--json").stdout)["inputs"][1]["delay"] == 0
    )
    assert pulse("sweep", source, "--pulses", 1, "--quick", "--frame-ms", 2).exit_code == 0


def test_inspect(halving: Path) -> None:
    facts = json.loads(pulse("inspect", halving, "--frame-ms", 10, "--json").stdout)
    assert facts["symbol"] == "S"
    assert facts["granularity"] == 2
    assert facts["obstacles"] == []
    (output,) = facts["outputs"]
    assert output["rate"] == "1/2"
    assert output["delay_ms"] == output["delay"] * 20
    text = pulse("inspect", halving).stdout
    assert "granularity: 2 frames" in text
    assert "obstacles: none" in text


def test_inspect_names_the_obstacle(averaging: Path) -> None:
    facts = json.loads(pulse("inspect", averaging, "--json").stdout)
    (obstacle,) = facts["obstacles"]
    assert obstacle["code"] == "reduce-over-stream"
    assert obstacle["node"].startswith("pool")
    assert facts["outputs"][0]["delay"] is None
    text = pulse("inspect", averaging)
    assert text.exit_code == 0
    assert "reduce-over-stream at `pool" in text.stdout


def test_inspect_tells_nodes_with_the_same_trouble_together(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,4,time] x) => (float y, float[1,4,time] z, float w) {
        [one] y = GlobalAveragePool(x)
        z = Relu(x)
        [two] w = GlobalAveragePool(z)
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "pools.onnx")
    shown = pulse("inspect", tmp_path / "pools.onnx").stdout
    assert "reduce-over-stream at `one (GlobalAveragePool)`, `two (GlobalAveragePool)`" in shown
    assert shown.count("required: ") == shown.count("to do: ") == 1
    assert "outputs that do not stream: y, w" in shown
    assert "z      [1, 4, time]" in shown  # the model's own name for the length, as at the input
    assert "no output streams" in pulse("inspect", tmp_path / "pools.onnx", "--outputs", "y").stdout


def test_inspect_counts_shared_weights_once(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,S,2] x) => (float[1,S,2] y)
        <float[2,2] w = {1.0, 2.0, 3.0, 4.0}, float[5] unread = {1.0, 2.0, 3.0, 4.0, 5.0}> {
        c = Constant<value = float[2] {1.0, 2.0}>()
        a = MatMul(x, w)
        b = Add(a, c)
        y = MatMul(b, w)
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "twice.onnx")
    assert "parameters: 6\n" in pulse("inspect", tmp_path / "twice.onnx").stdout


def test_inspect_shows_the_fact_of_every_value(halving: Path) -> None:
    assert "stream [1,8,S] axis 2 rate 1 delay 0" in pulse("inspect", halving, "--facts").stdout


def test_check_of_several_widths(enc: Path) -> None:
    result = pulse("check", enc, "--pulses", "1,3,dynamic", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["ok"] is True
    assert [row["pulse"] for row in found["widths"]] == [1, 3, "dynamic"]
    assert all(row["ok"] and row["max_error"] < 1e-4 for row in found["widths"])


def test_check_of_a_pulsed_file_away_from_its_source(pulsed: Path, enc: Path, averaging: Path) -> None:
    found = json.loads(pulse("check", pulsed, "--source", enc, "--json").stdout)
    assert [row["pulse"] for row in found["widths"]] == [4]
    assert found["ok"] is True
    for options in ([], ["--source", averaging]):
        missing = pulse("check", pulsed, *options, "--json")
        assert missing.exit_code == 2
        assert error_of(missing)["code"] == "source-missing"
    assert error_of(pulse("check", pulsed, "--source", "absent.onnx", "--json"))["code"] == "file-not-found"
    assert error_of(pulse("check", enc, "--source", enc, "--json"))["code"] == "usage"


@pytest.mark.parametrize("chunk", [1, 4, 10, 1000])
def test_run_gives_the_full_signal_output(
    pulsed: Path, signal: dict[str, np.ndarray], tmp_path: Path, chunk: int
) -> None:
    np.savez(tmp_path / "in.npz", **signal)
    result = pulse("run", pulsed, tmp_path / "in.npz", tmp_path / "out.npz", "--chunk", chunk)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    wanted = dict(zip(OUTPUTS, ReferenceEvaluator(str(ENC)).run(OUTPUTS, signal), strict=True))
    found = np.load(tmp_path / "out.npz")
    assert set(found) == set(OUTPUTS)
    for name, full in wanted.items():
        assert found[name].shape == full.shape
        np.testing.assert_allclose(found[name], full, atol=1e-5 * np.abs(full).max())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npz", "out.npz"]


def test_run_takes_a_source_model_and_a_bare_array(halving: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((1, 11, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    result = pulse("run", halving, tmp_path / "x.npy", tmp_path / "y.npy")
    assert result.exit_code == 0, result.output
    (full,) = ReferenceEvaluator(str(halving)).run(None, {"x": x})
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), full, atol=1e-5)


@pytest.mark.parametrize("name", ["y.wav", "y.txt", "y"])
def test_arrays_are_not_written_under_another_name(halving: Path, tmp_path: Path, name: str) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 11, 8), np.float32))
    result = pulse("run", halving, tmp_path / "x.npy", tmp_path / name)
    assert result.exit_code == 2
    assert "a name that ends in .npz or .npy" in result.stderr
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["x", "input.1"])
def test_a_file_of_other_names_is_answered_with_the_right_ones(tmp_path: Path, name: str) -> None:
    """The remedy holds code that works: it saves what the model takes."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1,S] a, float[1,S] b) => (float[1,S] y) { y = Add(a, b) }'
    )
    model.graph.input[0].name = model.graph.node[0].input[0] = name
    onnx.save(model, tmp_path / "sum.onnx")
    array = np.ones((1, 5), np.float32)
    np.savez(tmp_path / "in.npz", u=array, v=array)
    result = pulse("run", tmp_path / "sum.onnx", tmp_path / "in.npz", tmp_path / "out.npz", "--engine", "native")
    assert result.exit_code == 2
    code = result.stderr.split("save them by name: `")[1].split("`")[0].replace("...", "array")
    exec(code, {"np": np, "array": array, "path": tmp_path / "in.npz"})
    result = pulse("run", tmp_path / "sum.onnx", tmp_path / "in.npz", tmp_path / "out.npz")
    assert result.exit_code == 0, result.output


FIXED = {
    "elementwise": ("[1,4,100]", "x=1,4,S", "m = Relu(x) y = Relu(m)", True),
    "convolution": ("[1,4,100]", "x=1,4,S", "m = Conv<pads=[1,1]>(x, w) y = Relu(m)", True),
    "two axes opened in turn": (
        "[1,8,4]",
        "x=1,S,4",
        "m = Transpose<perm=[0,2,1]>(x) y = Conv<pads=[2,0]>(m, w)",
        True,
    ),
    "length baked in": ("[1,4,100]", "x=1,4,S", "m = Reshape(x, flat) y = Relu(m)", False),
}


@pytest.mark.parametrize(("declared", "given", "body", "streams"), FIXED.values(), ids=FIXED.keys())
def test_an_export_of_one_length_streams_once_its_axis_is_named(
    tmp_path: Path, declared: str, given: str, body: str, streams: bool
) -> None:
    graph = f"g (float{declared} x) => (float y) <int64[2] flat = {{4, 100}}> {{{body}}}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {graph}')
    weights = np.random.default_rng(0).standard_normal((4, 4, 3)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    path = tmp_path / "fixed.onnx"
    onnx.save(onnx.shape_inference.infer_shapes(model), path)  # exporters leave the sizes of inner values behind
    plain = pulse("convert", path, "--pulse", 4)
    assert plain.exit_code == 2
    assert f"--input {given}, if axis {given.split('=')[1].split(',').index('S')} is the signal's" in plain.stderr
    made = pulse("convert", path, "--pulse", 4, "--input", given)
    assert made.exit_code == (0 if streams else 1), made.output
    assert ("checked: equal to the full-signal model" in made.stdout) == streams
