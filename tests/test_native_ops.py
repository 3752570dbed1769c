"""Every operator with a native form, in every instruction set, against ONNX Runtime frame by frame.

The stream axis is one the operator leaves alone, so what is tested is the arithmetic, its layouts and its edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from oracle import Full, compare

import pulse
from pulse.engine.isa import available
from pulse.engine.native.compile import NativeModel
from pulse.engine.native.engine import NativeEngine

pytestmark = pytest.mark.filterwarnings("ignore::pulse.PulseWarning")
ISAS = [i for i in available() if i != "ref"]
FRAMES = 12
GROUPS = st.sampled_from(["one", "some", "each"])
RANDOM = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def model(
    nodes: list[onnx.NodeProto], x: list[Any], constants: dict[str, np.ndarray] | None = None, opset: int = 20
) -> onnx.ModelProto:
    """x -> nodes -> y, S being the stream axis of x."""
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, x)
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    tensors = [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "ops", [given], [made], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def check(
    proto: onnx.ModelProto,
    *,
    scale: float = 1.0,
    shift: float = 0.0,
    tol: float = 2e-6,
    widths: tuple[int, ...] = (1, 4),
) -> None:
    """Pulses of several widths in every instruction set equal the whole signal."""
    dynamic = pulse.convert(proto, "dynamic")
    port = dynamic.inputs[0]
    shape = [FRAMES if i == port.axis else int(d) for i, d in enumerate(port.shape)]
    signal = (scale * np.random.default_rng(1).standard_normal(shape) + shift).astype(np.float32)
    want = Full(proto)({"x": signal})
    for isa in ISAS:
        compiled = NativeModel(dynamic.proto, dynamic.info, isa)
        for width in widths:
            engine, parts = NativeEngine(compiled), []
            for at in range(0, FRAMES, width):
                frames = np.ascontiguousarray(signal.take(range(at, at + width), axis=port.axis))
                parts.append(engine.pulse({"x": frames}, width)["y"])
            got = {"y": np.concatenate(parts, axis=dynamic.outputs[0].axis)}
            compare({"y": want["y"]}, got, tol, f"{isa} at {width}")


def one(
    op: str,
    x: list[Any],
    *more: np.ndarray,
    tol: float = 2e-6,
    scale: float = 1.0,
    shift: float = 0.0,
    opset: int = 20,
    **attrs: Any,
) -> None:
    names = [f"c{i}" for i in range(len(more))]
    node = helper.make_node(op, ["x", *names], ["y"], **attrs)
    check(model([node], x, dict(zip(names, more, strict=True)), opset), tol=tol, scale=scale, shift=shift)


UNARY = (
    "Neg", "Abs", "Relu", "Sigmoid", "Tanh", "Exp", "Reciprocal", "Erf", "Floor", "Ceil", "Round", "Sign", "Sin", "Cos",
    "Tan", "Atan", "Sinh", "Cosh", "Asinh", "Softplus", "Softsign", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish",
    "Mish", "Gelu", "LeakyRelu", "ThresholdedRelu", "Shrink",
)  # fmt: skip


@pytest.mark.parametrize("op", UNARY)
@pytest.mark.parametrize("features", [1, 5, 37])
def test_functions(op: str, features: int) -> None:
    one(op, [1, "S", features], scale=3.0, tol=1e-5 if op in ("Tan", "Reciprocal") else 3e-6)


@pytest.mark.parametrize("op", ["Log", "Sqrt"])
def test_functions_of_positive_numbers(op: str) -> None:
    proto = model([helper.make_node("Abs", ["x"], ["a"]), helper.make_node(op, ["a"], ["y"])], [1, "S", 19])
    check(proto, scale=100.0)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "Mod", "PRelu"])
@pytest.mark.parametrize("other", [(), (7,), (3, 1), (3, 7), (1, 1, 3, 7)], ids=str)
def test_operations_with_constants_that_broadcast(op: str, other: tuple[int, ...]) -> None:
    value = np.abs(weights(*other)) + 0.5
    attrs = {"fmod": 1} if op == "Mod" else {}
    shift = 6.0 if op == "Pow" else 0.0
    one(op, [1, "S", 3, 7], value.astype(np.float32), tol=1e-5, shift=shift, **attrs)


@pytest.mark.parametrize("op", ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"])
def test_comparisons_choose(op: str) -> None:
    nodes = [
        helper.make_node("Round", ["x"], ["r"]),
        helper.make_node(op, ["r", "c"], ["t"]),
        helper.make_node("Not", ["t"], ["n"]),
        helper.make_node("Or", ["t", "n"], ["o"]),
        helper.make_node("And", ["t", "o"], ["a"]),
        helper.make_node("Where", ["a", "x", "c"], ["y"]),
    ]
    check(model(nodes, [1, "S", 9], {"c": np.round(weights(9))}))


@given(
    k=st.tuples(st.integers(1, 4), st.integers(1, 5)), stride=st.tuples(st.integers(1, 2), st.integers(1, 3)),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)), pad=st.tuples(*[st.integers(0, 3)] * 4),
    channels=st.integers(1, 20), bands=st.sampled_from([1, 2, 3, 7, 8, 16, 17, 33, 48]), group=GROUPS,
    last=st.sampled_from(["Relu", "LeakyRelu", "Sigmoid", None]), bias=st.booleans(),
)  # fmt: skip
@settings(max_examples=60, deadline=None, database=None)
def test_convolutions_over_bands(
    k: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int], pad: tuple[int, ...], channels: int,
    bands: int, group: str, last: str | None, bias: bool,
) -> None:  # fmt: skip
    """x [1, C, H, F] per frame, the frames being the batch: both axes of the kernel are the engine's own."""
    height = 6
    reach = [(kk - 1) * d + 1 for kk, d in zip(k, dilation, strict=True)]
    if height + pad[0] + pad[2] < reach[0] or bands + pad[1] + pad[3] < reach[1]:
        return
    groups = {"one": 1, "some": 2 if channels % 2 == 0 else 1, "each": channels}[group]
    made = channels if group == "each" else 2 * groups
    constants = {"w": weights(made, channels // groups, *k)} | ({"b": weights(made)} if bias else {})
    nodes = [
        helper.make_node("Conv", ["x", *constants], ["c"], strides=stride, dilations=dilation, pads=pad, group=groups),
        helper.make_node(last or "Identity", ["c"], ["y"]),
    ]
    check(model(nodes, ["S", channels, height, bands], constants), widths=(1, 2))


@given(
    k=st.integers(1, 6), stride=st.integers(1, 4), dilation=st.integers(1, 2), before=st.integers(0, 2),
    after=st.integers(0, 2), behind=st.integers(0, 3), channels=st.integers(1, 18),
    bands=st.sampled_from([1, 2, 5, 8, 16, 31]), group=GROUPS, act=st.booleans(),
)  # fmt: skip
@settings(max_examples=60, deadline=None, database=None)
def test_transposed_convolutions_over_bands(
    k: int, stride: int, dilation: int, before: int, after: int, behind: int, channels: int, bands: int, group: str,
    act: bool,
) -> None:  # fmt: skip
    full = (bands - 1) * stride + (k - 1) * dilation + 1
    if behind >= stride or full + behind - before - after < 1:
        return
    groups = {"one": 1, "some": 2 if channels % 2 == 0 else 1, "each": channels}[group]
    made = 1 if group == "each" else 3
    constants = {"w": weights(channels, made, 1, k), "b": weights(made * groups)}
    attrs = {
        "strides": [1, stride],
        "dilations": [1, dilation],
        "pads": [0, before, 0, after],
        "output_padding": [0, behind],
    }
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w", "b"], ["c"], group=groups, **attrs),
        helper.make_node("Relu" if act else "Identity", ["c"], ["y"]),
    ]
    check(model(nodes, [1, channels, "S", bands], constants), widths=(1, 4))


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("axes", [[2], [3], [2, 3], [0, 2]], ids=str)
@pytest.mark.parametrize(
    "op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
           "ReduceLogSumExp"],
)  # fmt: skip
def test_reductions(op: str, axes: list[int], keep: int) -> None:
    one(op, [1, "S", 5, 19], np.array(axes), keepdims=keep, tol=4e-6)


