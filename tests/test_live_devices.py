"""Devices as they refuse: each failure is one message with its own code."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from live_nets import ROOT

from pulse import PulseError
from pulse.live import devices
from pulse.live.devices import Loudspeaker, Microphone, Names, agreed_rate, device_of, listed


class PortAudioError(Exception):
    """As sounddevice raises it: words, number, and what the system below said."""


def device(index: int, name: str, inputs: int, outputs: int, rate: float = 48000.0) -> dict[str, Any]:
    return {
        "index": index,
        "name": name,
        "hostapi": 0,
        "max_input_channels": inputs,
        "max_output_channels": outputs,
        "default_samplerate": rate,
    }


CARDS = [device(0, "HDA Intel: ALC257", 2, 2), device(1, "USB Headset", 1, 2), device(2, "USB Camera", 2, 0, 44100.0)]


class Sound:
    """A stand-in for sounddevice: devices, and what opening or checking one raises."""

    PortAudioError = PortAudioError
    default = SimpleNamespace(device=(0, 0))

    def __init__(
        self, cards: list[dict[str, Any]], opening: Exception | None = None, rates: tuple[int, ...] = ()
    ) -> None:
        self.cards, self.opening, self.rates = cards, opening, rates
        self.opened: list[tuple[Any, ...]] = []

    def query_devices(self, kind: str | None = None) -> Any:
        if kind is None:
            return self.cards
        if not self.cards:
            raise PortAudioError("Error querying device -1")
        return self.cards[0]

    def query_hostapis(self) -> list[dict[str, str]]:
        return [{"name": "ALSA"}]

    def check_input_settings(self, index: int, channels: int, dtype: str, samplerate: int) -> None:
        if self.rates and samplerate not in self.rates:
            raise PortAudioError("Invalid sample rate", -9997)

    check_output_settings = check_input_settings

    def RawInputStream(self, *args: Any, **more: Any) -> Any:
        self.opened.append(args)
        if self.opening:
            raise self.opening
        return Broken(args)

    RawOutputStream = RawInputStream


class Broken:
    """A stream that opens and then fails."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        self.samplerate, self.blocksize, _, self.channels = args[:4]
        self.read_available = 0

    def start(self) -> None:
        pass

    def read(self, frames: int) -> None:
        raise PortAudioError("Unanticipated host error", -9999, (0, -5, "Input/output error"))

    def write(self, data: object) -> None:
        raise PortAudioError("Unanticipated host error", -9999, (0, -19, "No such device"))


@pytest.fixture
def sound(monkeypatch: pytest.MonkeyPatch) -> Sound:
    made = Sound(CARDS)
    monkeypatch.setattr(devices, "portaudio", lambda: made)
    return made


def code_of(call: Any) -> PulseError:
    with pytest.raises(PulseError) as caught:
        call()
    return caught.value


def test_names() -> None:
    assert Names.parse(None) == Names()
    assert Names.parse("3") == Names("3", "3")
    assert Names.parse("USB, 1") == Names("USB", "1")
    assert Names.parse(",speakers") == Names(None, "speakers")


def test_devices_are_found_by_number_and_by_part_of_a_name(sound: Sound) -> None:
    assert device_of(None, "input")["index"] == 0
    assert device_of("1", "input")["name"] == "USB Headset"
    assert device_of("camera", "input")["index"] == 2
    assert device_of("usb", "output")["index"] == 1, "the camera does not play"


def test_devices_that_are_not_there(sound: Sound) -> None:
    error = code_of(lambda: device_of("usb", "input"))
    assert error.code == "device-unknown"
    assert error.found == "1: USB Headset, 2: USB Camera"
    assert code_of(lambda: device_of("2", "output")).code == "device-unknown"
    sound.cards = []
    assert code_of(lambda: device_of(None, "input")).code == "no-microphone"
    assert code_of(lambda: device_of("usb", "input")).code == "no-microphone"
    sound.cards = CARDS[2:]
    assert code_of(lambda: device_of(None, "output")).code == "no-loudspeaker"


def test_list(sound: Sound) -> None:
    rows = listed()
    assert [row["name"] for row in rows] == [card["name"] for card in CARDS]
    assert rows[0]["default"] == ["microphone", "loudspeaker"]
    assert rows[2] | {"index": 2, "inputs": 2, "outputs": 0, "rate": 44100, "system": "ALSA"} == rows[2]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PortAudioError("Device unavailable", -9985), "device-busy"),
        (PortAudioError("Unanticipated host error", -9999, (0, -16, "Device or resource busy")), "device-busy"),
        (PortAudioError("Invalid sample rate", -9997), "rate-unsupported"),
        (PortAudioError("Invalid number of channels", -9998), "channels-mismatch"),
        (PortAudioError("Insufficient memory", -9992), "device-failed"),
    ],
)
def test_devices_that_do_not_open(error: Exception, code: str, sound: Sound) -> None:
    sound.opening = error
    for kind in (Microphone, Loudspeaker):
        caught = code_of(lambda kind=kind: kind(CARDS[0], 16000, 1))
        assert caught.code == code
        assert caught.node == "HDA Intel: ALC257"
        assert str(error.args[0]) in caught.found


def test_mono_is_asked_for_first_then_stereo(sound: Sound) -> None:
    sound.opening = PortAudioError("Invalid number of channels", -9998)
    code_of(lambda: Microphone(CARDS[0], 16000, 1))
    assert [args[3] for args in sound.opened] == [1, 2]


def test_a_model_of_two_channels_needs_a_stereo_microphone(sound: Sound) -> None:
    error = code_of(lambda: Microphone(CARDS[1], 16000, 2))
    assert error.code == "channels-mismatch"
    assert (error.node, error.found) == ("USB Headset", "1")


def test_a_rate_that_all_devices_share(sound: Sound) -> None:
    pair = [("input", CARDS[0]), ("output", CARDS[1])]
    sound.rates = (16000, 48000)
    assert agreed_rate(pair, 16000) == 16000
    sound.rates = (48000,)
    assert agreed_rate(pair, 16000) == 48000
    error = code_of(lambda: agreed_rate(pair, 16000, only=True))
    assert error.code == "rate-unsupported"
    assert error.required == "16000 Hz"
    sound.rates = (8000,)
    assert code_of(lambda: agreed_rate(pair, 16000)).code == "rate-unsupported"


def test_a_device_that_goes_away(sound: Sound) -> None:
    microphone, speaker = Microphone(CARDS[0], 16000, 1), Loudspeaker(CARDS[0], 16000, 1)
    error = code_of(lambda: microphone.read(160))
    assert error.code == "device-lost"
    assert error.found == "Unanticipated host error: Input/output error"
    import numpy as np

    assert code_of(lambda: speaker.write(np.zeros((1, 10), np.float32))).code == "device-lost"


@pytest.mark.parametrize(
    "missing", ["OSError('PortAudio library not found')", "ImportError('No module named sounddevice')"]
)
def test_without_portaudio(missing: str) -> None:
    program = (
        "import builtins, sys\n"
        "real = builtins.__import__\n"
        "def refuse(name, *rest):\n"
        f"    if name == 'sounddevice': raise {missing}\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = refuse\n"
        "from pulse.cli import main\n"
        "main(['mic', '--list-devices'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: the library PortAudio is not there\n")
    assert done.stderr.count("error:") == 1
