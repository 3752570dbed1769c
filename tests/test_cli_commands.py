"""The commands convert, inspect, check and run on the bundled encoder, and how they end on bad input."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from pulse import PulseError, convert
from pulse.check import check
from pulse.cli import main
from pulse.cli.tune import products_by_width
from pulse.model import READING

ENC = Path(__file__).resolve().parent.parent / "models" / "enc.onnx"
OUTPUTS = ["e0", "e1", "emb", "c0", "lsnr"]
FRAMES = 37


def pulse(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def error_of(result: Result) -> dict[str, str]:
    error = json.loads(result.stdout)["error"]
    assert isinstance(error, dict)
    return error


@pytest.fixture
def enc(tmp_path: Path) -> Path:
    return Path(shutil.copy(ENC, tmp_path / "enc.onnx"))


@pytest.fixture(scope="session")
def pulsed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pulsed") / "enc.pulse4.onnx"
    assert pulse("convert", ENC, "--pulse", 4, "--no-check", "-o", path).exit_code == 0
    return path


@pytest.fixture(scope="session")
def signal() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    shapes = {"feat_erb": (1, 1, FRAMES, 16), "feat_spec": (1, 2, FRAMES, 32)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def save(path: Path, nodes: list[onnx.NodeProto], output_shape: list[object]) -> Path:
    """A model `x [1,S,8] -> y` of a few nodes."""
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "S", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, output_shape)],
        [helper.make_tensor("axes", TensorProto.INT64, [1], [1])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return path


@pytest.fixture
def halving(tmp_path: Path) -> Path:
    """A stride of 2 on the stream axis: granularity 2."""
    path = tmp_path / "halving.onnx"
    weight = helper.make_node("Constant", [], ["w"], value=helper.make_tensor("v", 1, [8, 8, 3], [0.1] * 192))
    nodes = [
        weight,
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Conv", ["t", "w"], ["y"], pads=[1, 1], strides=[2], name="down"),
    ]
    return save(path, nodes, [1, 8, "T"])


@pytest.fixture
def averaging(tmp_path: Path) -> Path:
    return save(tmp_path / "mean.onnx", [helper.make_node("ReduceMean", ["x", "axes"], ["y"], name="pool")], [1, 1, 8])


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


BAD_SOURCES = {
    "absent": (None, "file-not-found"),
    "empty": (b"", "not-onnx"),
    "random": (np.random.default_rng(1).bytes(5000), "not-onnx"),
    "text": (b"version https://git-lfs.github.com/spec/v1\n", "not-onnx"),
    "truncated": (ENC.read_bytes()[:-2000], "not-onnx"),
}


@pytest.mark.parametrize("command", ["convert", "inspect", "check"])
@pytest.mark.parametrize(("content", "code"), BAD_SOURCES.values(), ids=BAD_SOURCES.keys())
def test_bad_source(tmp_path: Path, command: str, content: bytes | None, code: str) -> None:
    path = tmp_path / "bad.onnx"
    if content is not None:
        path.write_bytes(content)
    before = sorted(tmp_path.iterdir())
    result = pulse(command, path, *(["--pulse", 4] if command == "convert" else []), "--json")
    assert result.exit_code == 2, result.output
    assert error_of(result)["code"] == code
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--pulse", "4", "--input", "feats=1,1,S,16"], "unknown-input"),
        (["--pulse", "4", "--input", "feat_erb=1x1xSx16"], "bad-input-spec"),
        (["--pulse", "4", "--input", "feat_erb"], "bad-input-spec"),
        (["--pulse", "4", "--input", "feat_erb=1,1,S,16", "--input", "feat_erb=1,1,S,16"], "bad-input-spec"),
        (["--pulse", "4", "--input", "feat_erb=1,S,16"], "contradicting-shape"),
        (["--pulse", "4", "--outputs", "mask"], "unknown-output"),
        (["--pulse", "0"], "usage"),
        (["--pulse", "four"], "usage"),
        (["--pulse", "4", "--outputs", "emb,"], "usage"),
        (["--pulse", "4", "--hop", "160"], "usage"),
        (["--pulse", "4", "--rate", "16000", "--frame-ms", "10"], "usage"),
        ([], "usage"),
    ],
)
def test_bad_request(enc: Path, args: list[str], code: str) -> None:
    result = pulse("convert", enc, *args, "--json")
    assert result.exit_code == 2, result.output
    assert error_of(result)["code"] == code
    assert [path.name for path in enc.parent.iterdir()] == ["enc.onnx"]


GIVEN = (("--input", "feat_erb=1,1,S,16"), ("--outputs", "lsnr"), ("--length-multiple-of", 4))


@pytest.mark.parametrize("option", GIVEN, ids=lambda option: str(option[0]))
@pytest.mark.parametrize("command", ["inspect", "check", "profile", "tune", "sweep", "run"])
def test_how_to_read_a_source_is_not_asked_of_a_pulsed_model(
    pulsed: Path, command: str, option: tuple[str, object]
) -> None:
    """Passed over in silence, the option would seem to have been followed."""
    result = pulse(command, pulsed, *(["in", "out.npz"] if command == "run" else []), *option)
    assert result.exit_code == 2
    assert "found: a pulsed model" in result.stderr
    assert f"leave out {option[0]}" in result.stderr


@pytest.mark.parametrize("kind", ["a pulse of 4", "dynamic"])
def test_commands_take_a_pulsed_model_as_it_is(enc: Path, signal: dict[str, np.ndarray], kind: str) -> None:
    path, given, made = enc.with_name("own.onnx"), enc.with_name("in.npz"), enc.with_name("out.npz")
    np.savez(given, **signal)
    assert pulse("convert", enc, "--pulse", kind.split()[-1], "--no-check", "-o", path).exit_code == 0
    for command in ("inspect {}", "check {}", "profile {}", "profile {} --pulse 4", f"run {{}} {given} {made}"):
        result = pulse(*command.format(path).split())
        assert result.exit_code == 0, result.stderr
    wanted = 0 if kind == "dynamic" else 2
    assert pulse("profile", path, "--pulse", 8).exit_code == wanted
    assert list(products_by_width(str(path), [1, 4], dict.fromkeys(READING), "l3")) == (
        [1, 4] if kind == "dynamic" else [4]
    )


def test_outputs_may_be_named_as_parameters_are(tmp_path: Path) -> None:
    """`numpy.savez(file, allow_pickle=..., **arrays)` has such names of its own."""
    names = ["file", "allow_pickle", "args", "kwds", "a/b"]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], [name]) for name in names],
        "named",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "S", 8])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, "S", 8]) for name in names],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "named.onnx")
    x = np.ones((1, FRAMES, 8), np.float32)
    np.save(tmp_path / "x.npy", x)
    result = pulse("run", tmp_path / "named.onnx", tmp_path / "x.npy", tmp_path / "y.npz")
    assert result.exit_code == 0, result.stderr
    with np.load(tmp_path / "y.npz") as made:
        assert sorted(made) == sorted(names)
        for name in names:
            np.testing.assert_array_equal(made[name], x)


def test_a_pulsed_model_is_checked_at_its_own_width_only() -> None:
    made = convert(ENC, 4)
    assert check(made, [4])["ok"]
    for asked in ([8], [4, 8], ["dynamic"]):
        with pytest.raises(PulseError) as caught:
            check(made, asked)
        assert caught.value.code == "illegal-pulse"
    with pytest.raises(PulseError, match="--outputs"):
        check(made, outputs=["lsnr"])


def test_illegal_width_names_the_legal_ones(halving: Path) -> None:
    result = pulse("convert", halving, "--pulse", 3)
    assert result.exit_code == 2
    assert "multiple of 2" in result.stderr
    assert "`pulse explain illegal-pulse`" in result.stderr


def test_what_cannot_stream_is_refused_with_status_1(averaging: Path) -> None:
    result = pulse("convert", averaging, "--pulse", 4)
    assert result.exit_code == 1
    assert "`pool" in result.stderr
    assert "`pulse explain reduce-over-stream`" in result.stderr
    assert list(averaging.parent.iterdir()) == [averaging]


@pytest.mark.parametrize("target", ["enc.onnx", "absent/enc.onnx", "folder"])
def test_output_that_cannot_be_written(enc: Path, target: str) -> None:
    (enc.parent / "folder").mkdir()
    before = enc.read_bytes()
    result = pulse("convert", enc, "--pulse", 4, "--no-check", "-o", enc.parent / target, "--json")
    assert result.exit_code == 2
    assert error_of(result)["code"] == "output-unwritable"
    assert enc.read_bytes() == before
    assert sorted(path.name for path in enc.parent.iterdir()) == ["enc.onnx", "folder"]


def test_run_with_bad_arrays(pulsed: Path, signal: dict[str, np.ndarray], tmp_path: Path) -> None:
    def fails(code: str, **arrays: np.ndarray) -> None:
        np.savez(tmp_path / "in.npz", **arrays)
        result = pulse("run", pulsed, tmp_path / "in.npz", tmp_path / "out.npz")
        assert result.exit_code == 2, result.output
        assert f"`pulse explain {code}`" in result.stderr
        assert not (tmp_path / "out.npz").exists()

    erb, spec = signal["feat_erb"], signal["feat_spec"]
    fails("bad-npz", feats=erb, feat_spec=spec)
    fails("missing-input", feat_erb=erb)
    fails("frames-mismatch", feat_erb=erb[:, :, 1:], feat_spec=spec)
    fails("wrong-shape", feat_erb=erb[..., 1:], feat_spec=spec)
    fails("wrong-shape", feat_erb=erb[0], feat_spec=spec)
    fails("wrong-dtype", feat_erb=erb.astype(np.float64), feat_spec=spec)
    fails("bad-npz", feat_erb=np.array([{}], dtype=object), feat_spec=spec)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" + bytes(30), b"\x93NUMPY\x01\x00\xff\xff" + bytes(9)])
def test_run_with_a_damaged_file(pulsed: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "in.npz").write_bytes(content)
    result = pulse("run", pulsed, tmp_path / "in.npz", tmp_path / "out.npz")
    assert result.exit_code == 2, result.output
    assert "`pulse explain bad-npz`" in result.stderr


def test_run_needs_its_input_and_a_place_for_its_output(
    pulsed: Path, signal: dict[str, np.ndarray], tmp_path: Path
) -> None:
    assert "file-not-found" in pulse("run", pulsed, tmp_path / "no.npz", tmp_path / "out.npz").stderr
    np.savez(tmp_path / "in.npz", **signal)
    result = pulse("run", pulsed, tmp_path / "in.npz", tmp_path / "absent" / "out.npz")
    assert result.exit_code == 2
    assert "output-unwritable" in result.stderr
    several = pulse("run", pulsed, tmp_path / "in.npz", tmp_path / "out.npy")
    assert several.exit_code == 2
    assert "output-unwritable" in several.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.npz"]


def test_unknown_engine(pulsed: Path, signal: dict[str, np.ndarray], tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", **signal)
    result = pulse("run", pulsed, tmp_path / "in.npz", tmp_path / "out.npz", "--engine", "ort")
    assert result.exit_code == 2
    assert "onnxruntime" in result.stderr
    assert "`ort`" in result.stderr or "'ort'" in result.stderr