@pytest.mark.parametrize("axis", [0, 2, 3])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "LpNormalization"])
def test_rows(op: str, axis: int) -> None:
    one(op, [2, "S", 5, 19], axis=axis, scale=4.0)


@pytest.mark.parametrize("axis", [2, 3])
def test_layer_norm(axis: int) -> None:
    shape = (5, 19)[axis - 2 :]
    one("LayerNormalization", [1, "S", 5, 19], weights(*shape), weights(*shape), axis=axis, tol=4e-6, shift=3.0)


def test_norm_of_channels() -> None:
    """Over bands, the frames being the batch."""
    one("InstanceNormalization", ["S", 6, 19], weights(6), weights(6), tol=1e-5)


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_running_sums(exclusive: int, reverse: int) -> None:
    one("CumSum", [1, "S", 9, 4], np.array(2), exclusive=exclusive, reverse=reverse)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("shape", [[1, 5, "S", 18], ["S", 5, 7, 18], ["S", 5, 18]], ids=str)
@pytest.mark.parametrize("more", [{}, {"ceil_mode": 1}, {"pads": 1}, {"pads": 1, "count_include_pad": 1}], ids=str)
def test_pools(op: str, shape: list[Any], more: dict[str, int]) -> None:
    axes = len(shape) - 2
    kernel = [1, 3] if shape[2] == "S" else [2, 3][-axes:]
    attrs = dict(more)
    if op == "MaxPool":
        attrs.pop("count_include_pad", None)
    elif shape[2] == "S":
        attrs.pop("ceil_mode", None)
    if "pads" in attrs:
        attrs["pads"] = ([0, 1] if axes == 2 else [1]) * 2
    one(op, shape, kernel_shape=kernel, strides=[1, 2][-axes:], **attrs)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global_pools(op: str) -> None:
    one(op, ["S", 5, 4, 6])


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("scales", [(1, 1, 2, 3), (1, 1, 0.5, 1.5), (1, 1, 1, 2)], ids=str)
def test_resizing_bands(mode: str, scales: tuple[float, ...]) -> None:
    node = helper.make_node("Resize", ["x", "", "c"], ["y"], mode=mode)
    check(model([node], ["S", 3, 4, 8], {"c": np.array(scales, np.float32)}), tol=1e-5)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
