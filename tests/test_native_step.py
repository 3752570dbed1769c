"""One pulse into the caller's arrays: right, checked, and fit for real time."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
from native_models import ROOT, cut, noise, path_of, pulsed
from oracle import compare

import pulse
from pulse.errors import PulseError
from pulse.model import PulsedModel

ENC = path_of("models/enc", None)
TCN = path_of("models/kws_tcn", None)


def blank(model: PulsedModel) -> dict[str, np.ndarray]:
    return {p.name: np.full([int(d) for d in p.shape], np.nan, np.float32) for p in model.outputs}


@pytest.mark.parametrize("engine", ["native", "onnxruntime"])
def test_step_gives_raw_pulses_and_mixes_with_push(engine: str) -> None:
    model = pulsed(ENC, 4)
    signal, outputs = noise(model.inputs, 24), blank(model)
    want = model.stream(engine="onnxruntime").push(signal, raw=True)
    stream, parts = model.stream(engine=engine), []
    for at in range(0, 24, 4):
        pulse_in = cut(model.inputs, signal, at, at + 4)
        if at == 12:
            parts.append(stream.push(pulse_in, raw=True))
            continue
        stream.step(pulse_in, outputs)
        parts.append({n: v.copy() for n, v in outputs.items()})
    got = {p.name: np.concatenate([part[p.name] for part in parts], axis=p.axis) for p in model.outputs}
    compare(want, got, 1e-5, engine)


def test_step_counts_what_flush_goes_on_from() -> None:
    model = pulsed(path_of("models/lookahead", None), 4)
    signal, outputs = noise(model.inputs, 20), blank(model)
    stream, inputs = model.stream(engine="native"), noise(model.inputs, 4)
    for at in range(0, 20, 4):
        for name, part in cut(model.inputs, signal, at, at + 4).items():
            inputs[name][...] = part
        stream.step(inputs, outputs)
    want = model.stream(engine="onnxruntime")
    want.push(signal)
    compare(want.flush(), stream.flush(), 1e-5, "tail")
    with pytest.raises(PulseError) as refused:
        stream.step(inputs, outputs)
    assert refused.value.code == "use-after-flush"


WRONG = {
    "wrong-shape": lambda i, o: ({**i, "feat_erb": i["feat_erb"][:, :, :, :8].copy()}, o),
    "wrong-dtype": lambda i, o: ({**i, "feat_erb": i["feat_erb"].astype(np.float64)}, o),
    "wrong-name": lambda i, o: ({**i, "other": i["feat_erb"]}, o),
    "missing-input": lambda i, o: ({"feat_erb": i["feat_erb"]}, o),
    "frames-mismatch": lambda i, o: ({n: np.repeat(a, 2, axis=2) for n, a in i.items()}, o),
}


def askew(array: np.ndarray) -> np.ndarray:
    """The same at an odd address."""
    made = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


STRANGE = {
    "an input at an odd address": lambda i, o: ({**i, "feat_erb": askew(i["feat_erb"])}, o),
    "an output at an odd address": lambda i, o: (i, {**o, "e0": askew(o["e0"])}),
    "strided": lambda i, o: ({**i, "feat_erb": np.asfortranarray(np.repeat(i["feat_erb"], 2, axis=0))[:1]}, o),
    "read-only": lambda i, o: (i, {**o, "e0": np.broadcast_to(np.float32(0), o["e0"].shape)}),
    "not arrays": lambda i, o: ({n: a.tolist() for n, a in i.items()}, o),
    "no dict": lambda i, o: (list(i.values()), o),
    "nothing": lambda i, o: (None, None),
    "outputs of another width": lambda i, o: (i, {n: np.repeat(a, 2, axis=-2) for n, a in o.items()}),
    "an output too few": lambda i, o: (i, {n: a for n, a in o.items() if n != "e0"}),
}


@pytest.mark.parametrize("case", [*WRONG, *STRANGE])
def test_arrays_that_do_not_fit_are_told_before_anything_runs(case: str) -> None:
    model = pulsed(ENC, 4)
    stream, good, outputs = model.stream(engine="native"), noise(model.inputs, 4), blank(model)
    stream.step(good, outputs)
    before = stream.snapshot()
    with pytest.raises(PulseError) as refused:
        stream.step(*({**WRONG, **STRANGE}[case](good, outputs)))
    with pytest.raises(PulseError):  # so too where these arrays are the first
        model.stream(engine="native").step(*({**WRONG, **STRANGE}[case](good, outputs)))
    if case in WRONG:
        assert refused.value.code == case
    after = stream.snapshot()
    assert after.consumed == before.consumed == 4
    assert all(np.array_equal(after.states[n], before.states[n]) for n in before.states)


def test_frames_that_wait_must_be_pushed_on() -> None:
    model = pulsed(ENC, 4)
    stream, signal, outputs = model.stream(engine="native"), noise(model.inputs, 8), blank(model)
    stream.step(cut(model.inputs, signal, 0, 4), outputs)
    stream.push(cut(model.inputs, signal, 4, 6))
    with pytest.raises(PulseError) as refused:
        stream.step(cut(model.inputs, signal, 0, 4), outputs)
    assert refused.value.code == "frames-mismatch"


def test_nan_and_infinity_do_no_lasting_harm() -> None:
    for path in (ENC, TCN, path_of("models/unet", None), path_of("models/spectral_gate", None)):
        model = pulsed(path, "dynamic")
        signal = noise(model.inputs, 8 * model.granularity)
        stream = model.stream(engine="native")
        want = stream.push(signal)
        stream.reset()
        for bad in (np.nan, np.inf, -np.inf, 3e38):
            stream.push({n: np.full_like(a, bad) for n, a in signal.items()})
        stream.reset()
        got = stream.push(signal)
        assert all(np.array_equal(got[n], want[n]) for n in want), path


def test_streams_in_two_threads_do_not_meet() -> None:
    model = pulsed(ENC, 4)
    signals = [noise(model.inputs, 400, seed) for seed in (1, 2)]
    want = [model.stream(engine="native").push(s) for s in signals]
    got: list[dict[str, np.ndarray]] = [{}, {}]

    def run(index: int) -> None:
        stream = model.stream(engine="native")
        parts = [stream.push(cut(model.inputs, signals[index], at, at + 4)) for at in range(0, 400, 4)]
        got[index] = {p.name: np.concatenate([part[p.name] for part in parts], p.axis) for p in model.outputs}

    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for mine, single in zip(got, want, strict=True):
        assert all(np.array_equal(mine[n], single[n]) for n in single)


@pytest.mark.timeout(60)
def test_a_second_thread_in_a_stream_is_told() -> None:
    model = pulsed(ENC, 4)
    stream, signal, outputs = model.stream(engine="native"), noise(model.inputs, 4), blank(model)
    stream.step(signal, outputs)
    runner, stop = stream._bound, threading.Event()

    def run() -> None:
        while not stop.is_set():
            with contextlib.suppress(ValueError):  # now and then it is this thread that is told
                runner.time(0, 2000)

    thread = threading.Thread(target=run)
    thread.start()
    told = []
    fresh = {n: a.copy() for n, a in signal.items()}
    for call in (lambda: stream.step(signal, outputs), lambda: stream.step(fresh, outputs), lambda: stream.push(fresh)):
        while True:  # between two of its calls the other thread does not run the stream
            try:
                call()
            except PulseError as error:
                told.append(error.code)
                break
    stop.set()
    thread.join()
    assert told == ["stream-busy"] * 3


def fading() -> onnx.ModelProto:
    """`x [S,1,16] -> z`: a convolution over three frames and a GRU, without biases."""
    random = np.random.default_rng(0)
    weights = {
        "c": random.standard_normal((16, 16, 3)) * 0.2,
        "w": random.standard_normal((1, 3 * 16, 16)),
        "r": random.standard_normal((1, 3 * 16, 16)) * 0.2,
    }
    text = """<ir_version: 8, opset_import: ["" : 17]> fading (float[S,1,16] x) => (float[S,1,16] z) {
      a = Transpose <perm = [1, 2, 0]> (x)  b = Conv <pads = [2, 0]> (a, c)  d = Transpose <perm = [2, 0, 1]> (b)
      y = GRU <hidden_size = 16, linear_before_reset = 1> (d, w, r)  z = Squeeze (y, one)
    }"""
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items())
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1], np.int64), "one"))
    return proto


def test_silence_leaves_no_denormals_and_the_callers_mode_as_it_was() -> None:
    """A net without biases fades towards zero for a long time after speech: 10 s of silence, in frames of 10 ms."""
    random = np.random.default_rng(0)
    stream = pulse.convert(fading(), 1).stream(engine="native")
    tiny, faded = np.finfo(np.float32).tiny, 0
    for frame in range(1050):
        loud = random.standard_normal((1, 1, 16)) if frame < 50 else np.zeros((1, 1, 16))
        out = stream.push(loud.astype(np.float32))
        for array in (*out.values(), *stream.snapshot().states.values()):
            small = np.abs(array[array != 0])
            assert not (small < tiny).any(), frame
            faded += array.size - small.size if frame > 50 else 0
    assert faded, "nothing faded as far as zero, so there was nothing to flush"
    assert np.float32(1e-40) * np.float32(1) != 0, "flush-to-zero was left on"


COUNTED = (
    ("malloc", "__libc_malloc", "size_t a"),
    ("calloc", "__libc_calloc", "size_t a, size_t b"),
    ("realloc", "__libc_realloc", "void* a, size_t b"),
    ("aligned_alloc", "__libc_memalign", "size_t a, size_t b"),
    ("mmap", "mmap64", "void* a, size_t b, int c, int d, int e, long f"),
)


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler")
def test_ten_thousand_pulses_allocate_nothing(tmp_path: Path) -> None:
    """Counted by a library that stands before malloc and its kin."""
    lines = ["#include <stddef.h>", "long counted;"]
    for name, real, args in COUNTED:
        given = ", ".join(arg.split()[-1] for arg in args.split(", "))
        lines.append(f"extern void* {real}({args}); void* {name}({args}) {{ counted++; return {real}({given}); }}")
    (tmp_path / "count.c").write_text("\n".join(lines))
    library = tmp_path / "count.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, tmp_path / "count.c"], check=True)
    script = f"""
