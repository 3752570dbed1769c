"""The published and the bundled models run natively, without fallback, exactly, at all widths and at mixed ones."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import find_shared
from native_models import NAMES, cut, noise, path_of, pulsed, source
from oracle import Full, assert_streams, compare

from pulse.engine.isa import available
from pulse.engine.native.compile import NativeModel
from pulse.engine.native.engine import NativeEngine

pytestmark = pytest.mark.filterwarnings("ignore::pulse.PulseWarning")
RECURRENT = ("models/enc", "models/lookahead", "shared/dfn2/enc", "shared/dfn2/erb_dec", "shared/nsnet2/nsnet2_20ms")


@pytest.mark.parametrize("name", NAMES)
def test_every_width_equals_the_full_signal(name: str) -> None:
    path = path_of(name, find_shared())
    granularity = pulsed(path, "dynamic").granularity
    lengths = [n * granularity for n in (2, 23, 40)]
    assert_streams(
        source(path), widths=(1, 2, 3, 4, 8, 16, "dynamic"), lengths=lengths, engines=("native",), ways=3, least=False
    )


@pytest.mark.parametrize("name", NAMES)
def test_native_is_the_default(name: str) -> None:
    path = path_of(name, find_shared())
    assert pulsed(path, "dynamic").stream().engine == "native"
    assert pulsed(path, 4).stream().engine == "native"


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrences_stay_exact_over_thousands_of_frames(name: str) -> None:
    """In one stream whose widths change all the time."""
    path = path_of(name, find_shared())
    model = pulsed(path, "dynamic")
    signal = noise(model.inputs, 4000)
    random = np.random.default_rng(1)
    stream, parts, at = model.stream(engine="native"), [], 0
    while at < 4000:
        count = min(int(random.integers(1, 17)), 4000 - at)
        parts.append(stream.push(cut(model.inputs, signal, at, at + count)))
        at += count
    parts.append(stream.flush())
    got = {p.name: np.concatenate([part[p.name] for part in parts], axis=p.axis) for p in model.outputs}
    compare(Full(source(path))(signal), got, 1e-5, name)


@pytest.mark.parametrize("isa", [i for i in available() if i != "ref"])
@pytest.mark.parametrize("name", NAMES[:7])
def test_every_instruction_set_gives_the_same(name: str, isa: str) -> None:
    path = path_of(name, find_shared())
    model = pulsed(path, "dynamic")
    frames = 24 * model.granularity
    signal = noise(model.inputs, frames, scale=0.5)
    want = model.stream(engine="onnxruntime").push(signal, raw=True)
    compiled = NativeModel(model.proto, model.info, isa)
    for granules in (1, 3, 8):
        engine, step, parts = NativeEngine(compiled), granules * model.granularity, []
        for at in range(0, frames, step):
            parts.append(engine.pulse(cut(model.inputs, signal, at, at + step), step))
        got = {p.name: np.concatenate([part[p.name] for part in parts], axis=p.axis) for p in model.outputs}
        compare(want, got, 1e-5, f"{name} {isa} at {granules}")


def test_states_move_between_engines_and_widths() -> None:
    """What one engine kept goes on in another, also where a window holds it."""
    path = path_of("models/enc", None)
    dynamic, fixed = pulsed(path, "dynamic"), pulsed(path, 4)
    signal = noise(dynamic.inputs, 48)
    want = dynamic.stream(engine="onnxruntime").push(signal)
    streams = [dynamic.stream(engine="native"), fixed.stream(engine="onnxruntime"), fixed.stream(engine="native")]
    parts, snapshot = [], None
    for turn, at in enumerate(range(0, 48, 8)):
        stream = streams[turn % len(streams)]
        if snapshot is not None:
            stream.restore(snapshot)
        parts.append(stream.push(cut(dynamic.inputs, signal, at, at + 8)))
        snapshot = stream.snapshot()
    got = {p.name: np.concatenate([part[p.name] for part in parts], axis=p.axis) for p in dynamic.outputs}
    compare(want, got, 1e-5, "moved")
