"""Microphone and loudspeaker: PortAudio's blocking raw streams, so that no Python runs in an audio thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from pulse.errors import PulseError

PERIOD = 0.005
"""Seconds of sound that the system hands over at a time, at most; shorter for shorter pulses."""

# PortAudio's error numbers (portaudio.h)
INVALID_CHANNELS, INVALID_RATE, INVALID_DEVICE, UNAVAILABLE = -9998, -9997, -9996, -9985


class Heard(NamedTuple):
    """What a read brought: `[channels, n]`; whether sound was lost before it; whether it had to wait for it to come."""

    sound: np.ndarray
    overflowed: bool
    waited: bool


class Input(Protocol):
    """A microphone."""

    rate: int
    period: int

    def read(self, frames: int) -> Heard: ...
    def close(self) -> None: ...


class Output(Protocol):
    """A loudspeaker: `room` is the frames it takes without waiting, `write` takes `[channels, n]`."""

    rate: int
    period: int

    def room(self) -> int: ...
    def write(self, frames: np.ndarray) -> None: ...
    def restart(self) -> None: ...
    def close(self) -> None: ...


def portaudio() -> ModuleType:
    """The package sounddevice. Raises PulseError portaudio-missing."""
    try:
        import sounddevice
    except (ImportError, OSError) as error:
        found = " ".join(str(error).split())
        raise PulseError("portaudio-missing", required="PortAudio and the package sounddevice", found=found) from error
    return sounddevice  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Names:
    """What `--device` says: a number or a part of a name each, None for the system's default."""

    microphone: str | None = None
    loudspeaker: str | None = None

    @classmethod
    def parse(cls, text: str | None) -> Names:
        """`BOTH` or `MICROPHONE,LOUDSPEAKER`, either may be empty."""
        if text is None:
            return cls()
        first, comma, second = text.partition(",")
        return cls(first.strip() or None, (second if comma else first).strip() or None)


def listed() -> list[dict[str, Any]]:
    """All devices: index, name, system, input and output channels, default rate, what they are the default for."""
    sd = portaudio()
    systems = sd.query_hostapis()
    default_in, default_out = sd.default.device
    return [
        {
            "index": device["index"],
            "name": device["name"],
            "system": systems[device["hostapi"]]["name"],
            "inputs": device["max_input_channels"],
            "outputs": device["max_output_channels"],
            "rate": int(device["default_samplerate"]),
            "default": [
                kind
                for kind, index in (("microphone", default_in), ("loudspeaker", default_out))
                if index == device["index"]
            ],
        }
        for device in sd.query_devices()
    ]


class Microphone:
    """An open input device."""

    def __init__(self, device: dict[str, Any], rate: int, channels: int, period: float = PERIOD) -> None:
        """Opens a device as `device_of` describes it; with more channels than asked for if it has no fewer.

        Raises PulseError device-busy, device-failed, channels-mismatch, rate-unsupported.
        """
        self.name = device["name"]
        self._stream = _opened("input", device, rate, channels, period)
        self.rate, self.channels, self.period = rate, int(self._stream.channels), int(self._stream.blocksize)
        self._stream.start()

    def read(self, frames: int) -> Heard:
        """Waits for `[channels, frames]`. Raises PulseError device-lost."""
        try:
            there = self._stream.read_available  # never more than the device's own buffer holds
            data, overflowed = self._stream.read(frames)
        except portaudio().PortAudioError as error:
            raise lost(self.name, error) from error
        sound = np.frombuffer(data, np.float32).reshape(-1, self.channels).T
        return Heard(sound, bool(overflowed), there < min(frames, 2 * self.period))

    def close(self) -> None:
        """Gives the device back."""
        _close(self._stream)