import ctypes, sys, warnings
sys.path.insert(0, {str(ROOT / "tests")!r})
import numpy as np
from native_models import noise, path_of, pulsed
from pulse.engine.native.compile import compiled
from pulse.engine.native.engine import NativeEngine
counted = ctypes.c_long.in_dll(ctypes.CDLL({str(library)!r}), "counted")
warnings.simplefilter("ignore")
for name in ("enc", "kws_tcn", "unet", "lookahead", "spectral_gate"):
    model = pulsed(path_of("models/" + name, None), 1)
    inputs = noise(model.inputs, model.granularity)
    outputs = {{p.name: np.empty([int(d) for d in p.shape], np.float32) for p in model.outputs}}
    stream = model.stream(engine="native")
    for _ in range(100):
        stream.step(inputs, outputs)
    before = counted.value
    for _ in range(10000):
        stream.step(inputs, outputs)
    whole = counted.value - before
    engine = NativeEngine(compiled(model))
    runner, _ = engine.bind(inputs, outputs)
    runner.run_on(inputs, outputs, 0)
    runner.time(0, 100)
    before = counted.value
    runner.time(0, 10000)
    print(name, counted.value - before, whole)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    counts = [line.split() for line in done.stdout.splitlines()]
    assert len(counts) == 5
    assert all(int(native) == 0 for _, native, _ in counts), counts
    assert all(int(whole) < 10 for _, _, whole in counts), "the interpreter's own, now and then"


def test_memory_stays_flat() -> None:
    resource = pytest.importorskip("resource")
    model = pulsed(TCN, 1)
    inputs, outputs, stream = noise(model.inputs, 1), blank(model), model.stream(engine="native")
    for _ in range(2000):
        stream.step(inputs, outputs)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100_000):
        stream.step(inputs, outputs)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512  # KiB
