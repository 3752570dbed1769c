"""Denoisers on published speech and noise at 5 dB, streamed in pulses of 10 ms: worth having."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from live_nets import RATE, gate, through
from scipy.io import wavfile
from scipy.ndimage import maximum_filter1d
from scipy.signal import resample_poly

from pulse.live.chain import Chain
from pulse.live.spec import parse
from pulse.model import open_model

SECONDS = 30


def read(path: Path) -> np.ndarray:
    if not path.exists():
        pytest.skip(f"shared audio is absent: {path.name}")
    rate, wave = wavfile.read(path)
    return np.asarray(resample_poly(wave / 32768, RATE, rate))


def si_sdr(estimate: np.ndarray, clean: np.ndarray) -> float:
    """Scale-invariant signal-to-distortion ratio in dB (Le Roux et al., 2019)."""
    target = clean * (estimate @ clean) / (clean @ clean)
    return float(10 * np.log10(np.sum(target**2) / np.sum((estimate - target) ** 2)))


def power(wave: np.ndarray) -> np.ndarray:
    """Mean power of each 10 ms."""
    return np.asarray(np.mean(wave[: len(wave) // 160 * 160].reshape(-1, 160) ** 2, axis=1) + 1e-12)


@pytest.fixture(scope="module")
def speech(shared: Path) -> np.ndarray:
    return read(shared / "audio" / "silero_test.wav")[: SECONDS * RATE]


@pytest.fixture(scope="module")
def noisy(shared: Path, speech: np.ndarray) -> np.ndarray:
    noise = np.resize(read(shared / "audio" / "dfn_noise_freesound_573577.wav"), len(speech))
    return speech + noise * np.sqrt(np.mean(speech**2) / np.mean(noise**2) / 10**0.5)


@pytest.mark.parametrize(("model", "ratio", "quieter"), [("gate", 12, 9), ("nsnet2", 17, 20)])
def test_worth_having(
    model: str, ratio: float, quieter: float, shared: Path, speech: np.ndarray, noisy: np.ndarray
) -> None:
    if model == "gate":
        chain = Chain(gate(), rate=RATE)
    else:
        pulsed = open_model(shared / "models" / "nsnet2" / "nsnet2_20ms.onnx")
        chain = Chain(pulsed, parse("stft:320,160,sqrt-hann,log10power"), rate=RATE)
    made = through(chain, noisy.astype(np.float32)[None], (160,))[0]
    assert si_sdr(noisy, speech) == pytest.approx(5, abs=0.1)
    assert si_sdr(made, speech) > ratio
    pause = maximum_filter1d(10 * np.log10(power(speech)), 11) < -45
    assert pause.mean() > 0.1
    assert 10 * np.log10(power(noisy)[pause].sum() / power(made)[pause].sum()) > quieter
