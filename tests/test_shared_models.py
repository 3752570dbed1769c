"""Published models stream exactly: noise over random chunkings, real sound, and a stateful twin by its own authors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from oracle import Arrays, Case, Full, assert_streams, chunkings, compare, drive
from published import GRAPHS, erb_features, graph, log_mel, log_power, speech

import pulse

pytestmark = pytest.mark.filterwarnings("ignore:output `cache_out:pulse.PulseWarning")  # states, no streams
WIDTHS = (1, 2, 3, 4, 8, "dynamic")
CAUSAL = {
    "dfn2/enc": ("e0", "e1", "e2", "e3", "emb", "c0", "lsnr"),
    "dfn2/erb_dec": ("m",),
    "dfn2/df_dec": ("coefs", "217"),
    "dfn3/enc": ("e0", "e1", "e2", "e3", "emb", "c0", "lsnr"),
    "firered/stream_vad": ("probs",),
    "nsnet2/nsnet2_20ms": ("output",),
}


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize("name", GRAPHS)
def test_stream_equals_the_full_signal(shared: Path, name: str, width: int | str) -> None:
    """Within 1e-5 of the largest output, at lengths below, at and beside a multiple of the width; then with NaN past
    the end, which the oracle leaves out where a Cast to integers is in the graph, as in the shapes of these."""
    model, delays = graph(shared, name), dict.fromkeys(CAUSAL[name], 0)
    pulsed = assert_streams(model, widths=(width,), lengths=(1, 2, 29, 32), ways=3, least=False, delays=delays)
    assert {o.name for o in pulsed.outputs} == set(CAUSAL[name])
    case = Case(Full(model), pulse.convert(model, pulse=width))
    feeds = case.signal(23, np.random.default_rng(1))
    compare(case.full(feeds), stream_of(case, feeds), 1e-5, f"{name}, NaN past the end")


@pytest.mark.parametrize("name", ["dfn2/df_dec", "firered/stream_vad"])
def test_reference_engine(shared: Path, name: str) -> None:
    assert_streams(graph(shared, name), widths=(3,), lengths=(1, 7), ways=1, engines=("reference",), least=False)


@pytest.mark.parametrize("name", GRAPHS)
def test_no_error_builds_up(shared: Path, name: str) -> None:
    """Recurrent states over a thousand frames."""
    model = graph(shared, name)
    case = Case(Full(model), pulse.convert(model, pulse=8))
    feeds = case.signal(1003, np.random.default_rng(7))
    got = drive(case, case.pulsed.stream(filler=np.nan), feeds, {}, [1003], 8)
    compare(case.full(feeds), got, 1e-5, f"{name}, 1003 frames")


def stream_of(case: Case, feeds: Arrays, seed: int = 0) -> Arrays:
    """What a stream gives for a recording in random chunks."""
    frames = next(iter(feeds.values())).shape[case.streaming[0].axis]
    chunks = chunkings(frames, np.random.default_rng(seed), 3)[-1]
    step = case.pulsed.granularity if case.pulsed.pulse == "dynamic" else case.pulsed.pulse
    return drive(case, case.pulsed.stream(filler=np.nan), feeds, {}, chunks, step)


@pytest.mark.parametrize("width", [1, 4, "dynamic"], ids=str)
@pytest.mark.parametrize("name", ["dfn2/enc", "dfn3/enc", "nsnet2/nsnet2_20ms"])
def test_real_sound(shared: Path, name: str, width: int | str) -> None:
    wave = speech(shared, "gtcrn_mix_16k.wav")[: 16000 * 3]
    feeds = {"input": log_power(wave)} if name.startswith("nsnet2") else erb_features(wave)
    model = graph(shared, name)
    case = Case(Full(model), pulse.convert(model, pulse=width))
    want = case.full(feeds)
    assert all(np.ptp(v) > 1e-3 for v in want.values()), "the sound leaves an output unmoved"
    compare(want, stream_of(case, feeds), 1e-5, f"{name}, {len(wave)} samples of noisy speech")


@pytest.fixture(scope="module")
def twin(shared: Path) -> Any:
    """The voice-activity detector in its authors' own streaming form: their caches, given back after each call."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    path = shared / "models" / "firered" / "stream_vad_with_cache.onnx"
    session = ort.InferenceSession(str(path), options)

    def run(feat: np.ndarray, width: int) -> np.ndarray:
        caches = np.zeros((8, 1, 128, 19), np.float32)
        parts = []
        for at in range(0, feat.shape[1], width):
            probs, caches = session.run(
                ["probs", "caches_out"], {"feat": feat[:, at : at + width], "caches_in": caches}
            )
            parts.append(probs)
        return np.concatenate(parts, axis=1)

    return run


def recording(shared: Path) -> np.ndarray:
    feat = log_mel(speech(shared))
    # the model is trained on normalised features; their level alone saturates it
    return ((feat - feat.mean(axis=1, keepdims=True)) / feat.std()).astype(np.float32)


def noise(shared: Path) -> np.ndarray:
    return (2 * np.random.default_rng(11).standard_normal((1, 203, 80))).astype(np.float32)


@pytest.mark.parametrize("width", [1, 3, 8, "dynamic"], ids=str)
@pytest.mark.parametrize("features", [recording, noise], ids=lambda f: f.__name__)
def test_stream_equals_the_authors_own(shared: Path, twin: Any, features: Any, width: int | str) -> None:
    feat = features(shared)
    model = graph(shared, "firered/stream_vad")
    case = Case(Full(model), pulse.convert(model, pulse=width))
    got = stream_of(case, {"feat": feat})["probs"]
    golden = twin(feat, 4 if width == "dynamic" else int(width))
    assert got.shape == golden.shape == (1, feat.shape[1], 1)
    assert np.ptp(golden) > 0.05, "the features leave the detector unmoved"
    np.testing.assert_allclose(got, golden, atol=1e-5, rtol=0)
