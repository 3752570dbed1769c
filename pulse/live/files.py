"""A sound file through a model, block by block, into another file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pulse import npz
from pulse.errors import PulseError
from pulse.live.atomic import whole_file
from pulse.live.audiofile import AudioFile, open_audio
from pulse.live.chain import Chain, Made
from pulse.live.spec import parse
from pulse.live.wav import WavWriter

if TYPE_CHECKING:
    from pulse.model import PulsedModel

CHUNK = 4096
"""Samples of the model's rate per push, at least: enough to be quick, few enough to need no memory."""


@dataclass(frozen=True)
class FileOptions:
    """How files are run.

    Attributes:
        front: description of the front end.
        rate: the model's rate in Hz; None: that of each file.
        downmix: run the mean of the channels in place of each channel.
        chunk: source frames per push; None: a sensible number.
        engine: name of the engine, None for the first that covers the model.
    """

    front: str | None = None
    rate: int | None = None
    downmix: bool = False
    chunk: int | None = None
    engine: str | None = None


@dataclass(frozen=True)
class Report:
    """What one file came to: its length in seconds, time taken once the streams stood, channels written, rate in Hz,
    samples cut off."""

    target: str
    seconds: float
    took: float
    channels: int
    rate: int
    clipped: int


Progress = Callable[[int], None]


class FileRunner:
    """Runs files one after another; streams are kept from file to file."""

    def __init__(self, model: PulsedModel, options: FileOptions) -> None:
        self._model, self._options = model, options
        self._front = parse(options.front)
        self._chains: list[Chain] = []
        self._rate = 0

    def run(self, source: Path, target: Path, progress: Progress | None = None) -> Report:
        """Reads `source`, writes `target`: a WAV file in the source's sample format, or a .npz of the outputs.

        Each channel goes through a stream of its own, unless the model takes several or `downmix` is asked for. A .npz
        holds the outputs for the mean of the channels. `progress` is told the samples read.
        """
        file = open_audio(source)
        if target.suffix.lower() not in (".wav", ".npz"):
            wanted = "a name that ends in .wav or .npz"
            raise PulseError("output-unwritable", node=str(target), required=wanted, remedy="give OUT such a name")
        sound = target.suffix.lower() == ".wav"
        mean = self._options.downmix or not sound
        chains = self._ready(file, source, mean)
        if sound and chains[0].wiring.sound is None:
            names = ", ".join(port.name for port in chains[0].wiring.shown)
            raise PulseError("no-waveform-output", node=str(target), required="sound", found=f"outputs {names}")
        start = time.perf_counter()
        made = self._made(file, chains, mean, progress)
        report = Report(str(target), file.frames / file.rate, 0.0, 0, chains[0].out_rate, 0)
        if sound:
            channels = sum(chain.wiring.out_channels for chain in chains)
            with whole_file(target) as out:
                writer = WavWriter(out, chains[0].out_rate, channels, file.sample_format)
                for pieces in made:
                    writer.write(np.concatenate([piece.sound for piece in pieces]))
                writer.finish()
            report = replace(report, channels=channels, clipped=writer.clipped)
        else:
            write_outputs(target, chains[0], [pieces[0] for pieces in made])
        return replace(report, took=time.perf_counter() - start)

    def _ready(self, file: AudioFile, source: Path, mean: bool) -> list[Chain]:
        """One stream per signal, at its start."""
        if file.rate != self._rate:
            self._chains, self._rate = [], file.rate
        if not self._chains:
            self._chains.append(self._chain(file.rate))
        wanted = self._chains[0].wiring.channels
        if wanted > 1 and file.channels != wanted:
            raise PulseError(
                "channels-mismatch",
                node=str(source),
                required=f"{wanted} channels, as the model's input `{self._chains[0].wiring.source.name}`",
                found=f"{file.channels}",
            )
        count = 1 if mean or wanted > 1 else file.channels
        while len(self._chains) < count:
            self._chains.append(self._chain(file.rate))
        for chain in self._chains[:count]:
            chain.reset()
        return self._chains[:count]

    def _chain(self, file_rate: int) -> Chain:
        options = self._options
        rate = options.rate or file_rate
        return Chain(self._model, self._front, rate=rate, in_rate=file_rate, engine=options.engine)

    def _made(
        self, file: AudioFile, chains: list[Chain], mean: bool, progress: Progress | None
    ) -> Iterator[list[Made]]:
        for block in file.blocks(self._block(chains[0])):
            signal = block
            if mean and chains[0].wiring.channels == 1:
                signal = block.mean(0, keepdims=True)
            signal = np.ascontiguousarray(signal, np.float32)
            yield [c.push(s) for c, s in zip(chains, _signals(signal, chains), strict=True)]
            if progress:
                progress(block.shape[1])
        yield [chain.flush() for chain in chains]

    def _block(self, chain: Chain) -> int:
        """Samples of the file per push: whole grains of the model where the rates allow it."""
        hop = chain.grain if self._options.chunk is None else 1
        wanted = self._options.chunk * chain.hop if self._options.chunk else -(-CHUNK // hop) * hop
        step = chain.in_rate // gcd(chain.in_rate, chain.rate)
        return -(-wanted * chain.in_rate // chain.rate // step) * step


def _signals(block: np.ndarray, chains: list[Chain]) -> list[np.ndarray]:
    if chains[0].wiring.channels > 1:
        return [block]
    return [block[i : i + 1] for i in range(len(chains))]


def write_outputs(target: Path, chain: Chain, made: list[Made]) -> None:
    """A .npz of every output, joined along its stream axis, whole or not at all."""
    arrays = {
        port.name: np.concatenate([piece.shown[port.name] for piece in made], axis=port.axis)
        for port in chain.wiring.shown
    }
    if chain.wiring.sound is not None:
        arrays[chain.wiring.sound.name] = np.concatenate([piece.sound for piece in made], axis=1)
    with whole_file(target) as out:
        npz.save(out, arrays)
