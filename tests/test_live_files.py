"""`pulse run` on sound: one file, many files, any channels and formats; nothing half-written, failures told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from live_nets import GATE, RATE, ROOT, gate, identity, level_meter, speechlike, through
from scipy.io import wavfile

from pulse.cli import main
from pulse.live import audiofile
from pulse.live.audiofile import open_audio
from pulse.live.chain import Chain
from pulse.live.files import FileOptions, FileRunner
from pulse.live.wav import WavWriter


def pulse(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def write(path: Path, sound: np.ndarray, rate: int = RATE, sample_format: str = "float32") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        writer = WavWriter(file, rate, len(sound), sample_format)
        writer.write(sound)
        writer.finish()
    return path


def read(path: Path) -> np.ndarray:
    file = open_audio(path)
    return np.concatenate([np.zeros((file.channels, 0), np.float32), *file.blocks(1000)], axis=1)


@pytest.mark.parametrize("reader", ["soundfile", "scipy"])
@pytest.mark.parametrize("sample_format", ["pcm16", "pcm24", "pcm32", "float32"])
def test_every_sample_format_is_read_as_it_was_written(
    reader: str, sample_format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reader == "soundfile":
        pytest.importorskip("soundfile")
    monkeypatch.setattr(audiofile, "find_spec", lambda name: reader == "soundfile")
    sound = np.round(speechlike(0.1, 2) * 32768) / 32768
    path = write(tmp_path / "a.wav", sound, 48000, sample_format)
    file = open_audio(path)
    assert (file.rate, file.channels, file.frames) == (48000, 2, sound.shape[1])
    assert file.sample_format == (sample_format if (reader, sample_format) != ("scipy", "pcm24") else "pcm32")
    np.testing.assert_array_equal(read(path), sound)


def test_each_channel_has_a_stream_of_its_own(tmp_path: Path) -> None:
    sound = speechlike(0.7, 3)
    result = pulse("run", GATE, write(tmp_path / "in.wav", sound), tmp_path / "out.wav", "--rate", RATE)
    assert result.exit_code == 0, result.output
    made = read(tmp_path / "out.wav")
    chain = Chain(gate(), rate=RATE)
    for channel in range(3):
        alone = through(chain, sound[channel : channel + 1], (4096,))
        np.testing.assert_allclose(made[channel : channel + 1], alone, atol=2e-7)


def test_downmix_runs_the_mean(tmp_path: Path) -> None:
    sound = speechlike(0.3, 2)
    pulse("run", GATE, write(tmp_path / "in.wav", sound), tmp_path / "out.wav", "--downmix")
    alone = through(Chain(gate(), rate=RATE), sound.mean(0, keepdims=True), (4096,))
    np.testing.assert_allclose(read(tmp_path / "out.wav"), alone, atol=2e-7)


def test_the_format_of_the_source_is_kept_and_another_rate_is_converted_both_ways(tmp_path: Path) -> None:
    onnx.save(identity([1, 1, "S"]), tmp_path / "same.onnx")
    time_axis = np.arange(44100) / 44100
    tone = 0.5 * np.sin(2 * np.pi * 1000 * time_axis).astype(np.float32)[None]
    source = write(tmp_path / "in.wav", tone, 44100, "pcm16")
    assert pulse("run", tmp_path / "same.onnx", source, tmp_path / "out.wav", "--rate", 16000).exit_code == 0
    rate, made = wavfile.read(tmp_path / "out.wav")
    assert (rate, made.dtype, len(made)) == (44100, np.int16, 44100)
    np.testing.assert_allclose(made[2000:-2000] / 32768, tone[0, 2000:-2000], atol=1e-4)


def test_a_model_of_two_channels_takes_two(tmp_path: Path) -> None:
    onnx.save(identity([1, 2, "S"]), tmp_path / "pair.onnx")
    sound = speechlike(0.1, 2)
    source = write(tmp_path / "in.wav", sound)
    assert pulse("run", tmp_path / "pair.onnx", source, tmp_path / "out.wav").exit_code == 0
    np.testing.assert_array_equal(read(tmp_path / "out.wav"), sound)
    write(source, sound[:1])
    result = pulse("run", tmp_path / "pair.onnx", source, tmp_path / "out.wav")
    assert result.exit_code == 2
    assert "the number of channels does not fit the model" in result.stderr
    assert "2 channels" in result.stderr


def multiples(shape: list[int | str]) -> onnx.ModelProto:
    """Halves the rate and doubles it again, so that only even lengths are taken; sees one frame ahead."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,C,S] x) => (float[1,C,S] y)
        <float[3] scales = {1.0, 1.0, 2.0}> { m = MaxPool<kernel_shape=[2], strides=[2]>(x) u = Resize<mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor">(m, , scales) y = Mul(u, x) }"""
    model = onnx.parser.parse_model(text)
    for value in (*model.graph.input, *model.graph.output):
        value.type.CopyFrom(onnx.helper.make_tensor_type_proto(1, shape))
    return model


@pytest.mark.parametrize("samples", [800, 801])
@pytest.mark.parametrize("front", ["none", "stft:64,32,sqrt-hann,mag,mask", "logmel:64,32,8"])
def test_a_model_that_takes_even_lengths_only_takes_any_sound(front: str, samples: int, tmp_path: Path) -> None:
    """What is missing is silence, and is cut off again."""
    bands = {"n": 1, "s": 33, "l": 8}[front[0]]
    onnx.save(multiples([1, bands, "S"]), tmp_path / "even.onnx")
    sound = speechlike(1)[:, :samples]
    name = "out.npz" if front[0] == "l" else "out.wav"
    options = ("--rate", RATE, "--frontend", front)
    result = pulse("run", tmp_path / "even.onnx", write(tmp_path / "in.wav", sound), tmp_path / name, *options)
    assert result.exit_code == 0, result.output
    if name == "out.npz":
        assert np.load(tmp_path / name)["y"].shape[2] % 2 == 0
        return
    made = read(tmp_path / name)
    assert made.shape == sound.shape
    if front == "none":
        padded = np.pad(sound, ((0, 0), (0, samples % 2)))
        full = np.repeat(padded.reshape(1, -1, 2).max(2), 2, axis=1) * padded
        np.testing.assert_allclose(made, full[:, :samples], atol=1e-7)


def test_the_speed_told_is_that_of_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of reading the model and laying it out, which a short file would be measured by."""
    ready = FileRunner._ready

    def slowly(self: FileRunner, *given: Any) -> list[Chain]:
        time.sleep(0.5)
        return ready(self, *given)

    monkeypatch.setattr(FileRunner, "_ready", slowly)
    report = FileRunner(gate(), FileOptions()).run(write(tmp_path / "in.wav", speechlike(0.2)), tmp_path / "out.wav")
    assert report.took < 0.5


def test_outputs_that_are_no_sound_become_arrays(tmp_path: Path) -> None:
    onnx.save(level_meter(), tmp_path / "level.onnx")
    source = write(tmp_path / "in.wav", np.full((2, 1600), 1.0, np.float32))
    result = pulse("run", tmp_path / "level.onnx", source, tmp_path / "out.wav")
    assert result.exit_code == 2
    assert "the model gives no sound" in result.stderr
    assert pulse("run", tmp_path / "level.onnx", source, tmp_path / "out.npz").exit_code == 0
    with np.load(tmp_path / "out.npz") as held:
        np.testing.assert_allclose(held["level"], np.full((1, 1, 10), 1 / (1 + np.exp(-1))), rtol=1e-6)


def test_loud_output_is_cut_off_with_a_warning(tmp_path: Path) -> None:
    onnx.save(identity([1, 1, "S"]), tmp_path / "same.onnx")
    source = write(tmp_path / "in.wav", np.ones((1, 99), np.float32), sample_format="pcm16")
    assert "cut off" not in pulse("run", tmp_path / "same.onnx", source, tmp_path / "out.wav").stderr
    half = onnx.load(tmp_path / "same.onnx")
    half.graph.node[0].op_type = "Exp"
    onnx.save(half, tmp_path / "loud.onnx")
    assert "99 samples beyond full scale" in pulse("run", tmp_path / "loud.onnx", source, tmp_path / "out.wav").stderr


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("absent.wav", "out.wav", "the file does not exist"),
        ("text.wav", "out.wav", "the file is not sound that can be read"),
        ("in.wav", "absent/out.wav", "the output cannot be written there"),
        ("in.wav", "out.mp3", "a name that ends in .wav or .npz"),
        ("empty", "out", "at least one sound file"),
        ("*.flac", "out", "at least one sound file"),
    ],
)
def test_failures_are_told_in_one_message(source: str, target: str, message: str, tmp_path: Path) -> None:
    write(tmp_path / "in.wav", speechlike(0.05))
    (tmp_path / "text.wav").write_text("no sound at all")
    (tmp_path / "empty").mkdir()
    result = pulse("run", GATE, tmp_path / source, tmp_path / target)
    assert result.exit_code == 2
    assert result.stderr.count("error:") == 1
    assert message in result.stderr
    assert not (tmp_path / target).exists()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 short files in two subfolders."""
    root = tmp_path_factory.mktemp("many")
    for index in range(200):
        sound = speechlike(0.05 + index % 7 / 50, 1 + index % 2, seed=index)
        write(root / str(index % 2) / f"{index}.wav", sound, sample_format="pcm16")
    return root


def test_two_jobs_give_what_one_gives(folder: Path, tmp_path: Path) -> None:
    for jobs in (1, 2):
        result = pulse("run", GATE, folder, tmp_path / str(jobs), "--rate", RATE, "--jobs", jobs)
        assert result.exit_code == 0, result.output
        assert "wrote 200 files" in result.stderr
    ones = sorted(path for path in (tmp_path / "1").rglob("*") if path.is_file())
    assert len(ones) == 200
    for path in ones:
        assert path.read_bytes() == (tmp_path / "2" / path.relative_to(tmp_path / "1")).read_bytes()


def test_a_bad_file_among_many_is_told_and_the_rest_is_done(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path / "in" / f"{name}.wav", speechlike(0.05))
    (tmp_path / "in" / "bad.wav").write_text("no sound at all")
    result = pulse("run", GATE, tmp_path / "in" / "*.wav", tmp_path / "out", "--jobs", 2)
    assert result.exit_code == 2
    assert "bad.wav" in result.stderr
    assert "wrote 3 files" in result.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.wav", "b.wav", "c.wav"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_hints_are_taken_whatever_the_number_of_jobs(jobs: int, tmp_path: Path) -> None:
    """Told by a file of hints that is none: named by the option, or lying beside the model."""
    for name in "ab":
        write(tmp_path / "in" / f"{name}.wav", speechlike(0.05))
    model = tmp_path / "gate.onnx"
    model.write_bytes(GATE.read_bytes())
    bad = tmp_path / "gate.onnx.hints.json"
    bad.write_text("{}")
    result = pulse("run", model, tmp_path / "in", tmp_path / "out", "--jobs", jobs, "--hints", bad)
    assert result.exit_code == 2
    assert result.stderr.count("`pulse explain hints-invalid`") == 2
    command = [sys.executable, "-m", "pulse.cli", "run", model, tmp_path / "in", tmp_path / "out", "--jobs", jobs]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=ROOT, check=True)
    assert "are left out" in done.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_target_that_is_no_folder_is_named(jobs: int, tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / "in" / f"{name}.wav", speechlike(0.05))
    (tmp_path / "out").write_text("a file")
    result = pulse("run", GATE, tmp_path / "in", tmp_path / "out", "--jobs", jobs)
    assert result.exit_code == 2
    assert result.stderr.count("`pulse explain output-unwritable`") == 2
    assert f"`{tmp_path / 'out'}`" in result.stderr
    assert (tmp_path / "out").read_text() == "a file"


def test_two_sources_of_one_name_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.wav", speechlike(0.05))
    write(tmp_path / "in" / "a.aiff", speechlike(0.05))
    result = pulse("run", GATE, tmp_path / "in", tmp_path / "out")
    assert result.exit_code == 2
    assert "a.aiff and a.wav" in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="kills with a POSIX signal")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_leaves_only_whole_files(jobs: int, tmp_path: Path) -> None:
    for index in range(6):
        write(tmp_path / "in" / f"{index}.wav", np.tile(speechlike(1.0), 20), sample_format="pcm16")
    target = tmp_path / "out"
    command = [sys.executable, "-m", "pulse.cli", "run", GATE, tmp_path / "in", target, "--jobs", str(jobs)]
    running = subprocess.Popen(
        [str(word) for word in command], env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not list(target.glob("*.wav")) and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    time.sleep(0.05)
    left = list(target.iterdir())
    assert left
    for path in left:
        assert path.suffix == ".wav", f"{path.name} is no finished file"
        assert not path.name.startswith(".")
        assert wavfile.read(path)[1].shape == (20 * RATE,)
