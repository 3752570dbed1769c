"""Front ends, resampling and the model as one stream: exact, whatever the cuts, and with the delay it reports."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from live_nets import GATE, RATE, gate, identity, level_meter, speechlike, through
from scipy import signal

from pulse import PulseError
from pulse.live.chain import Chain, features_of
from pulse.live.logmel import MelBands
from pulse.live.resample import Resampler
from pulse.live.spec import LogMel, Stft, parse
from pulse.live.stft import Analysis
from pulse.live.wav import WavWriter
from pulse.live.wiring import wire
from pulse.model import open_model

CUTS = (1, 700, 33, 160, 512, 7)


@pytest.mark.parametrize(
    ("shape", "front", "delay"),
    [
        ([1, 1, "S"], "none", 0),
        ([1, "S"], None, 0),
        ([1, "S", 2], None, 0),
        ([1, 257, "S", 2], "stft:512,256,sqrt-hann", 256),
        ([2, "S", 257], "stft:512,256,vorbis,ri", 256),
        ([1, "S", 514], "stft:512,128,hann,ri", 384),
        ([1, 1, "S", 161], "stft:320,160,sqrt-hann,mag,magnitude", 160),
        ([1, "S", 202], "stft:200,80,hamming", 120),
        ([2, 101, "S"], "stft:200,200,rect", 0),
    ],
)
def test_what_goes_in_comes_out_after_the_reported_delay(shape: list[int | str], front: str, delay: int) -> None:
    chain = Chain(open_model(identity(shape)), parse(front), rate=RATE)
    sound = speechlike(0.4, chain.wiring.channels)
    assert chain.delay() == Fraction(delay, RATE)
    for cuts in (CUTS, (chain.grain,), (sound.shape[1],)):
        made = through(chain, sound, cuts)
        assert made.shape == sound.shape
        np.testing.assert_allclose(made, sound, atol=2e-7, err_msg=str(cuts))


@pytest.mark.parametrize("in_rate", [8000, 16000, 22050, 44100, 48000])
def test_output_is_never_later_than_the_delay(in_rate: int) -> None:
    chain = Chain(gate(), rate=RATE, in_rate=in_rate)
    step = chain.grain * in_rate // RATE
    given = made = 0
    for _ in range(40):
        given += step
        made += chain.push(np.zeros((1, step), np.float32)).sound.shape[1]
        assert Fraction(given - made, in_rate) <= chain.delay()
    assert Fraction(given - made, in_rate) > chain.delay() - Fraction(chain.grain, RATE)


@pytest.mark.parametrize("in_rate", [16000, 44100])
def test_cuts_do_not_matter(in_rate: int) -> None:
    sound, chain = speechlike(0.5), Chain(gate(), rate=RATE, in_rate=in_rate)
    np.testing.assert_allclose(through(chain, sound, CUTS), through(chain, sound, (sound.shape[1],)), atol=2e-7)


@pytest.mark.parametrize(("low", "high"), [(16000, 48000), (16000, 44100), (8000, 16000), (44100, 48000)])
def test_resampler_keeps_time_and_band(low: int, high: int) -> None:
    for source, target in ((low, high), (high, low)):
        resampler, count = Resampler(source, target, 1), source // 2
        tones = [(300, 0.5), (0.44 * low, 0.25)]

        def sounding(rate: int, count: int, tones: list[tuple[float, float]] = tones) -> np.ndarray:
            time = np.arange(count) / rate
            return sum(level * np.sin(2 * np.pi * hertz * time) for hertz, level in tones).astype(np.float32)

        made = np.concatenate([resampler.push(sounding(source, count)[None]), resampler.flush()], axis=1)[0]
        assert len(made) == -(-count * target // source)
        middle = slice(target // 50, -target // 50)
        np.testing.assert_allclose(made[middle], sounding(target, len(made))[middle], atol=1e-4)


def test_resampler_stops_what_would_fold() -> None:
    tone = np.sin(2 * np.pi * 8050 * np.arange(48000) / 48000).astype(np.float32)[None]
    folded = Resampler(48000, 16000, 1).push(tone)[0, 500:]
    assert 20 * np.log10(np.sqrt(np.mean(folded**2)) / np.sqrt(0.5)) < -85


def test_analysis_is_the_usual_stft() -> None:
    sound = speechlike(0.3)[0]
    ours = Analysis(Stft(512, 128, "hann")).push(sound)
    _, _, theirs = signal.stft(sound, window="hann", nperseg=512, noverlap=384, boundary=None, padded=False)
    # The first frames lie before the signal; scipy scales by the sum of the window.
    np.testing.assert_allclose(ours[3 : 3 + theirs.shape[1]].T, theirs * 256, atol=1e-4)


def test_features() -> None:
    spectra = np.array([[3 + 4j, 0]], np.complex64)
    assert features_of(spectra, "ri").tolist() == [[[3, 4], [0, 0]]]
    assert features_of(spectra, "mag").tolist() == [[5, 0]]
    np.testing.assert_allclose(features_of(spectra, "power"), [[25, 1e-12]])
    np.testing.assert_allclose(features_of(spectra, "log10power"), [[np.log10(25), -12]], rtol=1e-6)


def test_a_mask_of_ones_changes_nothing() -> None:
    """NSNet2's kind: log power in, a gain per bin out; here the gain is the feature, so a power of 1 passes."""
    chain = Chain(open_model(identity([1, "S", 161])), parse("stft:320,160,sqrt-hann,power,mask"), rate=RATE)
    click = np.zeros((1, 3200), np.float32)
    click[0, 1600 + 80] = 1 / np.sqrt(0.5 - 0.5 * np.cos(np.pi / 2))  # spectrum of size 1 at all bins, where it peaks
    made = through(chain, click, (160,))
    assert np.argmax(np.abs(made)) == 1680
    assert made[0, 1680] == pytest.approx(click[0, 1680] * 1.0, rel=0.35)