class Loudspeaker:
    """An open output device."""

    def __init__(self, device: dict[str, Any], rate: int, channels: int, period: float = PERIOD) -> None:
        """As `Microphone`."""
        self.name = device["name"]
        self._stream = _opened("output", device, rate, channels, period)
        self.rate, self.channels, self.period = rate, int(self._stream.channels), int(self._stream.blocksize)
        self._stream.start()

    def room(self) -> int:
        """Frames that `write` takes without waiting. Raises PulseError device-lost."""
        return int(self._guarded(lambda: self._stream.write_available))

    def write(self, frames: np.ndarray) -> None:
        """Plays `[channels, n]`; one channel goes to all. Raises PulseError device-lost."""
        wide = np.broadcast_to(frames, (self.channels, frames.shape[1])) if len(frames) == 1 else frames
        data = np.ascontiguousarray(wide.T, np.float32)
        self._guarded(lambda: self._stream.write(data))

    def restart(self) -> None:
        """Throws away what waits and begins anew. Raises PulseError device-lost."""
        self._guarded(self._stream.abort)
        self._guarded(self._stream.start)

    def close(self) -> None:
        """Gives the device back."""
        _close(self._stream)

    def _guarded(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except portaudio().PortAudioError as error:
            raise lost(self.name, error) from error


def device_of(name: str | None, kind: str) -> dict[str, Any]:
    """PortAudio's description of a device. Raises PulseError no-microphone, no-loudspeaker, device-unknown."""
    sd = portaudio()
    able = [device for device in sd.query_devices() if device[f"max_{kind}_channels"] > 0]
    if not able:
        if kind == "input":
            raise PulseError("no-microphone", required="a device that records", found="none")
        raise PulseError("no-loudspeaker", required="a device that plays", found="none")
    if name is None:
        try:
            return dict(sd.query_devices(kind=kind))
        except sd.PortAudioError:  # devices, and none of them the default
            return dict(able[0])
    found = [d for d in able if str(d["index"]) == name or d["name"] == name]
    if not found and not name.isdecimal():
        found = [d for d in able if name.lower() in d["name"].lower()]
    if len(found) != 1:
        names = ", ".join(f"{d['index']}: {d['name']}" for d in found or able)
        verb = "records" if kind == "input" else "plays"
        raise PulseError(
            "device-unknown",
            node=name,
            required=f"the number, or a part of the name, of one device that {verb}",
            found=names if found else f"none of these: {names}",
        )
    return dict(found[0])


def lost(name: str, error: Exception | str) -> PulseError:
    """The diagnostic for a device that went away."""
    return PulseError("device-lost", node=name, found=_words(error))


def agreed_rate(devices: list[tuple[str, dict[str, Any]]], wanted: int, only: bool = False) -> int:
    """The rate for all devices (each with its kind, "input" or "output"): `wanted`, or unless `only`, one they share.

    Raises PulseError rate-unsupported.
    """
    sd = portaudio()
    own = [int(device["default_samplerate"]) for _, device in devices]
    failed: Exception = ValueError("no common rate")
    for rate in dict.fromkeys([wanted] if only else [wanted, *own, 48000, 44100]):
        try:
            for kind, device in devices:
                check = sd.check_input_settings if kind == "input" else sd.check_output_settings
                check(device["index"], min(2, device[f"max_{kind}_channels"]), "float32", samplerate=rate)
        except sd.PortAudioError as error:
            failed = error
            if _number(error) != INVALID_RATE:
                return rate  # whatever it is, opening it will tell
        else:
            return rate
    names = " and ".join(dict.fromkeys(device["name"] for _, device in devices))
    remedy = "leave out --device-rate" if only else ""
    raise PulseError("rate-unsupported", node=names, required=f"{wanted} Hz", found=_words(failed), remedy=remedy)


def _opened(kind: str, device: dict[str, Any], rate: int, channels: int, period: float) -> Any:
    """A raw stream, not started, of as many channels as asked for; for one channel two will do."""
    sd = portaudio()
    make = sd.RawInputStream if kind == "input" else sd.RawOutputStream
    most = device[f"max_{kind}_channels"]
    if most < channels:
        required = f"{channels} channels, as many as the model has"
        raise PulseError("channels-mismatch", node=device["name"], required=required, found=f"{most}")
    failed: Exception = ValueError("no channels")
    size = max(int(period * rate), 16)
    for count in dict.fromkeys([channels, min(2, most)] if channels == 1 else [channels]):
        try:
            return make(rate, size, device["index"], count, "float32", 4 * period, dither_off=True, clip_off=True)
        except sd.PortAudioError as error:
            failed = error
            if _number(error) != INVALID_CHANNELS:
                break
    raise _refused(device["name"], failed) from failed


def _refused(name: str, error: Exception) -> PulseError:
    number, found = _number(error), _words(error)
    if number == UNAVAILABLE or "busy" in found.lower():
        return PulseError("device-busy", node=name, found=found)
    if number == INVALID_RATE:
        return PulseError("rate-unsupported", node=name, found=found, remedy="leave out --device-rate")
    if number == INVALID_CHANNELS:
        return PulseError("channels-mismatch", node=name, found=found)
    return PulseError("device-failed", node=name, found=found)


def _number(error: Exception) -> int:
    return error.args[1] if len(error.args) > 1 and isinstance(error.args[1], int) else 0


def _words(error: Exception | str) -> str:
    words = str(error.args[0]) if isinstance(error, Exception) and error.args else str(error)
    host = error.args[2] if isinstance(error, Exception) and len(error.args) > 2 else None
    return f"{words}: {host[2]}" if isinstance(host, tuple) and len(host) == 3 and host[2] else words


def _close(stream: Any) -> None:
    try:
        stream.abort(ignore_errors=True)
    finally:
        stream.close(ignore_errors=True)
