"""Streams on bf16 weights: exact where the weights are, bounded where they are rounded, refused elsewhere."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from click.testing import CliRunner
from native_models import cut, noise, path_of, pulsed
from onnx import numpy_helper
from test_bf16_kernels import nearest

import pulse
from pulse.check import check
from pulse.cli import main
from pulse.engine.isa import available
from pulse.engine.native.compile import NativeModel, compiled
from pulse.engine.native.engine import NativeEngine
from pulse.engine.native.limit import products
from pulse.engine.native.net import build
from pulse.live.files import FileOptions, FileRunner
from pulse.live.session import LiveOptions, Session
from pulse.model import PulsedModel
from pulse.report import sweep

pytestmark = pytest.mark.filterwarnings("ignore::pulse.PulseWarning")
ENC = path_of("models/enc", None)
ENC_ERROR = 0.02  # of the largest value; 0.008 is measured, where float32 weights give 1e-6
FRAMES = 500
LAYERS = {  # 67 units and 131 features: odd, and no multiple of any vector
    "gru, r after R": "y, h = GRU<hidden_size=67, linear_before_reset=1>(b, w3, w4, w5)",
    "gru, r before R": "y, h = GRU<hidden_size=67>(b, w3, w4, w5)",
    "lstm": "y, h, c = LSTM<hidden_size=67>(b, w3, w4, w5)",
    "rnn": "y, h = RNN<hidden_size=131>(b, w3, w4, w5)",
}


def layered(kind: str, *, exact: bool, seed: int = 0) -> PulsedModel:
    """`x [S,1,131] -> z`: a linear layer, then a recurrence. exact: with weights that bf16 holds as they are."""
    gates = {"gru": 3, "lstm": 4, "rnn": 1}[kind[:4].rstrip(",")]
    units = 131 if kind == "rnn" else 67
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        net (float[S,1,131] x) => (float[S,1,{units}] z) {{
          a = MatMul (x, w1)  b = Tanh (a)  {LAYERS[kind]}  z = Squeeze (y, one) }}""")
    random = np.random.default_rng(seed)
    shapes = {
        "w1": (131, 131), "w3": (1, gates * units, 131), "w4": (1, gates * units, units), "w5": (1, 2 * gates * units),
    }  # fmt: skip
    for name, shape in shapes.items():
        values = (random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(nearest(values) if exact else values, name))
    model.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "one"))
    return pulse.convert(model, "dynamic")


def halved_steps(model: NativeModel, width: int) -> dict[str, int]:
    """How many steps of each kind read bf16 weights."""
    found: dict[str, int] = {}
    for step in model.at(width).plan.steps:
        if "_bf16_" in str(step.facts.get("kernel")) or step.args.get("half"):
            found[step.kind] = found.get(step.kind, 0) + 1
    return found


