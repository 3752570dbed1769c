"""A stream of a day is exact to its last frame, and costs no more memory than one of a minute.

Streams are set to late positions by a snapshot that pretends so many frames have passed: what follows, tail included,
must be what a stream near its start gives for the same frames.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from nets import from_text
from oracle import Case, Full, assert_streams, compare

import pulse

PERIOD = 42  # positions are moved by multiples of this: no rate and no remainder notices
PAST = 240  # frames that the near stream has seen
REST = 61  # frames that follow, then the tail
LATE = (2**31, 2**40)
PULSES = 1_000_000 if os.environ.get("PULSE_LONG") else 20_000


@dataclass(frozen=True)
class Long:
    """A net whose streaming form looks at the position; `rest` is a legal number of frames after the first 240."""

    what: str
    text: str
    rest: int = REST


NETS = (
    Long("masks before and after, look-ahead and a tail",
         "(float[1,3,S] x, float[3,3,3] w1, float[3] w2, float[3,3,5] w3) => (float y) "
         "{ a = Conv<pads=[1,1]>(x, w1, w2) b = Sigmoid(a) y = Conv<pads=[2,2]>(b, w3, w2) }"),
    Long("a U-Net with a strided level",
         "(float[1,2,S] x, float[2,2,4] w1, float[2] w2, float[2,2,4] w3) => (float y) "
         "{ a = Conv<pads=[1,1], strides=[2]>(x, w1, w2) b = Conv<pads=[1,2]>(a, w1, w2) "
         "c = ConvTranspose<pads=[1,1], strides=[2]>(b, w3, w2) y = Add(x, c) }", 60),
    Long("three frames of one, cropped",
         "(float[1,2,S] x, float[2,2,5] w1, float[2] w2, float[2,2,3] w3) => (float y) "
         "{ a = ConvTranspose<pads=[1,1], strides=[3]>(x, w1, w2) y = Conv<pads=[1,1], strides=[2]>(a, w3, w2) }"),
    Long("average pooling with edges",
         "(float[1,2,S] x, float[2,2,3] w1, float[2] w2) => (float y) "
         "{ a = Conv<pads=[0,2]>(x, w1, w2) y = AveragePool<kernel_shape=[4], pads=[2,1], strides=[3]>(a) }"),
    Long("largest values with edges",
         "(float[1,2,S] x, float[2,2,3] w1, float[2] w2) => (float y) "
         "{ a = Conv<pads=[1,1]>(x, w1, w2) y = MaxPool<kernel_shape=[3], pads=[1,1], strides=[2]>(a) }"),
    Long("edges repeated",
         '(float[1,2,S] x, float[2,2,5] w1) => (float y) <int64[6] p = {0, 0, 2, 0, 0, 2}> '
         '{ a = Pad<mode="edge">(x, p) y = Conv(a, w1) }'),
    Long("edges reflected",
         '(float[1,2,S] x, float[2,2,5] w1) => (float y) <int64[6] p = {0, 0, 3, 0, 0, 3}> '
         '{ a = Pad<mode="reflect">(x, p) y = Conv(a, w1) }'),
    Long("a GRU that skips what is not yet signal",
         "(float[1,3,S] x, float[3,3,3] w1, float[3] w2, float[1,12,3] w3, float[1,12,4] w4, float[1,24] w5) => "
         "(float y) { a = Conv<pads=[0,2]>(x, w1, w2) b = Transpose<perm=[2,0,1]>(a) "
         "y, h = GRU<hidden_size=4, linear_before_reset=1>(b, w3, w4, w5) }"),
    Long("an LSTM that skips, at half the rate",
         "(float[1,3,S] x, float[3,3,4] w1, float[3] w2, float[1,16,3] w3, float[1,16,4] w4) => (float y) "
         "{ a = Conv<pads=[1,1], strides=[2]>(x, w1, w2) b = Transpose<perm=[2,0,1]>(a) "
         "y, h, c = LSTM<hidden_size=4>(b, w3, w4) }"),
    Long("a Scan that skips",
         "(float[S,4] x, float[4] w) => (float y) { a = Slice(x, v2, vend, v0) h, y = Scan<num_scan_inputs=1, "
         "body = step (float[4] s, float[4] t) => (float[4] u, float[4] v) { p = Add(s, t) u = Tanh(p) v = Identity(u) "
         "}>(w, a) }"),
    Long("a table of positions, at its end",
         "(float[1,S,4] x, float[1,200,4] w) => (float y) { d = Shape(x) n = Gather<axis=0>(d, v1) "
         "t = Slice(w, v0, n, v1) y = Add(x, t) }"),
    Long("positions by their remainder",
         "(float[1,S] x) => (float y) { d = Shape(x) n = Gather<axis=0>(d, s1) i = Range(s0, n, s1) m = Mod(i, s7) "
         "f = Cast<to=1>(m) y = Add(x, f) }"),
    Long("frames joined on behind the signal",
         "(float[1,3,S] x, float[1,3,2] w1, float[3,3,3] w2, float[3] w3) => (float y) "
         "{ a = Concat<axis=2>(x, w1) y = Conv<pads=[1,1]>(a, w2, w3) }"),
    Long("each frame twice, then a window",
         "(float[1,2,S] x, float[2,2,3] w1, float[2] w2) => (float y) <float[3] k = {1.0, 1.0, 2.0}> "
         '{ a = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , k) '
         "y = Conv<pads=[1,1]>(a, w1, w2) }"),
)  # fmt: skip


def later(snapshot: Any, model: Any, frames: int) -> Any:
    """The snapshot as if `frames` more source frames had passed before it."""
    states = dict(snapshot.states)
    if model.info.position:
        states[model.info.position] = np.array(states[model.info.position] + frames)
    rates = {o.name: o.rate for o in model.outputs}
    emitted = {n: e + int(frames * rates[n]) for n, e in snapshot.emitted.items()}
    return replace(snapshot, states=states, consumed=snapshot.consumed + frames, emitted=emitted)


def rest_of(stream: Any, case: Case, feeds: dict[str, np.ndarray], end: int, chunk: int) -> dict[str, np.ndarray]:
    """Everything from frame `PAST` on, tail included."""
    parts: dict[str, list[np.ndarray]] = {o.name: [] for o in case.pulsed.outputs}
    for start in range(PAST, end, chunk):
        for name, block in stream.push(case.cut(feeds, start, min(start + chunk, end))).items():
            parts[name].append(block)
    for name, block in stream.flush().items():
        parts[name].append(block)
    return {o.name: np.concatenate(parts[o.name], o.axis) for o in case.pulsed.outputs}


@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
@pytest.mark.parametrize("net", NETS, ids=lambda net: net.what)
def test_late_frames_are_those_of_an_early_stream(net: Long, engine: str) -> None:
    source = from_text(net.text)
    model = pulse.convert(source, "dynamic")
    case = Case(Full(source), model)
    assert model.info.position
    end = PAST + net.rest
    feeds = case.signal(end, np.random.default_rng(1))
    stream = model.stream(engine=engine, filler=np.nan)
    early = stream.push(case.cut(feeds, 0, PAST))
    start = stream.snapshot()
    near = rest_of(stream, case, feeds, end, 7)
    if "table" not in net.what:  # the model itself ends where its table does
        whole = {o.name: np.concatenate([early[o.name], near[o.name]], o.axis) for o in model.outputs}
        compare(case.full(feeds), whole, 1e-5, f"{net.what}, {engine}")
    for late in LATE:
        # The source's frames, and those of double rate, pass the power of two among the frames pushed; or have passed.
        crossing, halfway = ((n - PAST - 20) // PERIOD * PERIOD for n in (late, late // 2))
        for frames in (crossing, halfway, crossing + PERIOD * 100):
            stream.restore(later(start, model, frames))
            far = rest_of(stream, case, feeds, end, 7)
            for name in near:
                assert np.array_equal(far[name], near[name]), f"{name} after {frames} frames"


@pytest.mark.parametrize("engine", ["onnxruntime", "reference"])
def test_late_positions_count_on(engine: str) -> None:
    """A position that is delivered is the full-signal model's own, past 32 bits too."""
    model = pulse.convert(
        from_text(
            "(float[1,S] x) => (int64 p, float y) { d = Shape(x) n = Gather<axis=0>(d, s1) p = Range(s0, n, s1) "
            "f = Cast<to=1>(p) y = Add(x, f) }"
        )
    )
    stream = model.stream(engine=engine)
    for late in LATE:
        stream.reset()
        stream.push(np.zeros((1, 8), np.float32))
        stream.restore(later(stream.snapshot(), model, late - 16))
        out = stream.push(np.zeros((1, 20), np.float32))
        tail = stream.flush()
        wanted = np.arange(late - 8, late + 12)
        found = np.concatenate([out["p"], tail["p"]])
        assert np.array_equal(found, wanted)
        assert np.array_equal(np.concatenate([out["y"], tail["y"]], 1)[0], wanted.astype(np.float32))


