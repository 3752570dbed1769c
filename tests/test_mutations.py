"""Spoilt model files and artefacts end in a diagnostic or a success: no other exception, no hang, no crash.

1,500 seeded mutants by default, in chunks that xdist can share; `PULSE_MUTANTS=20000` draws that many. One that fails
is named by its number: `python tests/mutate.py --only NUMBER`. What they have found is pinned below.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from mutants import Base, bases
from mutate import attempt, run
from nets import from_text
from onnx import numpy_helper

import pulse

CHUNKS = 3
COUNT = int(os.environ.get("PULSE_MUTANTS", "1500"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers bound their memory by Linux's means")
@pytest.mark.timeout(60 + COUNT)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_mutants_end_in_a_diagnostic_or_a_success(chunk: int) -> None:
    share = -(-COUNT // CHUNKS)
    found = run(chunk * share, (chunk + 1) * share)
    assert not found.failures
    assert sum(found.outcomes.values()) == share
    # or else they would not get far enough to test anything
    assert found.outcomes["ok"] > share // 10
    assert len(found.outcomes) > 12


@pytest.mark.parametrize("base", bases(), ids=lambda base: base.name)
def test_what_is_mutated_streams(base: Base) -> None:
    """In every engine, by the way that mutants take."""
    for number in (0, 2, 4):
        assert attempt(base, base.data, number) == "ok"


# ---- what mutants have found, as graphs


def refusal(model: onnx.ModelProto, **options: int) -> str:
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(model, **options)
    assert caught.value.found
    return caught.value.code


X = "(float[1,2,S] x, float[2,2,3] w1, float[1,2] w2) => (float y) "


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (X + "{ y = Conv<dilations=[1000000000]>(x, w1) }", "state-too-large"),
        (X + "{ y = Conv<pads=[1000000000,0]>(x, w1) }", "state-too-large"),
        (X + "{ y = Conv<strides=[1000000000]>(x, w1) }", "state-too-large"),
        (X + "{ y = Conv<strides=[0]>(x, w1) }", "contradicting-shape"),
        (X + "{ y = Conv<pads=[1]>(x, w1) }", "contradicting-shape"),
        (X + "{ y = Conv<kernel_shape=[5]>(x, w1) }", "contradicting-shape"),
        (X + '{ y = Conv<auto_pad="SOME">(x, w1) }', "contradicting-shape"),
        (X + "{ y = Conv<group=2>(x, w1) }", "contradicting-shape"),
        (X + "<int64[6] p = {0, 0, 1000000000, 0, 0, 0}> { y = Pad(x, p) }", "state-too-large"),
        (X + '<int64[6] p = {0, 0, 1000000000, 0, 0, 0}> { y = Pad<mode="reflect">(x, p) }', "state-too-large"),
        (X + "<int64[1] k = {1000000000}> { y = Slice(x, k, vend, v2) }", "state-too-large"),
        (X + "<int64[3] k = {2, 3, 1000000000}> { c = ConstantOfShape(k) y = Add(x, c) }", "state-too-large"),
        (X + "{ a = Slice(x, v5, v9, v1) y = Relu(a) }", "invalid-model"),
        (X + "{ y = CumSum(x, s5) }", "contradicting-shape"),
        (X + "{ a = Cast<to=99>(x) y = Relu(a) }", "contradicting-shape"),
        (X + "{ y = Transpose<perm=[0,2,2]>(x) }", "contradicting-shape"),
        (X + "{ y = Add(x, v5) }", "contradicting-shape"),
        ("(float[1,2,9000000000,S] x) => (float y) { y = Relu(x) }", "state-too-large"),
        ("(string[1,S] x) => (string y) { y = Identity(x) }", "invalid-model"),
    ],
)  # fmt: skip
def test_spoilt_graphs_are_refused(text: str, code: str) -> None:
    assert refusal(from_text(text)) == code


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize(
    "text",
    [
        "(float[1,2,S,3] x) => (float y) <int64[8] p = {0,0,0,-2,0,0,0,-2}> { a = Pad(x,p) y = Slice(a, v0, v1, vm1) }",
        "(float[1,2,S,3] x, float[2,2,1,5] w1) => (float y) { a = Conv(x, w1) y = Slice(a, v0, v1, vm1) }",
        "(float[1,2,S,3] x) => (float y) { a = MaxPool<kernel_shape=[1,6]>(x) y = Slice(a, v0, v1, vm1) }",
    ],
)
def test_fewer_than_no_elements_before_a_slice(text: str, opset: int) -> None:
    """onnx's shape inference, which its version converter runs, aborts the process."""
    assert refusal(from_text(text, opset)) == "contradicting-shape"


