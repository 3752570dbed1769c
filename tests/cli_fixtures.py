"""Fixtures of tests of the commands, taken in by conftest."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from cli_models import ENC, FRAMES, pulse, save
from onnx import helper


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
