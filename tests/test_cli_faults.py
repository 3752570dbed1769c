"""How the commands end on bad input, and on what is passed to a pulsed model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from cli_models import ENC, FRAMES, error_of, pulse
from onnx import TensorProto, helper

from pulse import PulseError, convert
from pulse.check import check
from pulse.cli.tune import products_by_width
from pulse.model import READING

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
