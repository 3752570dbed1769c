"""Models and signals for the tests of live sound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from pulse.live.chain import Chain
from pulse.model import PulsedModel, open_model

ROOT = Path(__file__).resolve().parents[1]
GATE = ROOT / "models" / "spectral_gate.onnx"
RATE = 16000


def identity(shape: Sequence[int | str]) -> onnx.ModelProto:
    """A model that gives back what it is given."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def level_meter() -> onnx.ModelProto:
    """A detector on the waveform `[1,1,S]`: `level [1,1,S/160]`, the mean power of each 10 ms through a sigmoid."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, [1, 1, 160], [1 / 160] * 160)
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["power"]),
        helper.make_node("Conv", ["power", "w"], ["mean"], strides=[160], kernel_shape=[160]),
        helper.make_node("Sigmoid", ["mean"], ["level"]),
    ]
    graph = helper.make_graph(
        nodes,
        "level",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, "S"])],
        [helper.make_tensor_value_info("level", TensorProto.FLOAT, [1, 1, "T"])],
        [weight],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def gate() -> PulsedModel:
    return open_model(GATE)


def speechlike(seconds: float, channels: int = 1, seed: int = 3) -> np.ndarray:
    """`[channels, n]` of float32: syllables of noise over a quieter noise."""
    rng = np.random.default_rng(seed)
    n = int(seconds * RATE)
    loudness = 0.1 * np.clip(np.sin(2 * np.pi * 3 * np.arange(n) / RATE), 0, None) ** 2
    return (rng.standard_normal((channels, n)) * (loudness + 0.005)).astype(np.float32)


def through(chain: Chain, sound: np.ndarray, cuts: Sequence[int]) -> np.ndarray:
    """`sound` through a chain in pieces of these sizes, over and over, and the tail."""
    chain.reset()
    parts, start, turn = [], 0, 0
    while start < sound.shape[1]:
        size = cuts[turn % len(cuts)]
        parts.append(chain.push(np.ascontiguousarray(sound[:, start : start + size])).sound)
        start, turn = start + size, turn + 1
    return np.concatenate([*parts, chain.flush().sound], axis=1)
