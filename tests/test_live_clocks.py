"""The parts that keep time, one by one and without devices: time line, clocks, choice of the width, panel."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict, deque
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy.io import wavfile

from pulse import PulseError
from pulse.live.auto import AutoWidth, ladder, narrowest
from pulse.live.clocks import InputClock, LossWatch, OutputClock, Steadiness
from pulse.live.panel import meters, plain_line, rendered, summary_lines
from pulse.live.playout import Playout
from pulse.live.recorder import Recorder
from pulse.live.stats import Stats, decibels

RATE = 1000


def numbered(start: int, count: int) -> np.ndarray:
    """Frames whose value is their number, from 1."""
    return np.arange(start + 1, start + count + 1, dtype=np.float32)[None]


def drained(playout: Playout, count: int, step: int = 5) -> np.ndarray:
    """What a loudspeaker that never waits would play."""
    parts = []
    while sum(part.shape[1] for part in parts) < count:
        frames = playout.take(step)
        parts.append(playout.conceal(step) if frames is None else frames)
    return np.concatenate(parts, axis=1)[0]


def test_time_line_gives_silence_for_the_lead_and_then_every_frame() -> None:
    playout = Playout(1, RATE, 7)
    assert playout.put(numbered(0, 20)) == 0
    np.testing.assert_array_equal(drained(playout, 27), [*[0] * 7, *range(1, 21)])
    assert playout.concealed == playout.late == 0


def test_late_frames_are_concealed_and_left_out_and_the_latency_stays() -> None:
    playout = Playout(1, RATE, 0)
    playout.put(numbered(0, 40))
    drained(playout, 40)
    gap = drained(playout, 30)
    assert playout.concealed == 30
    assert gap[0] == pytest.approx(40, rel=0.1)  # goes on from where the sound was
    assert np.all(np.diff(gap) <= 0)
    assert gap[-1] == 0
    assert playout.put(numbered(40, 50)) == 30
    after = drained(playout, 20)
    np.testing.assert_array_equal(after[5:], numbered(75, 15)[0])  # frame 70 has moment 70 again, after a fade
    assert np.all(after[:5] <= numbered(70, 5)[0])
    assert playout.late == 30


def test_making_it_later_opens_a_gap_and_loses_nothing() -> None:
    playout = Playout(1, RATE, 0)
    playout.put(numbered(0, 10))
    playout.shift(6)
    playout.put(numbered(10, 20))
    played = drained(playout, 36)
    np.testing.assert_array_equal(played[:10], numbered(0, 10)[0])
    assert playout.concealed == 6
    assert playout.late == 0
    np.testing.assert_array_equal(played[21:36], numbered(15, 15)[0])


def test_making_it_earlier_leaves_frames_out_under_a_fade() -> None:
    playout = Playout(1, RATE, 0)
    playout.put(numbered(0, 10))
    np.testing.assert_array_equal(drained(playout, 10), numbered(0, 10)[0])
    playout.shift(-8)
    playout.put(numbered(10, 20))
    played = drained(playout, 12)
    np.testing.assert_array_equal(played[5:], numbered(23, 7)[0])
    assert np.all(np.diff(played) > 0), "no jump back"
    assert playout.skipped == 8


def test_sound_that_waits_is_brought_forward_at_once() -> None:
    playout = Playout(1, RATE, 0)
    playout.put(numbered(0, 10))
    playout.shift(4)
    playout.put(numbered(10, 40))
    assert playout.due == 54
    playout.shift(-30)
    assert playout.due == 24
    played = drained(playout, 24)
    assert playout.skipped == 26
    assert playout.concealed == 0
    np.testing.assert_array_equal(played[5:], numbered(31, 19)[0])
    playout.put(numbered(50, 10))
    np.testing.assert_array_equal(drained(playout, 10), numbered(50, 10)[0])


def test_a_gap_before_what_waits_is_closed_first() -> None:
    playout = Playout(1, RATE, 20)
    playout.put(numbered(0, 30))
    drained(playout, 5)
    playout.shift(-10)
    assert playout.due == 40
    np.testing.assert_array_equal(drained(playout, 35), [*[0] * 5, *range(1, 31)])
    assert playout.skipped == 0


def test_more_than_waits_is_taken_from_what_comes() -> None:
    playout = Playout(1, RATE, 0)
    playout.put(numbered(0, 15))
    playout.shift(-40)
    assert playout.due == -25
    assert playout.put(numbered(15, 100)) == 0
    played = drained(playout, 75)
    assert playout.skipped == 40
    np.testing.assert_array_equal(played[20:], numbered(60, 55)[0])


def test_shifts_that_cancel_do_nothing() -> None:
    playout = Playout(1, RATE, 0)
    playout.shift(-5)
    playout.shift(5)
    playout.put(numbered(0, 10))
    np.testing.assert_array_equal(drained(playout, 10), numbered(0, 10)[0])


def test_what_the_device_left_out_is_gone() -> None:
    playout = Playout(1, RATE, 0)
    playout.put(numbered(0, 30))
    drained(playout, 10)
    playout.pass_over(12)
    assert playout.late == 12
    np.testing.assert_array_equal(drained(playout, 8)[5:], numbered(27, 3)[0])


def test_input_clock_knows_how_much_waits() -> None:
    clock = InputClock(RATE)
    assert [clock.note(0.1 * i, 100) for i in range(1, 6)] == [0] * 5
    assert clock.note(0.85, 100) == pytest.approx(250, abs=2)  # held up for 250 ms
    assert clock.note(0.851, 100) == pytest.approx(151, abs=2)
    clock.lose(150)
    assert clock.note(0.952, 100) == pytest.approx(2, abs=2)


def watch(reads: list[tuple[float, int, bool, bool]]) -> list[int]:
    loss = LossWatch(5)
    return [loss.note(at, behind, 10, waited, overflowed) for at, behind, waited, overflowed in reads]


def test_a_reader_that_never_catches_up_has_lost_sound() -> None:
    found = watch([(0.01 * i, 120, True, False) for i in range(103)])
    assert found.count(120) == 1
    assert sum(found) == 120
    assert sum(watch([(0.01 * i, 120, True, i == 0) for i in range(12)])) == 120


def test_a_reader_that_is_woken_late_has_lost_nothing() -> None:
    late = [(0.01 * i, 40 if i % 2 else 2, bool(i % 2), False) for i in range(300)]
    assert sum(watch(late)) == 0
    catching_up = [(0.01 * i, 300 - i, False, False) for i in range(250)]
    assert sum(watch(catching_up)) == 0


def test_output_clock_follows_the_device_within_a_period() -> None:
    clock = OutputClock(RATE, 5)
    clock.written(1.0, 20)
    assert clock.left(1.0) == pytest.approx(0.020)
    clock.seen(1.004, 20)  # the device has not noticed yet
    assert clock.left(1.004) == pytest.approx(0.016)
    clock.seen(1.004, 30)  # it holds more than the clock says
    assert clock.left(1.004) == pytest.approx(0.025)
    clock.seen(1.004, 3)
    assert clock.left(1.004) == pytest.approx(0.003)


def steady(errors: list[int], behind: bool = False) -> list[int]:
    keeper = Steadiness(RATE, 10)
    return [keeper.note(0.01 * i, error, behind) for i, error in enumerate(errors)]


def test_drift_is_taken_back_and_jitter_is_not() -> None:
    assert sum(steady([0] * 500)) == 0
    assert sum(steady([0 if i % 10 else -40 for i in range(500)])) == 0
    assert steady([9] * 60).count(-9) == 1
    assert sum(steady([-9] * 60)) == 9
    assert sum(steady([-9] * 60, behind=True)) == 0
    jump = steady([0] * 50 + [80] * 40)
    assert sum(jump) == -80
    assert 80 <= next(i for i, shift in enumerate(jump) if shift) <= 82, "within 0.3 s"
    assert sum(steady([0] * 50 + [80] * 20 + [0] * 200)) == 0, "it went away by itself"


def test_widths_to_choose_from() -> None:
    assert ladder(160, 16000) == [160, 320, 640, 1280, 2560]
    assert ladder(1, 16000)[0] == 40
    assert ladder(48000, 16000) == [48000]
    assert all(width % 24 == 0 for width in ladder(24, 16000))
    cost = {160: 0.009, 320: 0.0095, 640: 0.01}
    assert narrowest([160, 320, 640], 16000, cost.__getitem__) == 320
    assert narrowest([160, 320, 640], 16000, lambda width: 1.0) == 640


def widths_over(auto: AutoWidth, late_at: set[int], pulses: int, step: float = 0.01) -> list[int]:
    return [auto.note(step * i, i in late_at) for i in range(pulses)]


def test_one_miss_changes_nothing_two_make_it_wider() -> None:
    assert set(widths_over(AutoWidth([1, 2, 4], 1), {50}, 500)) == {1}
    assert set(widths_over(AutoWidth([1, 2, 4], 1), set(range(50, 60)), 500)) == {1}, "one hold-up is one miss"
    assert set(widths_over(AutoWidth([1, 2, 4], 1), {50, 400}, 500)) == {1}, "far apart"
    assert widths_over(AutoWidth([1, 2, 4], 1), {50, 120}, 500)[120:] == [2] * 380
    assert widths_over(AutoWidth([1, 2, 4], 1), set(range(50, 200)), 200)[-1] == 4, "lasting lateness"


def test_quiet_makes_it_narrower_and_failing_makes_it_patient() -> None:
    auto = AutoWidth([1, 2], 2, quiet=1.0)
    seen = widths_over(auto, {150, 160, 400}, 500)
    assert [width for width, _ in itertools.groupby(seen)] == [2, 1, 2, 1]
    assert auto.quiet == 2.0


def test_recording_grows_and_is_valid_before_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recorder, "REFRESH", 0.0)
    recorder = Recorder(tmp_path / "a.wav", RATE, 1)
    recorder.put(numbered(0, 100))
    recorder.put(numbered(100, 100))
    while recorder.frames < 200:
        pass
    recorder.put(numbered(200, 1))
    while recorder.frames < 201:
        pass
    assert len(wavfile.read(tmp_path / "a.wav.part")[1]) >= 200
    recorder.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["a.wav"]
    np.testing.assert_array_equal(wavfile.read(tmp_path / "a.wav")[1], numbered(0, 201)[0])


def test_recording_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(PulseError) as caught:
        Recorder(tmp_path / "absent" / "a.wav", RATE, 1)
    assert caught.value.code == "output-unwritable"


def snapshot(**more: object) -> dict[str, object]:
    stats = Stats(RATE)
    stats.pulse(10, 0.002, False)
    stats.levels(np.full((1, 10), 0.1, np.float32), np.full((1, 10), 0.01, np.float32))
    told = stats.as_dict() | {
        "pulse": {"frames": 10, "ms": 10.0},
        "latency_ms": {"device": 10.0, "buffering": 20.0, "model": 5.0, "compute": 2.0, "total": 37.0},
        "concealed_ms": 0.0,
        "hearing": "processed",
        "realtime": False,
        "outputs": {},
    }
    return json.loads(json.dumps(told | more))


def text_of(told: dict[str, object]) -> str:
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(rendered("model.onnx", told, defaultdict(lambda: deque(maxlen=48))))
    return console.export_text()


def test_panel_shows_the_numbers() -> None:
    text = text_of(snapshot(missed=3, outputs={"probs": [0.25, 0.75]}))
    assert "latency  37.0 ms = device 10.0 + buffering 20.0 + model 5.0 + compute 2.0" in text
    assert "-20.0 dB" in text
    assert "-40.0 dB" in text
    assert "missed   3 deadlines" in text
    assert "probs[1]" in text
    assert "d: dry or processed" in text
    assert "20.0% model" in text


def test_plain_line_holds_the_same() -> None:
    line = plain_line(snapshot(outputs={"vad": [0.5]}))
    assert "latency 37.0 ms" in line
    assert line.endswith("overflows 0; vad 0.5")
    assert "\n" not in line
    assert " out " not in plain_line(snapshot(hearing=None))


def test_many_values_are_summed_up() -> None:
    shown = dict(meters({"classes": [0.0] * 30 + [0.9]}))
    assert shown["classes max, at 30"] == 0.9
    assert len(summary_lines(snapshot())) == 5


def test_decibels() -> None:
    assert decibels(np.ones(8, np.float32)) == 0
    assert decibels(np.zeros(8, np.float32)) == -120