def test_mel_bands_follow_a_tone() -> None:
    spec = parse("logmel:400,160,40,fmin=60,fmax=7600,log=ln")
    assert isinstance(spec, LogMel)
    bands = MelBands(spec, RATE)
    time = np.arange(RATE) / RATE
    peaks = []
    for hertz in (200, 500, 1000, 2000, 4000):
        bands.reset()
        frames = bands.push(np.sin(2 * np.pi * hertz * time).astype(np.float32))
        assert frames.shape == (98, 40)
        peaks.append(int(frames[50].argmax()))
    mels = 2595 * np.log10(1 + np.array([200, 500, 1000, 2000, 4000]) / 700)
    low, high = (2595 * np.log10(1 + f / 700) for f in (60, 7600))
    expected = (mels - low) / (high - low) * 41 - 1
    assert np.abs(np.array(peaks) - expected).max() <= 1


def test_mel_bands_do_not_depend_on_cuts() -> None:
    spec = parse("logmel:400,160,80,fft=512,window=povey,preemphasis=0.97,dc=1,mel=kaldi,fmin=20,scale=32768")
    assert isinstance(spec, LogMel)
    sound, bands = speechlike(0.3)[0], MelBands(spec, RATE)
    whole = bands.push(sound)
    bands.reset()
    pieces = [bands.push(sound[i : i + 77]) for i in range(0, len(sound), 77)]
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-5)


@pytest.mark.parametrize(
    "text",
    ["stft", "stft:512", "stft:512,600,hann", "stft:512,256,square", "stft:512,256,hann,abs", "stft:0,0,hann",
     "stft:512,512,hann", "stft:512,256,hann,ri,noise", "logmel:400,160", "logmel:400,160,40,colour=red",
     "logmel:400,160,40,log=2", "logmel:400,160,forty", "mfcc:400,160,13", "none:1", "logmel:400,160,40,fft=256"],
)  # fmt: skip
def test_front_ends_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(PulseError) as caught:
        parse(text)
    assert caught.value.code == "frontend-invalid"


@pytest.mark.parametrize(
    ("model", "front"),
    [("kws_tcn", None), ("kws_tcn", "logmel:400,160,80"), ("enc", None), ("spectral_gate", "stft:320,160,hann")],
)
def test_front_ends_that_do_not_fit_the_model_are_refused(model: str, front: str | None) -> None:
    pulsed = open_model(GATE.with_name(f"{model}.onnx"))
    with pytest.raises(PulseError) as caught:
        wire(pulsed.inputs, pulsed.outputs, parse(front))
    assert caught.value.code == "frontend-mismatch"


def test_a_detector_gives_no_sound() -> None:
    chain = Chain(open_model(level_meter()), rate=RATE)
    assert chain.wiring.sound is None
    made = chain.push(np.ones((1, 480), np.float32))
    np.testing.assert_allclose(made.shown["level"], np.full((1, 1, 3), 1 / (1 + np.exp(-1))), rtol=1e-6)


def test_rates_without_a_common_measure_are_refused() -> None:
    with pytest.raises(PulseError) as caught:
        Resampler(47999, 16000, 1)
    assert caught.value.code == "rate-unsupported"


def test_wav_writer_counts_what_it_cuts_off(tmp_path: object) -> None:
    import io

    file = io.BytesIO()
    writer = WavWriter(file, RATE, 1, "pcm16")
    writer.write(np.array([[0.5, 1.0, -1.0, 1.2, -1.5]], np.float32))
    writer.finish()
    assert writer.clipped == 2
    assert np.frombuffer(file.getvalue()[44:], "<i2").tolist() == [16384, 32767, -32768, 32767, -32768]
