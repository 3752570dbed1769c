"""Worker and player against a simulated card: hold-ups, loss, drift, slow models, changes of width."""

from __future__ import annotations

import threading
import time
from math import ceil

import numpy as np
import pytest
from live_card import RATE, Card
from live_nets import gate, identity, speechlike, through

from pulse.live import clocks, worker
from pulse.live.auto import AutoWidth
from pulse.live.chain import Chain, Made
from pulse.live.player import Player
from pulse.live.playout import Playout
from pulse.live.quiet import calm_thread, hasten_threads, unhurried_python
from pulse.live.stats import Stats
from pulse.live.worker import Worker
from pulse.model import PulsedModel, open_model

NUMBERS = np.arange(10 * RATE, dtype=np.float32)
MARGIN = 400  # more than the program's: the machine that tests is busy


class Run:
    """A stream of `seconds` over a card, with `hold_up(frame)` called before each pulse is computed."""

    def __init__(
        self,
        card: Card,
        seconds: float,
        model: PulsedModel | None = None,
        auto: AutoWidth | None = None,
        width: int = 160,
    ) -> None:
        self.card = card
        self.chain = Chain(model or open_model(identity([1, 1, "S"])), rate=RATE, in_rate=RATE, out_rate=RATE)
        self.stats = Stats(RATE)
        self.playout = Playout(1, RATE, MARGIN + ceil(self.chain.delay() * RATE))
        self.player = Player(card, self.playout, self.stats, time.monotonic)
        self.given: list[np.ndarray] = []
        self.made: list[np.ndarray] = []
        self.worker = Worker(
            card, self.chain, self.playout, self.player, self.stats, width, MARGIN, auto, int(seconds * RATE),
            self.given.append, self.made.append,
        )  # fmt: skip
        self.hold_up = lambda frame: None
        self._push = self.chain.push
        self.chain.push = self._held_up  # type: ignore[method-assign]

    def _held_up(self, sound: np.ndarray) -> Made:
        self.hold_up(self.stats.frames)
        return self._push(sound)

    def go(self) -> Run:
        thread = threading.Thread(target=self.worker.run)
        with unhurried_python():
            self.player.start()
            thread.start()
            hasten_threads()  # where allowed: else other work on the machine shows
            thread.join(30)
            time.sleep(0.1)
            self.player.end.set()
            self.player.join(5)
            calm_thread()
        assert not thread.is_alive()
        assert self.player.error is None
        return self

    @property
    def input(self) -> np.ndarray:
        return np.concatenate(self.given, axis=1)

    @property
    def output(self) -> np.ndarray:
        return np.concatenate(self.made, axis=1)

    def delay(self, second: float) -> float:
        """Seconds from microphone to loudspeaker of the first frame played after `second` of playing."""
        heard = np.concatenate(self.card.heard)
        start = int(second * RATE)
        place = next(i for i in range(start, len(heard)) if np.all(np.diff(heard[i : i + 50]) == 1))  # no fade there
        return self.card.delay_of(int(heard[place]))


def once(at: float, seconds: float) -> object:
    """Holds up for so long at the first pulse after `at`."""
    done = threading.Event()

    def hold_up(frame: int) -> None:
        if frame >= at * RATE and not done.is_set():
            done.set()
            time.sleep(seconds)

    return hold_up


def test_a_held_up_worker_is_concealed_counted_and_costs_no_latency() -> None:
    run = Run(Card(NUMBERS), 1.6)
    run.hold_up = once(0.7, 0.2)
    run.go()
    assert run.stats.missed >= 15
    concealed = run.playout.concealed / RATE
    assert 0.15 <= concealed < 0.5
    assert run.playout.late <= run.playout.concealed
    assert run.delay(1.4) == pytest.approx(run.delay(0.5), abs=0.020)
    np.testing.assert_array_equal(run.output, run.input)  # what is recorded lacks nothing
    np.testing.assert_array_equal(np.diff(run.output[0]), 1)


def test_lost_sound_is_replaced_by_silence_of_its_length() -> None:
    card = Card(NUMBERS, ring=3200)
    run = Run(card, 1.7)
    run.hold_up = once(0.6, 0.5)
    run.go()
    assert run.stats.overflows >= 1
    assert card.lost > 0.1 * RATE
    assert run.stats.lost == pytest.approx(card.lost, abs=0.04 * RATE)
    assert np.count_nonzero(run.output[0] == 0) == pytest.approx(run.stats.lost, abs=2)
    assert run.delay(1.5) == pytest.approx(run.delay(0.5), abs=0.025)


