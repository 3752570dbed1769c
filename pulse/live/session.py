"""A live stream from beginning to end: devices, threads, recordings, and what is to be told of them."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pulse.errors import PulseError
from pulse.live.auto import AutoWidth, ladder, narrowest
from pulse.live.chain import Chain
from pulse.live.devices import PERIOD, Loudspeaker, Microphone, Names, agreed_rate, device_of, lost
from pulse.live.player import Player
from pulse.live.playout import Playout
from pulse.live.quiet import calm_thread, hasten_threads
from pulse.live.recorder import Recorder
from pulse.live.spec import parse
from pulse.live.stats import Stats
from pulse.live.worker import Worker, frames_of
from pulse.model import illegal_pulse

if TYPE_CHECKING:
    from pulse.model import PulsedModel

NO_SOUND = 2.0
"""Seconds without a pulse after which the device counts as lost."""
USUAL = 0.010
"""Seconds of a pulse where none is asked for, at least."""


@dataclass(frozen=True)
class LiveOptions:
    """How to run live.

    Attributes:
        rate: the model's rate in Hz; `device_rate` that of the devices, None: the same if they can.
        pulse: source frames per pulse, "auto", or None for some 10 ms.
        margin: seconds that a pulse may be late without a gap.
        record, record_input: WAV files for what comes out and what goes in.
        seconds: when to end, None: never.
        realtime: ask the system for real-time priority.
        weights: what the native engine stores large weights in, "f32" or "bf16".
        quiet: seconds without a miss after which "auto" tries a narrower pulse.
    """

    front: str | None = None
    rate: int = 16000
    device: str | None = None
    device_rate: int | None = None
    pulse: int | str | None = None
    margin: float = 0.010
    engine: str | None = None
    record: Path | None = None
    record_input: Path | None = None
    seconds: float | None = None
    realtime: bool = True
    quiet: float = 10.0
    weights: str = "f32"


class Session:
    """Opened devices and a stream between them; `start`, then look at `snapshot` now and then, then `finish`."""

    def __init__(self, model: PulsedModel, options: LiveOptions) -> None:
        """Opens all there is to open. Raises PulseError, with nothing left open or half-written."""
        self._options, front = options, parse(options.front)
        self._open: list[Any] = []
        grain = (model.granularity if model.pulse == "dynamic" else int(model.pulse)) * (front.hop if front else 1)
        widths, width = self._widths(model, grain, front.hop if front else 1)
        probe = Chain(model, front, rate=options.rate, engine=options.engine, weights=options.weights)
        if options.record and probe.wiring.sound is None:
            raise PulseError(
                "no-waveform-output",
                node=str(options.record),
                required="sound to record",
                found=f"outputs {', '.join(port.name for port in probe.wiring.shown)}",
                remedy="--record-input keeps what the microphone gave",
            )
        if len(widths) > 1:
            width = narrowest(widths, options.rate, lambda samples: _measured(probe, samples))
        _measured(probe, width)  # whatever is made on first use is made before sound flows
        auto = AutoWidth(widths, width, options.quiet) if options.pulse == "auto" else None
        try:
            self._connect(model, probe, width, auto)
        except BaseException:
            self.close()
            raise

    def _widths(self, model: PulsedModel, grain: int, hop: int) -> tuple[list[int], int]:
        """Widths to choose from and the first to try, in samples of the model."""
        options = self._options
        if options.pulse == "auto":
            widths = ladder(grain, options.rate)
            return widths, widths[0]
        if options.pulse is None:
            width = grain * max(1, ceil(USUAL * options.rate / grain))
        else:
            width = int(options.pulse) * hop
            if width % grain:
                raise illegal_pulse(int(options.pulse), grain // hop)
        return [width], width

    def _connect(self, model: PulsedModel, probe: Chain, width: int, auto: AutoWidth | None) -> None:
        options, wiring = self._options, probe.wiring
        names = Names.parse(options.device)
        devices = [("input", device_of(names.microphone, "input"))]
        if wiring.sound:
            devices.append(("output", device_of(names.loudspeaker, "output")))
        rate = agreed_rate(devices, options.device_rate or options.rate, only=options.device_rate is not None)
        self.chain = chain = Chain(
            model, parse(options.front), rate=options.rate, in_rate=rate, out_rate=rate, engine=options.engine,
            weights=options.weights,
        )  # fmt: skip
        self.stats = Stats(rate)
        period = min(PERIOD, width / options.rate / 2)
        microphone = self._keep(Microphone(devices[0][1], rate, wiring.channels, period))
        self._margin = int(options.margin * rate)
        self._playout: Playout | None = None
        self._player: Player | None = None
        self._device_seconds = microphone.period / rate
        if wiring.sound:
            speaker = self._keep(Loudspeaker(devices[1][1], rate, wiring.out_channels, period))
            self._playout = Playout(wiring.out_channels, rate, self._margin + ceil(chain.delay() * rate))
            self._player = Player(speaker, self._playout, self.stats, time.monotonic)
            self._device_seconds += speaker.period / rate
        self._recorders = [
            Recorder(path, rate, channels) if path else None
            for path, channels in ((options.record_input, wiring.channels), (options.record, wiring.out_channels))
        ]
        self._worker = Worker(
            microphone, chain, self._playout, self._player, self.stats, frames_of(width, chain), self._margin, auto,
            limit=None if options.seconds is None else round(options.seconds * rate),
            on_input=self._recorders[0].put if self._recorders[0] else None,
            on_output=self._recorders[1].put if self._recorders[1] else None,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._work, name="worker", daemon=True)
        self._error: BaseException | None = None
        self._progress = (0, time.monotonic())
        self.realtime = False

    def start(self) -> None:
        """Lets sound flow."""
        self._progress = (0, time.monotonic())
        if self._player:
            self._player.start()
        self._thread.start()
        if self._options.realtime:
            self.realtime = hasten_threads()

    @property
    def running(self) -> bool:
        """False once the stream has ended by itself or `check` has something to raise."""
        return self._thread.is_alive() and self._error is None and not (self._player and self._player.error)

    def check(self) -> None:
        """Raises what ended the stream, PulseError device-lost if sound has ceased to come."""
        error = self._error or (self._player.error if self._player else None)
        if error is not None:
            raise error
        now = time.monotonic()
        if self.stats.pulses != self._progress[0] or not self._worker.reading:
            self._progress = (self.stats.pulses, now)
        elif self._thread.is_alive() and now - self._progress[1] > NO_SOUND + self._worker.width / self.stats.rate:
            raise lost("microphone", f"no sound for {NO_SOUND:.0f} s")

    def toggle(self) -> None:
        """From processed sound to dry and back."""
        self._worker.dry = not self._worker.dry

    def finish(self) -> None:
        """Ends the stream; the recordings get their tails and names. Raises PulseError output-unwritable."""
        if self.realtime:
            calm_thread()
        self._worker.stop()
        stuck = True
        if self._thread.ident:
            self._thread.join(1.0)
            stuck = self._thread.is_alive()
        if self._player:
            if not stuck and not self._player.error and self._error is None:
                time.sleep(min(self.latency()["total"], 0.5))  # what is on its way is still played
            self._player.end.set()
            if self._player.ident:
                self._player.join(1.0)
                stuck |= self._player.is_alive()
        recorders = [recorder for recorder in self._recorders if recorder]
        for recorder in recorders:
            recorder.finish()
        if stuck and self._thread.ident:
            _abandon_portaudio()
        else:
            self.close()
        for recorder in recorders:
            if recorder.error:
                raise PulseError("output-unwritable", node=str(recorder.path), found=str(recorder.error.strerror))

    def close(self) -> None:
        """Gives the devices back."""
        while self._open:
            self._open.pop().close()

    def latency(self) -> dict[str, float]:
        """Seconds between sound that goes in and what is heard of it, by where they are spent."""
        rate = self.stats.rate
        parts = {
            "device": self._device_seconds,
            "buffering": (self._worker.width + (self._margin if self._playout else 0)) / rate,
            "model": float(self.chain.delay()),
            "compute": self.stats.compute_us()["median"] / 1e6,
        }
        return parts | {"total": sum(parts.values())}

    def snapshot(self) -> dict[str, Any]:
        """All there is to tell, in plain values; times in ms."""
        playout, rate = self._playout, self.stats.rate
        told = self.stats.as_dict() | {
            "rate": {"model": self.chain.rate, "device": rate},
            "pulse": {"frames": self._pulse_frames(), "ms": 1e3 * self._worker.width / rate},
            "latency_ms": {name: 1e3 * value for name, value in self.latency().items()},
            "concealed_ms": 1e3 * playout.concealed / rate if playout else 0.0,
            "late_ms": 1e3 * playout.late / rate if playout else 0.0,
            "skipped_ms": 1e3 * playout.skipped / rate if playout else 0.0,
            "hearing": ("dry" if self._worker.dry else "processed") if playout else None,
            "engine": self.chain.engine,
            "realtime": self.realtime,
            "outputs": dict(self.stats.shown),
        }
        return told | {"corrections_ms": 1e3 * told.pop("corrections") / rate}

    def _pulse_frames(self) -> int:
        return self._worker.width * self.chain.rate // self.stats.rate // self.chain.hop

    def _keep(self, device: Any) -> Any:
        self._open.append(device)
        return device

    def _work(self) -> None:
        try:
            self._worker.run()
        except BaseException as error:  # raised again by `check`
            self._error = error


def _measured(chain: Chain, samples: int) -> float:
    """Seconds that a pulse takes at the 95th percentile, on a signal that is then forgotten."""
    chain.reset()
    noise = 0.01 * np.random.default_rng(0).standard_normal((chain.wiring.channels, samples)).astype(np.float32)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        chain.push(noise)
        times.append(time.perf_counter() - start)
    chain.reset()
    return float(np.percentile(times[5:], 95))


def _abandon_portaudio() -> None:
    """A device that hangs would hang the end of the program too: let the system clean up after it."""
    import atexit

    import sounddevice

    atexit.unregister(sounddevice._exit_handler)
