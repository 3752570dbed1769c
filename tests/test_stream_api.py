"""What a stream promises to its caller: any number of frames, errors that change nothing, arrays of one's own."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from nets import from_text
from oracle import Arrays, Case, Full, compare
from refused import code

import pulse

MODELS = Path(__file__).resolve().parent.parent / "models"
ENGINES = [
    pytest.param("native", marks=pytest.mark.skipif(not find_spec("pulse._native"), reason="not built here")),
    "onnxruntime",
    "reference",
]
CONV = "(float[1,4,S] x, float[4,4,3] w1, float[4] w2) => (float y) { y = Conv<pads=[1,1]>(x, w1, w2) }"  # delay 1
GRU = (
    "(float[S,1,4] x, float[1,1,5] h0, float[1,15,4] w1, float[1,15,5] w2, float[1,30] w3) => (float y) "
    "{ r = GRU<hidden_size=5>(x, w1, w2, w3, , h0) y = Squeeze(r, v1) }"
)
SPEAKER = (
    "(float[1,4,S] x, float[1,4,1] voice, float[4,4,3] w1) => (float y) "
    "{ a = Conv<pads=[2,0]>(x, w1) b = Tanh(voice) y = Mul(a, b) }"
)
PAIR = (
    "(float[1,4,S] x, float[1,2,'2*S'] z, float[4,2,2] w1) => (float y) { a = Conv<strides=[2]>(z, w1) y = Add(x, a) }"
)
HALVING = "(float[1,4,S] x, float[4,4,3] w1) => (float y) { y = Conv<pads=[1,1], strides=[2]>(x, w1) }"


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def model(text: str, width: int | str = 3, **options: Any) -> Case:
    source = from_text(text.replace("'2*S'", "S2"))
    if "'2*S'" in text:
        options["inputs"] = {"z": "1,2,2*S", "x": "1,4,S"}
    return Case(Full(source), pulse.convert(source, pulse=width, **options))


def signal(case: Case, frames: int, seed: int = 0) -> Arrays:
    return case.signal(frames, np.random.default_rng(seed))


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def joined(case: Case, parts: list[Arrays]) -> Arrays:
    return {o.name: np.concatenate([p[o.name] for p in parts], o.axis) for o in case.pulsed.outputs}


def assert_goes_on(case: Case, stream: Any, feeds: Arrays, before: list[Arrays]) -> None:
    """After an error the stream gives what it would have given without: nothing of the bad push was kept."""
    parts = [*before, stream.push(feeds), stream.flush()]
    compare(case.full(feeds), joined(case, parts), 1e-5, "after an error")


# ---- push


def test_push_takes_any_number_of_frames(engine: str) -> None:
    case = model(CONV, 3)
    feeds, stream = signal(case, 20), case.pulsed.stream(engine=engine)
    counts, parts, at = [], [], 0
    for chunk in (0, 1, 1, 0, 5, 13):
        parts.append(stream.push(case.cut(feeds, at, at + chunk)))
        counts.append(parts[-1]["y"].shape[2])
        at += chunk
    assert counts == [0, 0, 0, 0, 5, 12]  # pulses of 3 frames, the first held back by the delay
    assert all(p["y"].shape[:2] == (1, 4) and p["y"].dtype == np.float32 for p in parts)
    compare(case.full(feeds), joined(case, [*parts, stream.flush()]), 1e-5, "20 frames")


def test_one_array_for_one_input(engine: str) -> None:
    case = model(CONV)
    feeds = signal(case, 7)
    bare, named = case.pulsed.stream(engine=engine), case.pulsed.stream(engine=engine)
    for first, second in ((bare.push(feeds["x"]), named.push(feeds)), (bare.flush(), named.flush())):
        np.testing.assert_array_equal(first["y"], second["y"])


def test_layout_in_memory_does_not_matter(engine: str) -> None:
    case = model(CONV)
    feeds = signal(case, 9)
    x = np.asfortranarray(np.repeat(feeds["x"], 2, axis=1))[:, ::2]
    x.setflags(write=False)
    stream = case.pulsed.stream(engine=engine)
    compare(case.full(feeds), joined(case, [stream.push(x), stream.flush()]), 1e-5, "strided, read-only")


def test_inputs_at_other_rates(engine: str) -> None:
    case = model(PAIR)
    assert {i.name: (i.shape, str(i.rate)) for i in case.pulsed.inputs} == {
        "x": ((1, 4, 3), "1"),
        "z": ((1, 2, 6), "2"),
    }
    feeds, stream = signal(case, 10), case.pulsed.stream(engine=engine)
    parts = [stream.push(case.cut(feeds, 0, 4)), stream.push(case.cut(feeds, 4, 10)), stream.flush()]
    compare(case.full(feeds), joined(case, parts), 1e-5, "rates 1 and 2")


def test_a_long_push_of_a_dynamic_model(engine: str) -> None:
    case = model(CONV, "dynamic")
    feeds, stream = signal(case, 9001), case.pulsed.stream(engine=engine)
    parts = [stream.push(feeds), stream.flush()]
    assert [p["y"].shape[2] for p in parts] == [9000, 1]
    compare(case.full(feeds), joined(case, parts), 1e-5, "9001 frames at once")


def test_raw_gives_pulses_as_they_are(engine: str) -> None:
    case = model(CONV, 3)
    feeds, stream = signal(case, 6), case.pulsed.stream(engine=engine)
    raw = stream.push(feeds, raw=True)["y"]
    assert raw.shape == (1, 4, 6)
    np.testing.assert_allclose(raw[..., 1:], case.full(feeds)["y"][..., :5], atol=1e-5)
    assert stream.flush()["y"].shape == (1, 4, 1)


def test_raw_takes_whole_pulses_only(engine: str) -> None:
    case = model(CONV, 3)
    feeds, stream = signal(case, 8), case.pulsed.stream(engine=engine)
    assert code(stream.push, feeds, raw=True) == "frames-mismatch"
    assert_goes_on(case, stream, feeds, [])


# ---- wrong arrays


X = noise(1, 4, 6)
WRONG = {
    "unknown name": ({"y": X}, "wrong-name"),
    "one name too many": ({"x": X, "z": X}, "wrong-name"),
    "float64": ({"x": X.astype(np.float64)}, "wrong-dtype"),
    "integers": ({"x": X.astype(np.int64)}, "wrong-dtype"),
    "other byte order": ({"x": X.astype(">f4")}, "wrong-dtype"),
    "a list": ({"x": X.tolist()}, "wrong-dtype"),
    "nothing": (None, "wrong-dtype"),
    "another channel count": ({"x": X[:, :3]}, "wrong-shape"),
    "a batch": ({"x": np.repeat(X, 2, axis=0)}, "wrong-shape"),
    "rank 2": ({"x": X[0]}, "wrong-shape"),
    "rank 0": ({"x": X[0, 0, 0]}, "wrong-dtype"),
    "no array": ({}, "missing-input"),
}


@pytest.mark.parametrize(("data", "wanted"), WRONG.values(), ids=WRONG.keys())
def test_wrong_arrays(engine: str, data: Any, wanted: str) -> None:
    case = model(CONV, 3)
    feeds, stream = signal(case, 11), case.pulsed.stream(engine=engine)
    before = [stream.push(case.cut(feeds, 0, 4))]
    assert code(stream.push, data) == wanted
    stream.push(case.cut(feeds, 0, 0))
    parts = [*before, stream.push(case.cut(feeds, 4, 11)), stream.flush()]
    compare(case.full(feeds), joined(case, parts), 1e-5, "after an error")


def test_several_inputs_go_together(engine: str) -> None:
    case = model(PAIR)
    feeds, stream = signal(case, 9), case.pulsed.stream(engine=engine)
    x, z = feeds["x"], feeds["z"]
    for data, wanted in (
        (x, "missing-input"),
        ({"x": x}, "missing-input"),
        ({"x": x, "z": z[..., :16]}, "frames-mismatch"),
        ({"x": x, "z": z[..., :17]}, "frames-mismatch"),
        ({"x": x[..., :0], "z": z}, "frames-mismatch"),
    ):
        assert code(stream.push, data) == wanted
    assert_goes_on(case, stream, feeds, [])


def test_unknown_engine() -> None:
    case = model(CONV)
    assert code(case.pulsed.stream, engine="ort") == "usage"


# ---- the end


def test_only_reset_and_restore_revive_a_flushed_stream(engine: str) -> None:
    case = model(CONV)
    feeds, stream = signal(case, 8), case.pulsed.stream(engine=engine)
    first = stream.push(feeds)
    snapshot = stream.snapshot()
    tail = stream.flush()
    assert code(stream.push, feeds) == "use-after-flush"
    assert code(stream.push, {"x": feeds["x"][..., :0]}) == "use-after-flush"
    assert code(stream.flush) == "use-after-flush"
    flushed = stream.snapshot()
    stream.restore(snapshot)
    np.testing.assert_array_equal(stream.flush()["y"], tail["y"])
    stream.reset()
    np.testing.assert_array_equal(stream.push(feeds)["y"], first["y"])
    stream.restore(flushed)
    assert code(stream.push, feeds) == "use-after-flush"


def test_flush_without_a_frame(engine: str) -> None:
    """The source has no answer for an empty signal either, but convolutions padded at both ends have none to give."""
    stream = model(CONV).pulsed.stream(engine=engine)
    assert stream.flush()["y"].shape == (1, 4, 0)


def test_length_that_the_source_cannot_take(engine: str) -> None:
    source = from_text("(float[1,S,4] x) => (float y) { a = Reshape(x, shape) y = Mul(a, a) }")
    source.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, -1, 12], np.int64), "shape"))
    case = Case(Full(source), pulse.convert(source, pulse=3))
    feeds, stream = signal(case, 9), case.pulsed.stream(engine=engine)
    before = [stream.push(case.cut(feeds, 0, 7))]
    assert code(stream.flush) == "length-illegal"
    parts = [*before, stream.push(case.cut(feeds, 7, 9)), stream.flush()]
    compare(case.full(feeds), joined(case, parts), 1e-5, "9 frames, after a flush at 7")


# ---- snapshots


def test_snapshot_is_of_every_width(engine: str) -> None:
    cases = [model(CONV, width) for width in (1, 2, 5, "dynamic")]
    feeds = signal(cases[0], 23)
    want = cases[0].full(feeds)
    for taker in cases:
        stream = taker.pulsed.stream(engine=engine)
        before = stream.push(taker.cut(feeds, 0, 9))
        snapshot = stream.snapshot()
        stream.push(taker.cut(feeds, 0, 12))  # the snapshot does not go on with the stream
        for giver in cases:
            other = giver.pulsed.stream(engine=engine)
            other.push(giver.cut(feeds, 3, 10))
            other.restore(snapshot)
            parts = [before, other.push(giver.cut(feeds, 9, 23)), other.flush()]
            compare(want, joined(giver, parts), 1e-5, f"from {taker.pulsed.pulse} to {giver.pulsed.pulse}")


def test_snapshot_of_another_model(engine: str) -> None:
    stream = model(CONV).pulsed.stream(engine=engine)
    assert code(stream.restore, model(SPEAKER).pulsed.stream(engine=engine).snapshot()) == "snapshot-mismatch"
    assert stream.push(X)["y"].shape == (1, 4, 5)


@pytest.mark.parametrize("junk", [None, {}, "snapshot", {"states": {}}])
def test_what_is_no_snapshot(engine: str, junk: Any) -> None:
    stream = model(CONV).pulsed.stream(engine=engine)
    assert code(stream.restore, junk) == "snapshot-mismatch"
    assert stream.push(X)["y"].shape == (1, 4, 5)


def test_snapshot_between_engines() -> None:
    case = model(CONV, 3)
    feeds, first, second = signal(case, 17), case.pulsed.stream(engine="onnxruntime"), case.pulsed.stream("reference")
    before = first.push(case.cut(feeds, 0, 8))
    second.restore(first.snapshot())
    parts = [before, second.push(case.cut(feeds, 8, 17)), second.flush()]
    compare(case.full(feeds), joined(case, parts), 1e-5, "from onnxruntime to reference")


# ---- arrays of one's own


@pytest.mark.parametrize("name", ["enc", "lookahead", "fsmn", "kws_tcn", "GRU"])
def test_outputs_are_the_callers(engine: str, name: str) -> None:
    """Writing into what push returned, or into what it was given, disturbs nothing."""
    source = from_text(GRU) if name == "GRU" else onnx.load(MODELS / f"{name}.onnx")
    case = Case(Full(source), pulse.convert(source, pulse=4))
    feeds, sides = signal(case, 22), case.sides(np.random.default_rng(1))
    stream, parts = case.pulsed.stream(engine=engine), []
    for at in range(0, 22, 2):
        given = {n: v.copy() for n, v in {**case.cut(feeds, at, at + 2), **sides}.items()}
        out = stream.push(given)
        parts.append({n: v.copy() for n, v in out.items()})
        for array in (*out.values(), *given.values()):
            array[...] = np.nan
        snapshot = stream.snapshot()
        for array in snapshot.states.values():
            array[...] = 0
    parts.append(stream.flush())
    compare(case.full({**feeds, **sides}), joined(case, parts), 1e-5, name)


def test_streams_of_one_model_do_not_meet(engine: str) -> None:
    source = onnx.load(MODELS / "lookahead.onnx")
    case = Case(Full(source), pulse.convert(source, pulse=2))
    signals = [signal(case, 15, seed) for seed in (1, 2)]
    streams = [case.pulsed.stream(engine=engine) for _ in signals]
    parts: list[list[Arrays]] = [[], []]
    for at in range(0, 15, 3):
        for i in (0, 1):
            parts[i].append(streams[i].push(case.cut(signals[i], at, at + 3)))
    for i in (0, 1):
        parts[i].append(streams[i].flush())
        compare(case.full(signals[i]), joined(case, parts[i]), 1e-5, f"stream {i}")


# ---- inputs without a stream axis


def test_the_latest_vector_counts(engine: str) -> None:
    case = model(SPEAKER, 2)
    assert [(i.name, i.axis) for i in case.pulsed.inputs] == [("x", 2), ("voice", None)]
    feeds, stream = signal(case, 12), case.pulsed.stream(engine=engine)
    voices = [noise(1, 4, 1, seed=s) for s in (1, 2)]
    parts = [
        stream.push({**case.cut(feeds, 0, 4), "voice": voices[0]}),
        stream.push(case.cut(feeds, 4, 6)),
        stream.push({**case.cut(feeds, 6, 9), "voice": voices[1]}),
        stream.push(case.cut(feeds, 9, 12)),
        stream.flush(),
    ]
    full = [case.full({**feeds, "voice": v})["y"] for v in voices]
    want = {"y": np.concatenate([full[0][..., :6], full[1][..., 6:]], axis=2)}
    compare(want, joined(case, parts), 1e-5, "a vector changed after 6 frames")


def test_the_first_initial_state_counts(engine: str) -> None:
    case = model(GRU, 2)
    feeds, stream = signal(case, 7), case.pulsed.stream(engine=engine)
    h0 = noise(1, 1, 5)
    parts = [
        stream.push({**case.cut(feeds, 0, 3), "h0": h0}),
        stream.push({**case.cut(feeds, 3, 5), "h0": 2 * h0}),
        stream.push(case.cut(feeds, 5, 7)),
        stream.flush(),
    ]
    compare(case.full({**feeds, "h0": h0}), joined(case, parts), 1e-5, "an initial state given twice")


def test_numbers_may_be_numpy_scalars(engine: str) -> None:
    case = model("(float[1,4,S] x, float gain) => (float y) { y = Mul(x, gain) }")
    feeds, stream = signal(case, 6), case.pulsed.stream(engine=engine)
    parts = [stream.push({**feeds, "gain": np.float32(0.5)}), stream.flush()]
    compare(case.full({**feeds, "gain": np.array(0.5, np.float32)}), joined(case, parts), 1e-6, "a scalar")
    assert code(stream.reset() or stream.push, {**feeds, "gain": np.float64(0.5)}) == "wrong-dtype"


def test_vectors_must_be_there_first(engine: str) -> None:
    case = model(SPEAKER, 2)
    feeds, voice, stream = signal(case, 5), noise(1, 4, 1), case.pulsed.stream(engine=engine)
    assert code(stream.push, feeds) == "missing-input"
    assert code(stream.push, {"voice": voice}) == "missing-input"
    assert code(stream.push, {**feeds, "voice": voice[..., 0]}) == "wrong-shape"
    stream.push({**case.cut(feeds, 0, 0), "voice": voice})  # no frames yet
    compare(case.full({**feeds, "voice": voice}), joined(case, [stream.push(feeds), stream.flush()]), 1e-5, "late")
    stream.reset()
    assert code(stream.push, feeds) == "missing-input"


def test_snapshot_holds_the_vector(engine: str) -> None:
    case = model(SPEAKER, 2)
    feeds, voice, stream = signal(case, 8), noise(1, 4, 1), case.pulsed.stream(engine=engine)
    before = stream.push({**case.cut(feeds, 0, 5), "voice": voice})
    snapshot = stream.snapshot()
    stream.push({**case.cut(feeds, 0, 2), "voice": -voice})
    stream.restore(snapshot)
    parts = [before, stream.push(case.cut(feeds, 5, 8)), stream.flush()]
    compare(case.full({**feeds, "voice": voice}), joined(case, parts), 1e-5, "restored")


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_an_axis_may_be_written_as_a_list_of_one(engine: str, axis: int) -> None:
    written = f"v{axis}".replace("-", "m")
    case = model(f"(float[S,4] x) => (float y) {{ y = CumSum(x, {written}) }}", 2)
    feeds, stream = signal(case, 7), case.pulsed.stream(engine=engine)
    compare(case.full(feeds), joined(case, [stream.push(feeds), stream.flush()]), 1e-5, f"axis [{axis}]")


# ---- granularity


def test_push_keeps_what_no_pulse_takes(engine: str) -> None:
    case = model(HALVING, 4)
    assert case.pulsed.granularity == 2
    feeds, stream = signal(case, 11), case.pulsed.stream(engine=engine)
    parts = [stream.push(case.cut(feeds, at, min(at + 3, 11))) for at in range(0, 11, 3)]
    assert [p["y"].shape[2] for p in parts] == [0, 2, 2, 0]
    tail = stream.flush()
    assert tail["y"].shape[2] == 2
    compare(case.full(feeds), joined(case, [*parts, tail]), 1e-5, "11 frames at half the rate")
