"""Shapes that exporters compute in the graph, and which axis of an input streams."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nets import from_text, plain
from oracle import assert_streams
from refused import code

import pulse

ENC = Path(__file__).resolve().parent.parent / "models" / "enc.onnx"
LENGTHS = (1, 2, 11, 16)


# ---- what exporters compute


def test_if_around_a_squeeze() -> None:
    """As scripted models have it: the rank is looked up before an axis is removed."""
    model = from_text(
        """(float[1,1,S,4] x, float[4,3] w1) => (float y) <int64[1] axes = {1}> {
        shape = Shape(x) one = Gather(shape, s1) alone = Equal(one, s1)
        a = If (alone) <
          then_branch = g1 () => (float t) { t = Squeeze(x, axes) },
          else_branch = g2 () => (float f) { f = Identity(x) }
        >
        y = MatMul(a, w1) }""",
        opset=13,
    )
    assert_streams(model, widths=(1, 4), lengths=LENGTHS, delays={"y": 0})


def test_if_that_depends_on_the_length_is_refused() -> None:
    model = from_text(
        """(float[1,S,4] x) => (float y) {
        shape = Shape(x) frames = Gather(shape, s1) long = Greater(frames, s100)
        y = If (long) <
          then_branch = g1 () => (float t) { t = Relu(x) },
          else_branch = g2 () => (float f) { f = Neg(x) }
        > }"""
    )
    assert code(pulse.convert, model) == "depends-on-length"


GRU = "y = GRU<hidden_size = 5>(t, w1, w2, w3, , h0)"
STARTS = {
    "ConstantOfShape": """shape = Shape(x) batch = Gather(shape, v0) dims = Concat<axis = 0>(v1, batch, v5)
        h0 = ConstantOfShape(dims)""",
    "ConstantOfShape of ones": """shape = Shape(x) batch = Gather(shape, v0) dims = Concat<axis = 0>(v1, batch, v5)
        h0 = ConstantOfShape<value = float[1] {1.0}>(dims)""",
    "Expand": """shape = Shape(x) batch = Slice(shape, v0, v1) dims = Concat<axis = 0>(v1, batch, v5)
        h0 = Expand(w4, dims)""",
    "Where on Equal": """shape = Shape(x) batch = Gather(shape, s0) b = Unsqueeze(batch, v0)
        dims = Concat<axis = 0>(v1, b, v5) asked = Concat<axis = 0>(vm1, b, vm1) given = Shape(w4)
        minus = ConstantOfShape<value = int64[1] {-1}>(v3) kept = Equal(asked, minus)
        ones = ConstantOfShape<value = int64[1] {1}>(v3)
        final = Where(kept, ones, asked) h0 = Expand(w4, final)""",
    "product of dims": """shape = Shape(x) n = Size(w4) first = Gather(shape, s0) total = Mul(first, s1)
        b = Reshape(total, vm1) five = Reshape(n, vm1) dims = Concat<axis = 0>(v1, b, five)
        h0 = ConstantOfShape(dims)""",
    "Tile": "shape = Shape(x) batch = Gather(shape, v0) reps = Concat<axis = 0>(v1, batch, v1) h0 = Tile(w4, reps)",
}


@pytest.mark.parametrize("batch", [1, "batch"])
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS.keys())
def test_initial_states_made_from_shapes(start: str, batch: int | str) -> None:
    model = from_text(
        f"""(float[{batch},S,4] x, float[1,15,4] w1, float[1,15,5] w2, float[1,30] w3, float[1,1,5] w4) => (float y)
        {{ {start} t = Transpose<perm = [1,0,2]>(x) {GRU} }}"""
    )
    pulsed = assert_streams(model, widths=(1, 4), lengths=LENGTHS, delays={"y": 0})
    assert len(pulsed.states) in (1, 2)  # a start that is not zero needs the position


def test_initial_state_of_the_wrong_batch_is_told() -> None:
    model = from_text(
        f"""(float[1,S,4] x, float[1,15,4] w1, float[1,15,5] w2, float[1,30] w3) => (float y)
        {{ shape = Shape(x) frames = Gather(shape, v1) dims = Concat<axis = 0>(v1, frames, v5)
        h0 = ConstantOfShape(dims) t = Transpose<perm = [1,0,2]>(x) {GRU} }}"""
    )
    assert code(pulse.convert, model) in ("contradicting-shape", "depends-on-length")


LENGTH = "shape = Shape(x) frames = Gather(shape, s1) real = Cast<to = 1>(frames)"
ARITHMETIC = {
    "halves and doubles": (
        f"{LENGTH} half = Div(real, two) low = Floor(half) n = Cast<to = 7>(low) twice = Mul(n, s2)"
        " e = Reshape(twice, vm1) y = Slice(x, v0, e, v1)",
        2,
    ),
    "rounds up": (
        f"{LENGTH} half = Div(real, two) high = Ceil(half) n = Cast<to = 7>(high) twice = Mul(n, s2)"
        " more = Sub(twice, frames) z = Reshape(more, vm1) pads = Concat<axis = 0>(v0, v0, v0, v0, z, v0)"
        " y = Pad(x, pads)",
        2,
    ),
    "integer division": (
        "shape = Shape(x) frames = Gather(shape, s1) n = Div(frames, s3) third = Mul(n, s3) e = Reshape(third, vm1)"
        " y = Slice(x, v0, e, v1)",
        3,
    ),
    "frames of four": (
        "shape = Shape(x) frames = Gather(shape, s1) n = Div(frames, s4) whole = Mul(n, s4) e = Reshape(whole, vm1)"
        " cut = Slice(x, v0, e, v1) rows = Reshape(n, vm1) dims = Concat<axis = 0>(v1, rows, v16)"
        " y = Reshape(cut, dims)",
        4,
    ),
    "modulo": (
        "shape = Shape(x) frames = Gather(shape, s1) over = Mod(frames, s2) whole = Sub(frames, over)"
        " e = Reshape(whole, vm1) y = Slice(x, v0, e, v1)",
        2,
    ),
    "at least four frames": (
        "shape = Shape(x) frames = Gather(shape, s1) n = Max(frames, s4) more = Sub(n, frames) z = Reshape(more, vm1)"
        " pads = Concat<axis = 0>(v0, v0, v0, v0, z, v0) y = Pad(x, pads)",
        1,
    ),
}


@pytest.mark.parametrize(("body", "granule"), ARITHMETIC.values(), ids=ARITHMETIC.keys())
def test_arithmetic_on_lengths(body: str, granule: int) -> None:
    model = from_text(f"(float[1,S,4] x) => (float y) <float two = {{2.0}}> {{ {body} }}")
    pulsed = assert_streams(model, widths=(1, 3, "dynamic"), lengths=(1, 2, 3, 4, 5, 10, 12), least=False)
    assert granule % pulsed.granularity == 0


BAKED = {
    "reshape": ("y = Reshape(x, dims)", "length-mismatch"),
    "expand": ("y = Expand(w1, dims)", "no-streaming-output"),
    "mask": ("y = Mul(x, w2)", "length-mismatch"),
    "zeros": ("z = ConstantOfShape<value = float[1] {0.5}>(dims) y = Add(x, z)", "length-mismatch"),
    "slice": ("y = Slice(x, v0, v100, v1)", "first-frames-only"),
}


@pytest.mark.parametrize(("body", "wanted"), BAKED.values(), ids=BAKED.keys())
def test_baked_lengths_are_refused(body: str, wanted: str) -> None:
    """A length of 100 frames, traced into the graph as a number."""
    model = from_text(
        "(float[1,S,4] x, float[1,1,4] w1, float[1,100,4] w2) => (float y) "
        f"<int64[3] dims = {{1, 100, 4}}> {{ {body} }}"
    )
    assert code(pulse.convert, model) == wanted


# ---- which axis streams


@pytest.mark.parametrize(
    ("dims", "axis", "shape"),
    [
        (["batch", "time", 80], 1, (1, 3, 80)),
        (["N", 80, "T"], 2, (1, 80, 3)),
        (["batch_size", "num_frames", 80], 1, (1, 3, 80)),
        ([1, None, 80], 1, (1, 3, 80)),
        (["T", 1, 80], 0, (3, 1, 80)),
        ([1, "batch", 80], 1, (1, 3, 80)),
    ],
    ids=str,
)
def test_the_axis_is_found(dims: list[int | str | None], axis: int, shape: tuple[int, ...]) -> None:
    (port,) = pulse.convert(plain(dims), pulse=3).inputs
    assert (port.axis, port.shape) == (axis, shape)


@pytest.mark.parametrize(
    ("dims", "wanted"),
    [
        ([1, 100, 80], "no-stream-axis"),
        (["batch", 100, 80], "no-stream-axis"),
        (["batch", "time", "freq"], "ambiguous-stream-axis"),
        ([1, "H", "W"], "ambiguous-stream-axis"),
        ([1, "S", "S"], "two-stream-axes"),
        ([None, None, 80], "ambiguous-stream-axis"),
        ([0, "T", 80], "ambiguous-stream-axis"),
        ([-1, "T", 80], "ambiguous-stream-axis"),
    ],
    ids=str,
)
def test_the_axis_is_asked_for(dims: list[int | str | None], wanted: str) -> None:
    model = plain(dims)
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(model)
    assert caught.value.code == wanted
    assert "--input x=1,S,80" in caught.value.remedy or "--input NAME=DIMS" in caught.value.remedy
    (port,) = pulse.convert(model, pulse=3, inputs={"x": "1,S,80"}).inputs
    assert (port.axis, port.shape) == (1, (1, 3, 80))


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ("1,S,80", (1, 3, 80)),
        ("1,S,80,f32", (1, 3, 80)),
        (" 1 , S , 80 , F32 ", (1, 3, 80)),
        ("1,frames,40", (1, 3, 40)),
        ("1,2*S,80", (1, 6, 80)),
        ("1, 2 * S, 80", (1, 6, 80)),
    ],
)
def test_shapes_given_by_the_user(given: str, shape: tuple[int, ...]) -> None:
    model = plain([1, 100, 80])
    pulsed = pulse.convert(model, pulse=3, inputs={"x": given})
    assert pulsed.inputs[0].shape == pulsed.outputs[0].shape == shape
    out = pulsed.stream().push(np.full([2 * d if i == 1 else d for i, d in enumerate(shape)], -1, np.float32))
    assert not out["y"].any()


@pytest.mark.parametrize(
    ("inputs", "wanted"),
    [
        ({"z": "1,S,80"}, "unknown-input"),
        ({"x": "1,S"}, "contradicting-shape"),
        ({"x": "1,S,80,4"}, "contradicting-shape"),
        ({"x": "1xSx80"}, "bad-input-spec"),
        ({"x": "1,S,0"}, "bad-input-spec"),
        ({"x": "1,S,-1"}, "bad-input-spec"),
        ({"x": "1,S+1,80"}, "bad-input-spec"),
        ({"x": "1,0*S,80"}, "bad-input-spec"),
        ({"x": "1,,80"}, "bad-input-spec"),
        ({"x": ""}, "bad-input-spec"),
        ({"x": "1,100,80"}, "no-stream-axis"),
        ({"x": "1,S,T"}, "ambiguous-stream-axis"),
        ({"x": "1,S,S"}, "two-stream-axes"),
    ],
    ids=str,
)
def test_shapes_that_cannot_be(inputs: dict[str, str], wanted: str) -> None:
    assert code(pulse.convert, plain([1, "S", 80]), inputs=inputs) == wanted


@pytest.mark.parametrize(
    ("given", "at"),
    [("1,1,S,17", "feat_erb"), ("1,1,S,8", "feat_erb"), ("2,1,S,16", ""), ("1,2,S,16", "")],
)
def test_sizes_that_contradict_the_graph(given: str, at: str) -> None:
    """Also where the contradiction shows as two streams of different rates, far from the input."""
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(ENC, inputs={"feat_erb": given})
    assert caught.value.code == "contradicting-shape"
    if at:
        assert caught.value.node == at
        assert "feat_erb=1,1,S,16" in caught.value.required


def test_a_refusal_stays_one_whatever_the_sizes() -> None:
    model = from_text("(float[1,S,8] x) => (float y) { m = ReduceMean<axes = [1]>(x) y = Sub(x, m) }")
    assert code(pulse.convert, model, inputs={"x": "1,S,40"}) == "reduce-over-stream"