def test_a_size_below_0_of_an_input_counts_as_unknown() -> None:
    """It aborted the process likewise."""
    text = "(float[1,S,-3] x) => (float y) { y = Slice(x, v0, v1, vm1) }"
    assert refusal(from_text(text, 11)) == "ambiguous-stream-axis"


def test_more_phases_than_a_program_should_have_steps() -> None:
    """Lowering took one product a phase and did not end."""
    text = "(float[1,2,S,3] x, float[2,2,1,1] w1) => (float y) { y = ConvTranspose<strides=[1,20000]>(x, w1) }"
    model = pulse.convert(from_text(text), 1)
    with pytest.raises(pulse.PulseError) as caught:
        model.stream(engine="native")
    assert (caught.value.code, caught.value.node) == ("engine-unsupported", "y (ConvTranspose)")
    assert model.stream().push(np.ones((1, 2, 1, 3), np.float32))["y"].shape == (1, 2, 1, 40001)


@pytest.mark.parametrize("option", [{"pulse": 10**9}, {"pulse": 2**70}, {"length_multiple_of": 10**9}])
def test_absurd_widths_are_refused(option: dict[str, int]) -> None:
    assert refusal(from_text(X + "{ y = Conv(x, w1) }"), **option) in ("illegal-pulse", "usage")


def test_a_recurrence_whose_weights_are_for_another_direction() -> None:
    """The native engine wrote behind its memory, ONNX Runtime refuses."""
    text = "(float[5,S,4] x, float[2,3,4] w1, float[2,3,3] w2) => (float y) { y, h = RNN<hidden_size=3>(x, w1, w2) }"
    assert refusal(from_text(text)) == "contradicting-shape"


def test_a_recurrence_over_nothing() -> None:
    """ONNX Runtime aborts the process on a batch of 0."""
    text = (
        "(float[S,1,1,3] x, float[1,12,3] w1, float[1,12,3] w2) => (float y) { a = Squeeze(x, v1) "
        "b = Slice(a, v1, vend, v1) y, h, c = LSTM<hidden_size=3>(b, w1, w2) }"
    )
    assert refusal(from_text(text)) == "invalid-model"


def test_names_that_are_not_text() -> None:
    data = from_text("(float[1,S] x) => (float y) { a = Relu(x) y = Tanh(a) }").SerializeToString()
    with pytest.raises(pulse.PulseError, match="UTF-8"):
        pulse.convert(data.replace(b"\x04Tanh", b"\x04Ta\xff\xff"))


def test_constants_in_other_files_are_not_looked_for_where_the_process_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.bin").write_bytes(bytes(16))
    model = from_text("(float[S,4] x) => (float y) { w = Constant<value = float[4] {1, 2, 3, 4}>() y = Add(x, w) }")
    constant = model.graph.node[0].attribute[0].t
    constant.Clear()
    constant.CopyFrom(onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=onnx.TensorProto.EXTERNAL))
    constant.external_data.add(key="location", value="w.bin")
    assert refusal(model) == "missing-external-data"


def artefact(text: str) -> onnx.ModelProto:
    return pulse.convert(from_text(text)).proto


