"""The example models are what their builders make, run at every legal length, and see only the future they declare."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from scipy.io import wavfile
from scipy.ndimage import maximum_filter1d
from scipy.signal import resample_poly

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("PULSE_SHARED", ROOT.parent / "shared"))


def load_script(path: str) -> ModuleType:
    """A script of the repository as a module; scripts are not installed."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = load_script("models/build.py")
make_input = load_script("examples/make_input.py")

# Output axis, and by how many frames the first output that changes precedes an input changed from a hop boundary on:
# the look-ahead. The gate's is 160 samples, of which the window gives the first a weight of 0.
OUTPUTS = {
    ("enc", "e0"): (2, 0),
    ("enc", "e1"): (2, 0),
    ("enc", "c0"): (2, 0),
    ("enc", "emb"): (1, 0),
    ("enc", "lsnr"): (1, 0),
    ("kws_tcn", "probs"): (1, 0),
    ("unet", "out"): (2, 15),
    ("fsmn", "probs"): (1, 2),
    ("lookahead", "masked"): (1, 3),
    ("spectral_gate", "denoised"): (2, 159),
}
LENGTHS = {"unet": (8, 16, 24, 400), "spectral_gate": (1, 159, 160, 161, 4000)}


def path_of(name: str) -> Path:
    return ROOT / "models" / f"{name}.onnx"


def ort_model(model: onnx.ModelProto) -> Any:
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    runner = ort_model(model)
    return dict(zip([out.name for out in runner.get_outputs()], runner.run(None, feeds), strict=True))


def gate(model: onnx.ModelProto, wave: np.ndarray) -> np.ndarray:
    """The denoised signal, cut to the length of the input, which it is aligned with."""
    return run(model, {"wave": wave.astype(np.float32)[None, None]})["denoised"][0, 0, : len(wave)]


@pytest.mark.parametrize("name", build.NAMES)
def test_builder_makes_the_file_beside_it(name: str) -> None:
    made, held = build.build(name), onnx.load(path_of(name))
    assert build.serialise(made) == build.serialise(build.build(name))
    if build.serialise(made) == path_of(name).read_bytes():
        return
    # Another onnx or numpy may order fields or round the last bit of a cosine otherwise; nothing else may differ.
    assert list(made.graph.node) == list(held.graph.node)
    assert list(made.graph.input) == list(held.graph.input)
    assert list(made.graph.output) == list(held.graph.output)
    assert list(made.opset_import) == list(held.opset_import)
    for ours, theirs in zip(made.graph.initializer, held.graph.initializer, strict=True):
        assert ours.name == theirs.name
        np.testing.assert_allclose(numpy_helper.to_array(ours), numpy_helper.to_array(theirs), rtol=1e-6, atol=1e-7)


def test_no_model_is_missing_or_large() -> None:
    files = sorted((ROOT / "models").glob("*.onnx"))
    built = [file for file in files if ".pulse" not in file.name]
    assert [file.stem for file in built] == sorted(build.NAMES)
    assert max(file.stat().st_size for file in built) < 1_000_000
    assert sum(file.stat().st_size for file in built) < 2_500_000


