"""Diagnostics of sound files and front ends."""

from __future__ import annotations

from pulse.diagnostics.entry import Diagnostic

TITLE = "Sound and front ends"
ENTRIES = (
    Diagnostic(
        "rate-unsupported",
        2,
        what="the sample rate cannot be had",
        why="A device runs at certain rates only. Any common rate is converted to the model's by a short filter, but "
        "the ratio of the two rates must be a fraction of small numbers.",
        example="pulse mic denoiser.onnx --device-rate 47999",
        remedy="Leave out --device-rate, or give a rate of the device: 48000 or 44100 most likely.",
    ),
    Diagnostic(
        "channels-mismatch",
        2,
        what="the number of channels does not fit the model",
        why="A model of one channel runs once for each channel, or on their mean. A model of several channels needs "
        "exactly those: which is left and which is right means something to it.",
        example="a model of input [1, 2, S] with a mono recording",
        remedy="Give sound with as many channels as the model has.",
    ),
    Diagnostic(
        "frontend-invalid",
        2,
        what="the description of the front end is not understood",
        why="It is `none`, `stft:N,HOP,WINDOW[,FEATURES[,OUTPUT]]` or `logmel:N,HOP,BANDS[,KEY=VALUE...]`.",
        example="--frontend stft:512,600,hann      # the hop leaves samples out",
        remedy="For example `stft:512,256,sqrt-hann,ri` or `logmel:400,160,80,log=ln`; docs/live.md has them all.",
    ),
    Diagnostic(
        "frontend-mismatch",
        2,
        what="the front end does not give what the model takes",
        why="The features must have the size of the model's input. A file does not say what its features are, so the "
        "front end must be named, and it can make the features of one input only.",
        example="pulse mic nsnet2.onnx      # takes 161 bins of a spectrum, and no --frontend was given",
        remedy="Name the front end that the model was trained with, as in `--frontend stft:512,256,sqrt-hann` "
        "(docs/live.md lists them), or compute the features in your own code and use `model.stream()`.",
    ),
    Diagnostic(
        "no-waveform-output",
        2,
        what="the model gives no sound",
        why="Only a model whose output is a waveform, or a spectrum of an stft front end, can write a sound file.",
        example="pulse run vad.onnx in.wav out.wav --frontend logmel:400,160,80",
        remedy="Write its outputs as arrays: give the output a name that ends in .npz.",
    ),
    Diagnostic(
        "bad-audio-file",
        2,
        what="the file is not sound that can be read",
        why="WAV files are read as they are; other formats (FLAC, OGG, MP3) by the package soundfile.",
        example="pulse run denoiser.onnx notes.txt out.wav",
        remedy="Convert it to WAV, or install the extra: `pip install pulse-onnx[audio]`.",
    ),
)