def stream_some(model: onnx.ModelProto, engine: str) -> None:
    stream = pulse.load(model).stream(engine=engine)
    stream.push(np.ones((1, 8, 2), np.float32))
    stream.flush()


@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
def test_an_artefact_with_fewer_frames_than_it_says(engine: str) -> None:
    """Its flush would never end."""
    model = artefact("(float[1,S,2] x) => (float y) { a = Slice(x, v1, vend, v1) y = Slice(a, v0, vend, v1, v2) }")
    start = next(t for t in model.graph.initializer if not numpy_helper.to_array(t).any())
    start.CopyFrom(numpy_helper.from_array(np.array([2]), start.name))
    with pytest.raises(pulse.PulseError) as caught:
        stream_some(model, engine)
    assert caught.value.code in ("manifest-invalid", "engine-unsupported")


@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
def test_an_artefact_whose_nodes_fail_when_run(engine: str) -> None:
    model = artefact("(float[1,S,2] x) => (float y) <int64[2] i = {1, 0}> { y = Gather<axis=2>(x, i) }")
    index = next(t for t in model.graph.initializer if t.dims == [2])
    index.CopyFrom(numpy_helper.from_array(np.array([1, 7]), index.name))
    with pytest.raises(pulse.PulseError) as caught:
        stream_some(model, engine)
    assert caught.value.code == "engine-unsupported"


@pytest.mark.parametrize("attribute", ["num", "den"])
def test_an_artefact_which_counts_frames_at_no_rate(attribute: str) -> None:
    model = artefact("(float[1,2,S] x, float[2,2,3] w1) => (float y) { a = Tanh(x) y = Conv<pads=[1,1]>(a, w1) }")
    counted = [a for node in model.graph.node for a in node.attribute if a.name == attribute]
    assert counted
    for found in counted:
        found.i = 0
    with pytest.raises(pulse.PulseError) as caught:
        pulse.load(model).stream(engine="native")
    assert caught.value.code == "engine-unsupported"


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean", "Concat<axis=1>"])
def test_a_list_of_inputs_with_a_hole(op: str) -> None:
    """onnx's checker lets it pass; ONNX Runtime crashed the process."""
    model = from_text(f"(float[1,2,S] x) => (float y) {{ a = Relu(x) y = {op}(x, a) }}")
    pulsed = pulse.convert(model).proto
    for holed in (model, pulsed):
        node = next(n for n in holed.graph.node if n.op_type == op.split("<")[0])
        node.input[1] = ""
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(model)
    assert (caught.value.code, caught.value.node.split(" ")[0]) == ("invalid-model", "y")
    with pytest.raises(pulse.PulseError) as caught:
        pulse.load(pulsed)
    assert caught.value.code == "invalid-model"


@pytest.mark.parametrize("hole", [0, 1])
def test_a_list_of_outputs_with_a_hole(hole: int) -> None:
    """Likewise, where the source is run to compare with."""
    model = from_text("(float[1,4,S] x) => (float y) { a, b = Split<axis=1>(x) y = Relu(a) }")
    pulsed = pulse.convert(model).proto
    for holed in (model, pulsed):
        node = next(n for n in holed.graph.node if n.op_type == "Split")
        next(n for n in holed.graph.node if n.op_type == "Relu").input[0] = node.output[1 - hole]
        node.output[hole] = ""
    for call, given in ((pulse.convert, model), (pulse.load, pulsed)):
        with pytest.raises(pulse.PulseError) as caught:
            call(given)
        assert caught.value.code == "invalid-model"
        assert caught.value.found == f"none for output {hole}"


def test_outcomes_are_counted() -> None:
    """The harness on its own: a range by two workers has one outcome a number."""
    found = run(0, 40, workers=2)
    assert isinstance(found.outcomes, Counter)
    assert sum(found.outcomes.values()) == 40
