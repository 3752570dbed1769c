"""A private PulseAudio with one null sink as its sound card: the left channel is the microphone, the right the speaker.

Sound played to `voice` is what the microphone hears. One recording of the sink's monitor holds what went in and what
came out side by side, so the latency between them can be read off to the sample.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from ctypes import CDLL
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = """
load-module module-native-protocol-unix auth-anonymous=1 socket={socket}
load-module module-null-sink norewinds=1 sink_name=card rate={rate} format=float32le channels=2 \
channel_map=front-left,front-right
load-module module-remap-source source_name=mic master=card.monitor channels=1 channel_map=mono \
master_channel_map=front-left remix=no
load-module module-remap-sink sink_name=voice master=card channels=1 channel_map=mono \
master_channel_map=front-left remix=no
load-module module-remap-sink sink_name=speaker master=card channels=1 channel_map=mono \
master_channel_map=front-right remix=no
set-default-source mic
set-default-sink speaker
"""


def missing() -> str | None:
    """Why the tests cannot run here, or None."""
    for program in ("pulseaudio", "paplay", "parec"):
        if not shutil.which(program):
            return f"{program} is not installed"
    if not find_spec("sounddevice"):
        return "the package sounddevice is not installed"
    if not find_library("portaudio"):
        return "PortAudio is not installed"
    name = "alsa-lib/libasound_module_pcm_pulse.so"
    found = [*Path("/usr/lib").glob(f"*/{name}"), *Path("/usr").glob(f"lib*/{name}")]
    return None if found else "ALSA's plugin for PulseAudio is not installed"


def with_parent() -> None:
    """In a child process: end when the tests do, however they end."""
    with contextlib.suppress(OSError, AttributeError):
        CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Server:
    """A running server; `env` reaches it."""

    def __init__(self, rate: int = 16000) -> None:
        self.rate = rate
        self._home = Path(tempfile.mkdtemp(prefix="pulse-test-"))  # short: a socket's path has 108 characters at most
        socket = self._home / "socket"
        script = self._home / "start.pa"
        script.write_text(SCRIPT.format(socket=socket, rate=rate))
        (self._home / "asoundrc").write_text("pcm.!default { type pulse }\nctl.!default { type pulse }\n")
        own = {"HOME": str(self._home), "XDG_RUNTIME_DIR": str(self._home)}
        self.env = os.environ | own | {"PULSE_SERVER": f"unix:{socket}", "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
        command = ["pulseaudio", "-n", "-F", str(script), "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"]
        command += ["--high-priority=yes", "--realtime=yes"]  # where allowed: else other work on the machine shows
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, env=os.environ | own, preexec_fn=with_parent, **quiet)
        deadline = time.monotonic() + 15
        while subprocess.run(["pactl", "info"], env=self.env, check=False, **quiet).returncode:
            if time.monotonic() > deadline:
                self.close()
                pytest.skip("PulseAudio does not start here")
            time.sleep(0.1)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self._home, ignore_errors=True)

    @contextlib.contextmanager
    def playing(self, sound: np.ndarray) -> Iterator[subprocess.Popen]:
        """Plays `[n]` of float32 to the microphone while the block runs, and to its end if the block waits."""
        path = self._home / "voice.raw"
        np.asarray(sound, "<f4").tofile(path)
        command = ["paplay", "--raw", "--format=float32le", f"--rate={self.rate}", "--channels=1", "-d", "voice"]
        player = subprocess.Popen([*command, str(path)], env=self.env, preexec_fn=with_parent)
        try:
            yield player
        finally:
            player.kill()
            player.wait()

    @contextlib.contextmanager
    def listening(self) -> Iterator[list[np.ndarray]]:
        """Records the card; afterwards the list holds `[2, n]`: what went in, what came out."""
        path, heard = self._home / "card.raw", []
        command = ["parec", "--raw", "--format=float32le", f"--rate={self.rate}", "--channels=2", "-d", "card.monitor"]
        with open(path, "wb") as file:
            command.append("--latency-msec=20")
            recorder = subprocess.Popen(command, stdout=file, env=self.env, preexec_fn=with_parent)
            try:
                time.sleep(0.3)
                yield heard
                time.sleep(0.2)
            finally:
                recorder.terminate()
                recorder.wait()
        samples = np.fromfile(path, "<f4")
        heard.append(samples[: len(samples) // 2 * 2].reshape(-1, 2).T)

    def mic(self, *args: object, **more: Any) -> Mic:
        """`pulse mic`, running."""
        return Mic([sys.executable, "-m", "pulse.cli", "mic", *map(str, args)], {"env": self.env} | more)


class Mic:
    """A running command."""

    def __init__(self, command: list[str], options: dict[str, Any]) -> None:
        self._told = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by `ended`)
        options = {"stdout": subprocess.PIPE, "stderr": self._told, "text": True, "preexec_fn": with_parent} | options
        self.process = subprocess.Popen(command, **options)

    def listens(self) -> Mic:
        """Waits until sound flows: a first line of numbers is there."""
        deadline = time.monotonic() + 30
        while " s: in " not in self._stderr():
            assert self.process.poll() is None, self._stderr()
            assert time.monotonic() < deadline, self._stderr()
            time.sleep(0.02)
        return self

    def ended(self, seconds: float = 60) -> tuple[int, str, str]:
        """Exit status, stdout and stderr, once it has ended; killed after so long."""
        try:
            out, _ = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.communicate()
            raise AssertionError(f"still running after {seconds} s: {self._stderr()}") from None
        told = self._stderr()
        self._told.close()
        return self.process.returncode, out, told

    def _stderr(self) -> str:
        self._told.seek(0)
        return self._told.read()


def lag(before: np.ndarray, after: np.ndarray, most: int) -> int:
    """Samples by which `after` follows `before`, by their correlation, up to `most`."""
    size = 1 << (len(before) + most).bit_length()
    product = np.fft.rfft(after, size) * np.conj(np.fft.rfft(before, size))
    return int(np.argmax(np.fft.irfft(product, size)[: most + 1]))


def find(needle: np.ndarray, hay: np.ndarray) -> int:
    """Where `needle` begins in `hay`, by correlation."""
    size = 1 << (len(needle) + len(hay)).bit_length()
    product = np.fft.rfft(hay, size) * np.conj(np.fft.rfft(needle, size))
    return int(np.argmax(np.fft.irfft(product, size)[: len(hay)]))