def run(model: NativeModel, ports: list[Any], signal: dict[str, np.ndarray], width: int) -> dict[str, np.ndarray]:
    engine, parts = NativeEngine(model), []
    for at in range(0, FRAMES // width * width, width):
        parts.append(engine.pulse(cut(ports, signal, at, at + width), width))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@pytest.mark.parametrize("isa", [isa for isa in available() if isa != "ref"])
@pytest.mark.parametrize("kind", LAYERS)
def test_weights_that_bf16_holds_change_nothing_over_500_frames(kind: str, isa: str) -> None:
    model = layered(kind, exact=True)
    signal = noise(model.inputs, FRAMES)
    plain = NativeModel(model.proto, model.info, isa)
    half = NativeModel(model.proto, model.info, isa, weights="bf16")
    for width in (1, 3, 4, 8):
        assert halved_steps(half, width) == {"product": 2, kind[:4].rstrip(","): 1}
        assert halved_steps(plain, width) == {}
        want, got = (run(form, model.inputs, signal, width)["z"] for form in (plain, half))
        assert np.abs(got - want).max() <= 1e-6


@pytest.mark.parametrize("kind", LAYERS)
def test_rounded_weights_stay_near_over_500_frames(kind: str) -> None:
    """8 significant bits are an error of 2^-9 per weight; sums of 131 and a recurrence keep it below 0.03 of 1."""
    model = layered(kind, exact=False, seed=1)
    signal = noise(model.inputs, FRAMES)
    want, got = (model.stream(weights=weights).push(signal)["z"] for weights in ("f32", "bf16"))
    assert 1e-5 < np.abs(got - want).max() < 0.03


def test_the_error_of_a_model_is_told_and_bounded() -> None:
    found = check(ENC, [1, 2, 3, 4, 8, "dynamic"], weights="bf16")
    assert found["ok"]
    for row in found["widths"]:
        assert row["max_error"] < 1e-5
        assert 1e-5 < row["weights_error"] < ENC_ERROR
    assert "weights_error" not in check(ENC, [2])["widths"][0]


def test_all_widths_give_the_same() -> None:
    model = pulsed(ENC, "dynamic")
    signal = noise(model.inputs, 96)
    results = []
    for chunk in (1, 2, 3, 4, 8, 16, 96):
        stream = model.stream(weights="bf16")
        parts = [stream.push(cut(model.inputs, signal, at, at + chunk)) for at in range(0, 96, chunk)]
        parts.append(stream.flush())
        results.append({p.name: np.concatenate([part[p.name] for part in parts], axis=p.axis) for p in model.outputs})
    for other in results[1:]:
        for name, want in results[0].items():
            assert np.abs(other[name] - want).max() <= 1e-5 * np.abs(want).max()


@pytest.mark.parametrize("order", [("f32", "bf16"), ("bf16", "f32")])
def test_snapshots_go_from_one_to_the_other(order: tuple[str, str]) -> None:
    model = pulsed(ENC, "dynamic")
    signal = noise(model.inputs, 96)
    first, second = (model.stream(weights=weights) for weights in order)
    parts = [first.push(cut(model.inputs, signal, 0, 40))]
    second.restore(first.snapshot())
    parts += [second.push(cut(model.inputs, signal, 40, 96)), second.flush()]
    whole = model.stream(engine="onnxruntime")
    wanted = [whole.push(signal), whole.flush()]
    for port in model.outputs:
        got, want = (np.concatenate([part[port.name] for part in found], axis=port.axis) for found in (parts, wanted))
        assert np.abs(got - want).max() <= ENC_ERROR * np.abs(want).max()
    again = model.stream(weights=order[0])
    again.restore(first.snapshot())
    want, got = first.flush(), again.flush()
    assert all(np.array_equal(got[name], want[name]) for name in want)


def test_small_and_huge_weights_stay_float32() -> None:
    cases = [(0.3, 62, {}), (0.3, 131, {"product": 1}), (3.39e38, 131, {})]
    for value, columns, expected in cases:
        weight = np.full((131, columns), value)
        graph = f"""<ir_version: 8, opset_import: ["" : 17]> g (float[S,131] x) => (float[S,{weight.shape[1]}] y) {{
            y = MatMul (x, w) }}"""
        proto = onnx.parser.parse_model(graph)
        proto.graph.initializer.append(numpy_helper.from_array(weight.astype(np.float32), "w"))
        model = pulse.convert(proto, 1)
        assert halved_steps(compiled(model, "bf16"), 1) == expected
        x = np.zeros((1, 131), np.float32)
        assert np.array_equal(model.stream(weights="bf16").push(x)["y"], np.zeros((1, weight.shape[1])))


def test_weights_take_half_the_memory_and_the_limit_counts_it() -> None:
    model = layered("gru, r after R", exact=False)
    works = {weights: products(build(model.proto, model.info, 4), weights) for weights in ("f32", "bf16")}
    assert [w.macs for w in works["f32"]] == [w.macs for w in works["bf16"]]
    assert [w.bytes for w in works["f32"]] == [2 * w.bytes for w in works["bf16"]]
    told = {
        weights: sum(int(step.facts.get("bytes", 0)) for step in compiled(model, weights).at(4).plan.steps)
        for weights in ("f32", "bf16")
    }
    assert told["f32"] == 2 * told["bf16"]


@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
def test_other_engines_refuse(engine: str) -> None:
    with pytest.raises(pulse.PulseError) as refused:
        pulsed(ENC, 2).stream(engine=engine, weights="bf16")
    assert (refused.value.code, refused.value.node) == ("usage", "weights")
    with pytest.raises(pulse.PulseError) as refused:
        sweep(ENC, [1], engines=["native", engine], weights="bf16", quick=True)
    assert refused.value.code == "usage"


def test_unknown_weights_are_refused() -> None:
    for weights in ("f16", "", None, 16):
        with pytest.raises(pulse.PulseError) as refused:
            pulsed(ENC, 2).stream(weights=weights)
        assert refused.value.code == "usage"


def test_a_model_that_is_not_native_is_refused_in_place_of_run_elsewhere() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,S,6] x) => (float[1,S,2] y) {
        two = Constant <value_ints: ints = [2]> ()
        y, places = TopK <axis: int = 2> (x, two)
    }"""
    model = pulse.convert(onnx.parser.parse_model(text), 1)
    assert model.stream().engine != "native"
    with pytest.raises(pulse.PulseError) as refused:
        model.stream(weights="bf16")
    assert refused.value.code == "engine-unsupported"


def call(*args: object) -> Any:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def test_commands_take_weights(tmp_path: Path) -> None:
    model = pulsed(ENC, 4)
    signal = noise(model.inputs, 33)
    np.savez(tmp_path / "in.npz", **signal)
    for weights in ("f32", "bf16"):
        result = call("run", ENC, tmp_path / "in.npz", tmp_path / f"{weights}.npz", "--pulse", 4, "--weights", weights)
        assert result.exit_code == 0, result.output
    plain, half = np.load(tmp_path / "f32.npz"), np.load(tmp_path / "bf16.npz")
    worst = max(np.abs(plain[name] - half[name]).max() / np.abs(plain[name]).max() for name in plain)
    assert 1e-5 < worst < ENC_ERROR
    told = call("check", ENC, "--pulse", 2, "--weights", "bf16")
    assert told.exit_code == 0
    assert "error by bf16 weights" in told.stdout
    profiles = [json.loads(call("profile", ENC, "--weights", w, "--json").stdout) for w in ("f32", "bf16")]
    assert [found["weights"] for found in profiles] == ["f32", "bf16"]
    assert not any("_bf16_" in row["kernel"] for row in profiles[0]["steps"] if row["op"] == "product")
    assert any("_bf16_" in row["kernel"] for row in profiles[1]["steps"] if row["op"] == "product")
    for command in ("run", "check", "profile", "sweep", "mic"):
        assert "--weights [f32|bf16]" in call(command, "--help").stdout


def test_kernels_are_tried_for_float32_weights_only() -> None:
    result = call("profile", ENC, "--try-kernels", "--weights", "bf16")
    assert result.exit_code == 2
    assert "--try-kernels" in result.stderr


def test_sweeps_and_sound_run_on_the_weights_asked_for(tmp_path: Path) -> None:
    found = sweep(ENC, [1], weights="bf16", quick=True)
    assert found["weights"] == "bf16"
    kernels = found["widths"][0]["kernels"]
    assert any("_bf16_" in kernel for kernel in kernels.values())
    gate = path_of("models/spectral_gate", None)
    runner = FileRunner(pulse.convert(gate), FileOptions(rate=16000, engine="onnxruntime", weights="bf16"))
    with wave.open(str(tmp_path / "in.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(np.zeros(16000, np.int16).tobytes())
    with pytest.raises(pulse.PulseError) as refused:
        runner.run(tmp_path / "in.wav", tmp_path / "out.wav")
    assert refused.value.node == "weights"
    with pytest.raises(pulse.PulseError) as refused:  # before any device is opened
        Session(pulse.convert(gate), LiveOptions(engine="onnxruntime", weights="bf16"))
    assert refused.value.node == "weights"