def test_the_tail_of_a_signal_cut_far_from_its_start() -> None:
    """Whether frames past the end matter is tried at lengths past the cut, too."""
    source = from_text(
        "(float[1,2,S] x, float[2,2,3] w1, float[2] w2, float[2,1] w3) => (float y) <int64[1] k = {5000}> "
        "{ a = Slice(x, k, vend, v2) b = Add(a, w3) y = Conv<pads=[1,1]>(b, w1, w2) }"
    )
    assert_streams(source, lengths=(5003, 5101), min_length=5001, widths=(7,), ways=1)


MEMORY = """
import sys
import numpy as np
import pulse
from nets import from_text

model = pulse.convert(from_text(sys.argv[1]), 2)
stream = model.stream(engine="onnxruntime")
block = np.ones((1, 2, 2), np.float32)
pulses = int(sys.argv[2])


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


marks = []
for i in range(pulses):
    stream.push(block)
    if i in (pulses // 10, pulses - 1):
        marks.append(resident())
print(marks[0], marks[1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of a process from /proc")
def test_memory_of_a_long_stream_is_flat() -> None:
    """20,000 pulses; PULSE_LONG=1 runs a million."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, NETS[0].text.replace("[1,3,S]", "[1,2,S]").replace("[3,3,3] w1", "[3,2,3] w1"),
         str(PULSES)],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])},
    )  # fmt: skip
    first, last = map(int, done.stdout.split())
    assert last - first < 1 << 20, f"{last - first} bytes more after {PULSES} pulses than after {PULSES // 10}"
