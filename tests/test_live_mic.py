"""`pulse mic` on a private sound server: exact sound, true latency, failures told, recordings kept."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from live_nets import GATE, RATE, gate, identity, level_meter, speechlike, through
from live_server import Server, find, lag, missing
from scipy.io import wavfile

from pulse.cli import main
from pulse.live.chain import Chain

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"no private sound server: {missing()}")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with contextlib.closing(Server(RATE)) as made:
        yield made


@pytest.fixture(scope="module")
def same(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "same.onnx"
    onnx.save(identity([1, 1, "S"]), path)
    return path


def noise(seconds: float) -> np.ndarray:
    return (0.1 * np.random.default_rng(1).standard_normal(int(seconds * RATE))).astype(np.float32)


def wav(path: Path) -> np.ndarray:
    return np.asarray(wavfile.read(path)[1])


def test_passing_through_is_exact_and_as_late_as_reported(server: Server, same: Path, tmp_path: Path) -> None:
    sound = noise(2.0)
    record = tmp_path / "out.wav"
    with server.listening() as heard:
        running = server.mic(same, "--seconds", 2.6, "--json", "--record", record)
        running.listens()
        with server.playing(sound):
            status, out, err = running.ended()
    assert status == 0, err
    told = json.loads(out)
    recorded = wav(record)
    start = find(sound[:RATE], recorded)
    assert len(recorded) == 2.6 * RATE
    np.testing.assert_array_equal(recorded[start : start + len(sound)], sound[: len(recorded) - start])

    went_in, came_out = heard[0]
    begin = find(sound[:RATE], went_in)
    middle = begin + RATE // 2
    measured = 1000 * lag(went_in[middle : middle + RATE], came_out[middle : middle + 2 * RATE], RATE // 2) / RATE
    parts = told["latency_ms"]
    assert sum(value for name, value in parts.items() if name != "total") == pytest.approx(parts["total"])
    if told["missed"] == told["dry"] == told["corrections_ms"] == 0:
        # The device's share is an upper bound: how far its last period had come cannot be seen from here.
        assert parts["total"] - parts["device"] - 1 <= measured <= parts["total"] + 1
        first = middle + round(measured * RATE / 1000)
        np.testing.assert_array_equal(came_out[first : first + RATE], went_in[middle : middle + RATE])


def test_recording_of_the_gate_is_the_offline_stream(server: Server, tmp_path: Path) -> None:
    record, source = tmp_path / "out.wav", tmp_path / "in.wav"
    running = server.mic(GATE, "--seconds", 2.5, "--json", "--record", record, "--record-input", source)
    running.listens()
    sound = speechlike(1.2)[0]
    with server.playing(sound):
        status, out, err = running.ended()
    assert status == 0, err
    given = wav(source)
    start = find(sound[:8000], given)
    np.testing.assert_array_equal(given[start : start + 8000], sound[:8000])
    np.testing.assert_allclose(wav(record)[None], through(Chain(gate(), rate=RATE), given[None], (4096,)), atol=1e-6)
    assert json.loads(out)["latency_ms"]["model"] == 10.0
    assert "recorded" in err


def test_a_device_of_another_rate_goes_through_the_resampler(server: Server, tmp_path: Path) -> None:
    record, source = tmp_path / "out.wav", tmp_path / "in.wav"
    options = ["--seconds", 1.5, "--json", "--record", record, "--record-input", source, "--device-rate", 48000]
    status, out, err = server.mic(GATE, *options).ended()
    assert status == 0, err
    assert json.loads(out)["rate"] == {"model": 16000, "device": 48000}
    assert json.loads(out)["latency_ms"]["model"] == pytest.approx(10 + 10 - 1 / 16 + 2 * 3.583, abs=0.01)
    rate, given = wavfile.read(source)
    assert rate == 48000
    offline = through(Chain(gate(), rate=RATE, in_rate=48000), given[None], (4800,))
    np.testing.assert_allclose(wav(record)[None], offline, atol=1e-6)


def test_a_stopped_process_goes_on_with_the_latency_it_had(server: Server, same: Path, tmp_path: Path) -> None:
    sound, record = noise(6.0), tmp_path / "out.wav"
    with server.listening() as heard:
        running = server.mic(same, "--seconds", 3.2, "--json", "--record", record)
        running.listens()
        with server.playing(sound):
            time.sleep(0.8)
            running.process.send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            running.process.send_signal(signal.SIGCONT)
            status, out, err = running.ended()
    assert status == 0, err
    told = json.loads(out)
    assert told["concealed_ms"] > 100
    assert told["dry"] >= 1
    assert told["missed"] >= 1
    went_in, came_out = heard[0]
    last = np.nonzero(came_out)[0][-1] - RATE // 2
    assert (
        lag(went_in[last - RATE // 2 : last], came_out[last - RATE // 2 : last + RATE // 2], RATE // 2) < 0.055 * RATE
    )
    recorded = wav(record)
    start = find(sound[:RATE], recorded)
    np.testing.assert_array_equal(recorded[start:], sound[: len(recorded) - start])  # not a frame is missing


def test_a_server_that_dies_ends_it_in_one_message_and_keeps_the_recording(same: Path, tmp_path: Path) -> None:
    record = tmp_path / "out.wav"
    with contextlib.closing(Server(RATE)) as doomed:
        running = doomed.mic(same, "--record", record, "--seconds", 30)
        running.listens()
        time.sleep(0.5)
        doomed.process.kill()
        status, _, err = running.ended(15)
    assert status == 2
    assert err.count("error:") == 1
    assert "error: the sound device went away" in err
    assert "Traceback" not in err
    assert "Expression" not in err, "PortAudio's own noise"
    assert len(wav(record)) > RATE // 4
    assert [path.name for path in tmp_path.iterdir()] == ["out.wav"]


def test_no_sound_server_is_no_microphone(server: Server, same: Path) -> None:
    nowhere = server.env | {"PULSE_SERVER": "unix:/nonexistent"}
    for args in ((same,), ("--list-devices",)):
        status, out, err = server.mic(*args, env=nowhere).ended()
        assert (status, out) == (2, "")
        assert err.startswith("error: no microphone found\n")
        assert err.count("error:") == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--device", "nonesuch"), "there is no such sound device"),
        (("--device-rate", 47999), "the sample rate cannot be had"),
        (("--record", "/nonexistent/out.wav"), "the output cannot be written there"),
    ],
)
def test_what_cannot_be_is_told_in_one_message(args: tuple[object, ...], message: str, server: Server) -> None:
    status, out, err = server.mic(GATE, "--seconds", 1, *args).ended()
    assert (status, out) == (2, "")
    assert err.count("error:") == 1
    assert message in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((GATE, "--pulse", "100"), "found: 100"),
        ((GATE, "--pulse", "wide"), "neither a whole number of frames above 0 nor `auto`"),
        ((GATE, "--frontend", "stft:512,256,hann"), "the front end does not give what the model takes"),
        ((GATE, "--frontend", "stft"), "the description of the front end is not understood"),
        (("absent.onnx",), "the file does not exist"),
        ((), "missing argument 'MODEL'"),
    ],
)
def test_what_is_wrong_before_any_sound(args: tuple[object, ...], message: str) -> None:
    result = CliRunner().invoke(main, ["mic", *map(str, args)])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("error:") == 1
    assert message in result.stderr


def test_a_detector_shows_its_outputs(server: Server, tmp_path: Path) -> None:
    onnx.save(level_meter(), tmp_path / "level.onnx")
    status, out, err = server.mic(tmp_path / "level.onnx", "--seconds", 1.2, "--json").ended()
    assert status == 0, err
    told = json.loads(out)
    assert told["outputs"] == {"level": [0.5]}
    assert told["hearing"] is None
    assert "level 0.5" in err
    status, _, err = server.mic(tmp_path / "level.onnx", "--seconds", 1, "--record", tmp_path / "out.wav").ended()
    assert status == 2
    assert "the model gives no sound" in err


def test_devices_are_listed(server: Server) -> None:
    status, out, err = server.mic("--list-devices", "--json").ended()
    assert (status, err) == (0, "")
    assert any("microphone" in device["default"] for device in json.loads(out))


def test_ended_by_a_signal_it_keeps_the_recording(server: Server, same: Path, tmp_path: Path) -> None:
    for number, expected in ((signal.SIGINT, 0), (signal.SIGTERM, 143)):
        record = tmp_path / f"{number}.wav"
        running = server.mic(same, "--record", record)
        running.listens()
        running.process.send_signal(number)
        status, _, err = running.ended(15)
        assert status == expected, err
        assert "Traceback" not in err
        assert len(wav(record)) > 0


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_panel_and_keys_on_a_terminal(server: Server) -> None:
    import termios

    master, slave = os.openpty()
    before = termios.tcgetattr(slave)
    environment = {key: value for key, value in server.env.items() if key != "NO_COLOR"} | {"TERM": "xterm-256color"}
    command = [sys.executable, "-m", "pulse.cli", "mic", str(GATE)]
    running = subprocess.Popen(command, stdin=slave, stdout=subprocess.PIPE, stderr=slave, env=environment)
    seen = b""

    def until(word: bytes) -> None:
        nonlocal seen
        deadline = time.monotonic() + 20
        while word not in seen and time.monotonic() < deadline:
            if select.select([master], [], [], 0.2)[0]:
                seen += os.read(master, 65536)
        assert word in seen, seen.decode(errors="replace")[-2000:]
        seen = seen.partition(word)[2]

    try:
        until(b"hearing processed")
        os.write(master, b"d")
        until(b"hearing dry")
        os.write(master, b"q")
        until(b"pulses")  # the summary at the end
        assert running.wait(15) == 0
        assert termios.tcgetattr(slave) == before, "the terminal is as it was"
    finally:
        running.kill()
        running.wait()
        os.close(master)
        os.close(slave)