def test_pads(mode: str) -> None:
    pads = np.array([0, 0, 1, 2, 0, 0, 2, 3])
    node = helper.make_node("Pad", ["x", "c"], ["y"], mode=mode)
    if mode == "wrap":
        with pytest.raises(pulse.PulseError, match="engine-unsupported"):
            check(model([node], [1, "S", 4, 6], {"c": pads}))
        return
    check(model([node], [1, "S", 4, 6], {"c": pads}))


def test_moves() -> None:
    """Slices with steps both ways, splits, gathers, tiles and joins, in one graph."""
    nodes = [
        helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["back"]),
        helper.make_node("Split", ["back"], ["l", "r"], axis=2, num_outputs=2),
        helper.make_node("Concat", ["r", "l", "r"], ["j"], axis=3),
        helper.make_node("Gather", ["j", "i"], ["g"], axis=3),
        helper.make_node("Tile", ["g", "n"], ["tiled"]),
        helper.make_node("Transpose", ["tiled"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("Reshape", ["turned", "flat"], ["y"]),
    ]
    constants = {
        "s": np.array([-1, 0]), "e": np.array([-100, 9]), "a": np.array([2, 3]), "t": np.array([-1, 2]),
        "i": np.array([[0, 4, 2], [7, 7, 1]]), "n": np.array([1, 1, 2, 1, 1]), "flat": np.array([1, -1, 36]),
    }  # fmt: skip
    nodes[5] = helper.make_node("Transpose", ["tiled"], ["turned"], perm=[0, 1, 4, 2, 3])
    check(model(nodes, [1, "S", 6, 10], constants))


def test_computed_matrices() -> None:
    """Attention over bands within a frame."""
    nodes = [
        helper.make_node("MatMul", ["x", "q"], ["a"]),
        helper.make_node("MatMul", ["x", "k"], ["b"]),
        helper.make_node("Transpose", ["b"], ["bt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["a", "bt"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "x"], ["m"]),
        helper.make_node("Einsum", ["m", "x"], ["y"], equation="bsfc,bsgc->bsfg"),
    ]
    check(model(nodes, [1, "S", 21, 6], {"q": weights(6, 5), "k": weights(6, 5)}), tol=1e-5)


@pytest.mark.parametrize("equation", ["bsgk,gkm->bsgm", "bsgk,gkm->bsmg", "bsgk,kg->bsg", "bsgk,km->bsmg"])
def test_einsum_with_weights(equation: str) -> None:
    shapes = {"gkm": (3, 7, 20), "kg": (7, 3), "km": (7, 20)}
    operand = equation.split(",")[1].split("->")[0]
    one("Einsum", [1, "S", 3, 7], weights(*shapes[operand]), equation=equation, tol=4e-6)


@pytest.mark.parametrize("op", ["GRU", "LSTM", "RNN"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("units", [1, 16, 21])
def test_recurrences_over_bands(op: str, direction: str, units: int) -> None:
    """The frames are the batch, so every frame has a recurrence of its own."""
    gates, ways = {"GRU": 3, "LSTM": 4, "RNN": 1}[op], 2 if direction == "bidirectional" else 1
    constants = {
        "w": weights(ways, gates * units, 5),
        "r": 0.3 * weights(ways, gates * units, units),
        "b": weights(ways, 2 * gates * units),
    }
    more = {"linear_before_reset": units % 2} if op == "GRU" else {}
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        helper.make_node(op, ["t", "w", "r", "b"], ["h"], hidden_size=units, direction=direction, **more),
        helper.make_node("Transpose", ["h"], ["y"], perm=[2, 0, 1, 3]),
    ]
    check(model(nodes, ["S", 9, 5], constants), tol=4e-6)