@pytest.mark.parametrize("name", build.NAMES)
def test_runs_at_every_legal_length(name: str) -> None:
    model = onnx.load(path_of(name))
    onnx.checker.check_model(model, full_check=True)
    for length in LENGTHS.get(name, (1, 2, 3, 50)):
        outputs = run(model, make_input.make_input(path_of(name), length))
        expected = -(-length // 160) * 160 if name == "spectral_gate" else length
        for out, value in outputs.items():
            assert value.shape[OUTPUTS[name, out][0]] == expected, out
            assert np.isfinite(value).all(), out
            assert np.abs(value).max() < 50, out


@pytest.mark.parametrize("name", build.NAMES)
def test_future_reaches_back_exactly_as_far_as_declared(name: str) -> None:
    model, length = onnx.load(path_of(name)), {"spectral_gate": 1600, "unet": 160}.get(name, 60)
    cut = {"spectral_gate": 800}.get(name, length // 2)
    feeds = make_input.make_input(path_of(name), length)
    changed = {key: value.copy() for key, value in feeds.items()}
    for value in changed.values():
        axis = value.shape.index(length)
        value[(slice(None),) * axis + (slice(cut, None),)] += 1
    after = run(model, changed)
    for out, value in run(model, feeds).items():
        axis, ahead = OUTPUTS[name, out]
        others = tuple(i for i in range(value.ndim) if i != axis)
        differs = np.nonzero(np.abs(value - after[out]).max(axis=others))[0]
        assert differs[0] == cut - ahead, out


def test_gate_with_gain_one_gives_the_input_back() -> None:
    model = onnx.load(path_of("spectral_gate"))
    spectrum = next(node.output[0] for node in model.graph.node if node.op_type == "Conv")
    next(node for node in model.graph.node if node.op_type == "ConvTranspose").input[0] = spectrum
    for length in (1, 160, 1000, 8001):
        wave = np.random.default_rng(length).standard_normal(length)
        np.testing.assert_allclose(gate(model, wave), wave, atol=3e-6)


def test_gate_needs_20_ms_at_most() -> None:
    """The last sample of a frame reaches back to the frame's start and no further: 319 samples are 20 ms."""
    model, wave = onnx.load(path_of("spectral_gate")), np.random.default_rng(0).standard_normal(1600)
    changed = wave.copy()
    changed[959] += 10
    first = np.nonzero(gate(model, wave) - gate(model, changed))[0][0]
    assert 959 - 319 <= first <= 959 - 300


def test_gate_finds_steady_noise_after_digital_silence() -> None:
    noise = 10 ** (-60 / 20) * np.random.default_rng(0).standard_normal(16000 * 5)
    wave = np.concatenate([np.zeros(8000), noise])
    out = gate(onnx.load(path_of("spectral_gate")), wave)
    before, after = (np.mean(signal[-16000:] ** 2) for signal in (wave, out))
    assert 10 * np.log10(before / after) > 10


def read_16k(name: str) -> np.ndarray:
    path = SHARED / "audio" / name
    if not path.exists():
        pytest.skip(f"shared audio is absent: {path.name}")
    rate, wave = wavfile.read(path)
    wave = wave / 32768
    return wave if rate == 16000 else resample_poly(wave, 16000, rate)


def si_sdr(estimate: np.ndarray, clean: np.ndarray) -> float:
    """Scale-invariant signal-to-distortion ratio in dB (Le Roux et al., 2019)."""
    target = clean * (estimate @ clean) / (clean @ clean)
    return float(10 * np.log10(np.sum(target**2) / np.sum((estimate - target) ** 2)))


def test_gate_is_worth_having() -> None:
    """At 5 dB: closer to the clean speech than its input, and pauses quieter by total energy and by frame."""
    speech, noise = read_16k("silero_test.wav"), read_16k("dfn_noise_freesound_573577.wav")
    noise = np.resize(noise, len(speech))
    noisy = speech + noise * np.sqrt(np.mean(speech**2) / np.mean(noise**2) / 10 ** (5 / 10))
    out = gate(onnx.load(path_of("spectral_gate")), noisy)
    assert si_sdr(noisy, speech) == pytest.approx(5, abs=0.1)
    assert si_sdr(out, speech) > 12

    def frame_power(wave: np.ndarray) -> np.ndarray:
        return np.mean(wave[: len(wave) // 160 * 160].reshape(-1, 160) ** 2, axis=1) + 1e-12

    pause = maximum_filter1d(10 * np.log10(frame_power(speech)), 11) < -45
    assert pause.mean() > 0.1
    before, after = frame_power(noisy)[pause], frame_power(out)[pause]
    assert 10 * np.log10(before.sum() / after.sum()) > 9
    assert np.mean(10 * np.log10(before / after)) > 9
    assert np.median(10 * np.log10(before / after)) > 9


@pytest.mark.parametrize("name", build.NAMES)
def test_make_input_fits_the_model(name: str, tmp_path: Path) -> None:
    target = tmp_path / "in.npz"
    assert make_input.main([str(path_of(name)), str(target), "16"]) == 0
    with np.load(target) as held:
        graph = onnx.load(path_of(name)).graph
        assert sorted(held) == sorted(value.name for value in graph.input)
        assert all(value.shape[0] == 1 and 16 in value.shape for value in held.values())
        again = make_input.make_input(path_of(name), 16)
        assert all((held[key] == again[key]).all() for key in held)


def test_make_input_refuses_what_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(path_of("enc").read_bytes()[:5000])
    for path, frames in ((broken, "9"), (tmp_path / "absent.onnx", "9"), (path_of("enc"), "0")):
        assert make_input.main([str(path), str(tmp_path / "in.npz"), frames]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "in.npz").exists()