def test_loss_that_the_device_does_not_report_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks.LossWatch, "WINDOW", 0.4)
    card = Card(NUMBERS, ring=3200, honest=False)
    run = Run(card, 2.0)
    run.hold_up = once(0.4, 0.5)
    run.go()
    assert run.stats.overflows == 0
    assert run.stats.lost == pytest.approx(card.lost, abs=0.04 * RATE)
    assert run.delay(1.8) == pytest.approx(run.delay(0.3), abs=0.025)


@pytest.mark.parametrize("pace", [0.98, 1.02])
def test_clocks_that_drift_are_brought_together(pace: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred times faster than real clocks drift, so that it shows in seconds."""
    monkeypatch.setattr(clocks, "DRIFT", 0.03)
    monkeypatch.setattr(clocks.Steadiness, "WINDOW", 0.4)
    run = Run(Card(NUMBERS, pace=pace), 2.4).go()
    assert run.stats.corrections > 0
    delays = [run.delay(second) for second in np.arange(1.8, 2.3, 0.1)]
    assert abs(np.median(delays) - run.delay(0.4)) < 0.020, "it would be 33 ms without"
    assert run.stats.lost == 0


def test_a_model_too_slow_drops_sound_but_stays_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BACKLOG", 0.3)
    run = Run(Card(NUMBERS), 1.5)
    run.hold_up = lambda frame: time.sleep(0.05)  # 50 ms for 10 ms of sound
    started = time.monotonic()
    run.go()
    assert time.monotonic() - started < 3.5, "it would be 7.5 s without"
    assert run.stats.overflows >= 2
    assert run.stats.lost > 0.6 * RATE
    assert run.output.shape == run.input.shape
    np.testing.assert_array_equal(np.diff(run.input[0]), 1)


def test_auto_widens_under_a_hog_recovers_and_loses_nothing() -> None:
    sound = speechlike(5.0)
    auto = AutoWidth([160, 320, 640, 1280], 160, quiet=0.7)
    run = Run(Card(sound[0]), 3.5, gate(), auto)
    widths = []

    def hog(frame: int) -> None:
        widths.append(run.worker.width)
        end = time.perf_counter() + (0.025 if 0.4 * RATE < frame < 1.8 * RATE else 0.0)
        while time.perf_counter() < end:
            pass

    run.hold_up = hog
    run.go()
    assert widths[0] == 160
    assert max(widths) >= 640
    assert widths[-1] < max(widths)
    assert run.stats.missed >= 2
    assert run.stats.lost == 0
    offline = through(Chain(gate(), rate=RATE), run.input, (4096,))
    np.testing.assert_allclose(run.output, offline, atol=1e-6)


def test_dry_sound_has_the_time_of_the_processed_one() -> None:
    """The gate turns hiss down; dry, the hiss comes back, where it would have been."""
    sound = speechlike(3.0)[0]
    card = Card(sound)
    run = Run(card, 2.0, gate())
    run.hold_up = lambda frame: setattr(run.worker, "dry", frame > RATE)
    run.go()
    heard = np.concatenate(card.heard)
    delays = []
    for start in range(int(1.3 * RATE), int(1.9 * RATE), 400):  # some may hold a concealed gap on a busy machine
        stretch = heard[start : start + 400]
        places = np.nonzero(sound[:-400] == stretch[0])[0]
        delays += [start - i for i in places if np.array_equal(sound[i : i + 400], stretch)]
    assert len(delays) >= 5
    assert max(delays) - min(delays) < 0.03 * RATE
    lead = MARGIN + 2 * 160 + 80  # margin, the gate's delay, one pulse, half a period
    from_card = np.median(delays) + card.heard_from * RATE
    assert lead - 160 <= from_card <= lead + 480
    assert run.output.shape == run.input.shape


def test_a_detector_misses_deadlines_too() -> None:
    run = Run(Card(NUMBERS), 1.0)
    run.worker.playout = run.worker.player = None
    run.hold_up = once(0.5, 0.2)
    run.go()
    assert 5 <= run.stats.missed < 60
