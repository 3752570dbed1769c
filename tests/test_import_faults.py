"""Files that are no model, graphs that are wrong, paths that cannot be read or written: each is refused by its code."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from nets import from_text, plain
from onnx import helper
from refused import code

import pulse

ENC = Path(__file__).resolve().parent.parent / "models" / "enc.onnx"


# ---- files that are none


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not-onnx"),
    "one byte": (b"\x08", "not-onnx"),
    "zeros": (bytes(1000), "not-onnx"),
    "random": (np.random.default_rng(3).bytes(4096), "not-onnx"),
    "text": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "not-onnx"),
    "archive": (b"PK\x03\x04" + bytes(100), "not-onnx"),
    "a header alone": (onnx.ModelProto(ir_version=8, producer_name="x").SerializeToString(), "not-onnx"),
}
CUTS = (1, 7, 100, 1000, 20_000, ENC.stat().st_size // 2)


@pytest.mark.parametrize(("data", "wanted"), BAD.values(), ids=BAD.keys())
def test_files_that_are_no_model(tmp_path: Path, data: bytes, wanted: str) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(data)
    assert code(pulse.convert, path) == wanted
    assert code(pulse.convert, data) == wanted
    assert code(pulse.load, path) == wanted


@pytest.mark.parametrize("cut", CUTS)
def test_truncated_file(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(ENC.read_bytes()[:-cut])
    assert code(pulse.convert, path) in ("not-onnx", "invalid-model")
    pulsed = pulse.convert(ENC, pulse=4).proto.SerializeToString()
    path.write_bytes(pulsed[:-cut])
    assert code(pulse.load, path) in ("not-onnx", "invalid-model", "manifest-missing", "manifest-invalid")


def test_paths_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert code(pulse.convert, tmp_path / "absent.onnx") == "file-not-found"
    assert code(pulse.convert, tmp_path) == "file-unreadable"
    assert code(pulse.convert, ENC / "x.onnx") == "file-unreadable"
    assert code(pulse.convert, "a\0b.onnx") == "file-unreadable"
    assert code(pulse.convert, tmp_path / ("x" * 300)) == "file-unreadable"

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert code(pulse.convert, ENC) == "file-unreadable"


def test_a_pulsed_model_is_not_converted_again(tmp_path: Path) -> None:
    pulsed = pulse.convert(ENC, pulse=4)
    assert code(pulse.convert, pulsed.proto, pulse=8) == "already-pulsed"
    assert code(pulse.convert, pulsed.flat()) == "already-pulsed"


WIDE = {
    "Conv": "(float[1,5,S] x, float[4,4,3] w1) => (float y) { [bad] y = Conv(x, w1) }",
    "grouped Conv": "(float[1,6,S] x, float[4,4,3] w1) => (float y) { [bad] y = Conv<group = 2>(x, w1) }",
    "ConvTranspose": "(float[1,5,S] x, float[4,4,3] w1) => (float y) { [bad] y = ConvTranspose(x, w1) }",
    "GRU": (
        "(float[S,1,5] x, float[1,6,4] w1, float[1,6,2] w2) => (float y) { [bad] y = GRU<hidden_size = 2>(x, w1, w2) }"
    ),
    "LSTM": (
        "(float[S,1,5] x, float[1,8,4] w1, float[1,8,2] w2) => (float y) { [bad] y = LSTM<hidden_size = 2>(x, w1, w2) }"
    ),
    "BatchNormalization": (
        "(float[1,5,S] x, float[4] w1, float[4] w2, float[4] w3, float[4] w4) => (float y) "
        "{ [bad] y = BatchNormalization(x, w1, w2, w3, w4) }"
    ),
    "MatMul": "(float[1,S,5] x, float[4,4] w1) => (float y) { [bad] y = MatMul(x, w1) }",
}


@pytest.mark.parametrize("text", WIDE.values(), ids=WIDE.keys())
def test_features_that_do_not_fit_the_weights(text: str) -> None:
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(from_text(text))
    assert caught.value.code == "contradicting-shape"
    assert caught.value.node.startswith("bad")


UNKNOWN = {
    "another domain": (lambda n: setattr(n, "domain", "com.microsoft"), "unknown-op"),
    "an operator of no opset": (lambda n: setattr(n, "op_type", "Frobnicate"), "unknown-op"),
    "an operator of a later opset": (lambda n: setattr(n, "op_type", "Gelu"), "unknown-op"),
    "an input from nowhere": (lambda n: n.input.__setitem__(0, "nowhere"), "invalid-model"),
    "no input": (lambda n: n.ClearField("input"), "invalid-model"),
    "two outputs of one name": (lambda n: n.output.extend(["y", "y"]), "invalid-model"),
    "an attribute it does not have": (
        lambda n: n.attribute.append(helper.make_attribute("size", 3)),
        "invalid-model",
    ),
}


@pytest.mark.parametrize(("change", "wanted"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_graphs_that_are_wrong(change: Callable[[onnx.NodeProto], object], wanted: str) -> None:
    model = plain([1, "S", 80])
    change(model.graph.node[0])
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(model)
    assert caught.value.code == wanted
    if wanted == "unknown-op":
        assert caught.value.node.startswith("relu")


# ---- what cannot be written


def test_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pulsed = pulse.convert(plain([1, "S", 80]), pulse=3)
    kept = tmp_path / "kept.onnx"
    kept.write_bytes(b"what was there")
    (tmp_path / "folder").mkdir()
    assert code(pulsed.save, tmp_path / "absent" / "x.onnx") == "output-unwritable"
    assert code(pulsed.save, tmp_path / "folder") == "output-unwritable"
    assert code(pulsed.save, kept / "x.onnx") == "output-unwritable"
    assert code(pulsed.save, "a\0b.onnx") == "output-unwritable"

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert code(pulsed.save, kept) == "output-unwritable"
    monkeypatch.undo()
    assert kept.read_bytes() == b"what was there"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "kept.onnx"]
    pulsed.save(kept)
    assert pulse.load(kept).manifest == pulsed.manifest
