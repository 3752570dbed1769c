"""A denoiser made by hand: a filter bank, a recurrence that follows the noise floor, a gain for every bin.

Speech at 16 kHz, full scale 1. Frames of 20 ms every 10 ms, root-Hann windows on both sides, so that a gain of 1 gives
the input back. A sample leaves once the second frame over it is complete: 20 ms of latency in all.

The noise floor of a band is a GRU cell with hand-made weights: the band's log power `x` is its candidate, and it
keeps its state `n` with the gate `sigmoid(slope·(x − n) + hold)`. Far above the floor, in speech, it hardly moves;
near the floor it averages over 200 ms; below, it follows at once. It begins at 0, full scale, and so takes the first
frame for noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from models._build import Net

SIZE, HOP = 320, 160
BINS = SIZE // 2 + 1
BIN_HZ = 16000 / SIZE
EPS = 1e-8
"""Power of the least floor, -80 dB: after digital silence a real floor is found again in seconds."""
KAPPA = 0.005
"""Log power is scaled by this before the GRU, to stay where tanh is the identity (within 0.06 nat)."""
SLOPE, HOLD = 0.5, 3.0
STEEPNESS, THRESHOLD, MOST = 1.2, 2.25, 6.0
"""The gain is a sigmoid of the smoothed log SNR in nats, cut at MOST: a Wiener gain with over-subtraction."""
FLOOR = 0.1
RUMBLE = (0.0, 0.1, 0.7)
"""Gain of the bins at 0, 50 and 100 Hz, where rooms and hands are louder than voices."""


def basis() -> np.ndarray:
    """`[2·BINS, 1, SIZE]`: windowed cosines, then sines, scaled so that its own transpose is the inverse."""
    time, bins = np.arange(SIZE), np.arange(BINS)[:, None]
    window = np.sqrt(0.5 - 0.5 * np.cos(2 * np.pi * time / SIZE))
    scale = np.where((bins == 0) | (bins == BINS - 1), 1.0, 2.0**0.5) / SIZE**0.5
    angle = 2 * np.pi * bins * time / SIZE
    sines = -np.sin(angle)
    sines[[0, -1]] = 0
    return (np.concatenate([np.cos(angle) * scale, sines * scale]) * window)[:, None]


def band_weights() -> np.ndarray:
    """`[BANDS, BINS]`: triangles that interpolate from bands to bins, one bin apart at first, then 0.42 ERB."""
    centres = [0.0]
    while centres[-1] < BINS - 1:
        centres.append(centres[-1] + max(1.0, 0.42 * (24.7 + 0.108 * centres[-1] * BIN_HZ) / BIN_HZ))
    centres[-1] = BINS - 1
    return np.stack([np.interp(np.arange(BINS), centres, row) for row in np.eye(len(centres))])


def noise_floor(net: Net, power: str) -> str:
    """Log noise power `[1,F,BINS]` from power of the same shape."""
    triangles = band_weights()
    bands = len(triangles)
    averaging = net.weight("to_bands", (triangles / triangles.sum(1, keepdims=True)).T)
    level = net.op("MatMul", power, averaging)
    level = net.op("Mul", log(net, level), net.const(KAPPA, "float32"))
    with net.scope("gru"):
        eye, none = np.eye(bands), np.zeros((bands, bands))
        w = net.weight("weight_ih", np.concatenate([eye * SLOPE / KAPPA, none, eye])[None])
        r = net.weight("weight_hh", np.concatenate([-eye * SLOPE / KAPPA, none, none])[None])
        b = net.weight("bias", np.concatenate([np.full(bands, HOLD), np.zeros(5 * bands)])[None])
        floor = net.gru_with(level, w, r, b, bands)
    return net.op("MatMul", floor, net.weight("to_bins", triangles / KAPPA))


def log(net: Net, power: str) -> str:
    return net.op("Log", net.op("Add", power, net.const(EPS, "float32")))


def gain(net: Net, snr: str) -> str:
    """Gain `[1,F,BINS]` from log SNR: smoothed over three frames and three bins, sigmoid, floor."""
    kernel = np.outer([0.25, 0.5, 1.0], [0.3, 1.0, 0.3])
    w = net.weight("smooth.weight", kernel[None, None] * STEEPNESS / kernel.sum())
    b = net.weight("smooth.bias", np.array([-STEEPNESS * THRESHOLD]))
    y = net.pad(net.axes_op("Unsqueeze", snr, [1]), [0, 0, 2, 0], rank=4)
    y = net.op("Conv", y, w, b, kernel_shape=[3, 3], pads=[0, 1, 0, 1], strides=[1, 1], dilations=[1, 1], group=1)
    y = net.op("Sigmoid", net.axes_op("Squeeze", y, [1]))
    rumble = np.ones(BINS)
    rumble[: len(RUMBLE)] = RUMBLE
    y = net.op("Mul", y, net.weight("range", rumble * (1 - FLOOR)))
    return net.op("Add", y, net.weight("least", rumble * FLOOR))


def build() -> onnx.ModelProto:
    """`wave [1,1,S]` to `denoised [1,1,S']`, sample t against sample t; S' is S rounded up to a multiple of 160."""
    net = Net("spectral_gate", opset=17)
    wave = net.input("wave", [1, 1, "S"])
    bank = net.weight("basis", basis())
    sliding: dict[str, Any] = {"kernel_shape": [SIZE], "strides": [HOP], "dilations": [1], "group": 1}
    with net.scope("analysis"):
        padded = net.pad(wave, [HOP, SIZE - 1], rank=3)
        spec = net.op("Conv", padded, bank, pads=[0, 0], **sliding)
        net.op("Split", spec, net.const([BINS, BINS]), axis=1, out=["re", "im"])
        power = net.op("Add", net.op("Mul", "re", "re"), net.op("Mul", "im", "im"))
        power = net.op("Transpose", power, perm=[0, 2, 1])
    with net.scope("noise"):
        floor = noise_floor(net, power)
    with net.scope("gain"):
        snr = net.op("Sub", log(net, power), floor)
        snr = net.op("Clip", snr, net.const(0, "float32"), net.const(MOST, "float32"))
        g = net.op("Transpose", gain(net, snr), perm=[0, 2, 1])
    with net.scope("synthesis"):
        y = net.op("Mul", spec, net.op("Concat", g, g, axis=1))
        net.op("ConvTranspose", y, bank, pads=[HOP, HOP], out="denoised", **sliding)
    net.output("denoised", [1, 1, "ConvTransposedenoised_dim_2"])
    return net.model()
