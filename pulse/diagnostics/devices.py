"""Diagnostics of sound devices."""

from __future__ import annotations

from pulse.diagnostics.entry import Diagnostic

TITLE = "Sound devices"
ENTRIES = (
    Diagnostic(
        "portaudio-missing",
        2,
        what="the library PortAudio is not there",
        why="The microphone and the loudspeaker are reached through PortAudio, on Linux a package of the system.",
        example="pulse mic denoiser.onnx      # on a machine without libportaudio",
        remedy="Install it (Debian, Ubuntu: `apt-get install libportaudio2`) and the Python package sounddevice.",
    ),
    Diagnostic(
        "no-microphone",
        2,
        what="no microphone found",
        why="The system offers no device that records: none is plugged in, or the sound server is not running.",
        example="pulse mic denoiser.onnx      # over ssh, without a sound server",
        remedy="Plug one in, start the sound server, and look at `pulse mic --list-devices`. Recordings need none of "
        "this: `pulse run MODEL IN.wav OUT.wav`.",
    ),
    Diagnostic(
        "no-loudspeaker",
        2,
        what="no device to play to was found",
        why="A model that gives sound is played while it runs.",
        example="pulse mic denoiser.onnx      # with a microphone only",
        remedy="Plug in headphones or a loudspeaker and look at `pulse mic --list-devices`.",
    ),
    Diagnostic(
        "device-unknown",
        2,
        what="there is no such sound device",
        why="A device is named by its number or by a part of its name that no other device has.",
        example="pulse mic denoiser.onnx --device headset      # two devices are called so",
        remedy="`pulse mic --list-devices` lists numbers and names.",
    ),
    Diagnostic(
        "device-busy",
        2,
        what="the sound device is taken by another program",
        why="A device without a sound server in between serves one program at a time.",
        example="pulse mic denoiser.onnx --device hw:0      # a recorder runs",
        remedy="End the other program, or name the sound server's device: `--device default`, `pulse` or `pipewire`.",
    ),
    Diagnostic(
        "device-failed",
        2,
        what="the sound device could not be opened",
        why="The system's sound layer refused; the message holds its own words.",
        example="pulse mic denoiser.onnx --device 3",
        remedy="Try another device of `pulse mic --list-devices`.",
    ),
    Diagnostic(
        "device-lost",
        2,
        what="the sound device went away",
        why="It was unplugged, or the sound server ended, while the stream ran. A recording is kept up to that point.",
        example="pulling the headset's plug during `pulse mic denoiser.onnx`",
        remedy="Plug it in again or start the sound server, then start again.",
    ),
)
