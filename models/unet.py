"""A waveform U-Net: three levels strided by 2 along time, skip connections, transposed convolutions back."""

from __future__ import annotations

from typing import Any

import onnx

from models._build import Net

WIDTHS = (1, 16, 32, 48)
KERNEL, STRIDE = 4, 2


def gelu(net: Net, x: str) -> str:
    """The exact form, in the primitives that exporters write below opset 20."""
    inner = net.op("Erf", net.op("Div", x, net.const(2**0.5, "float32")))
    y = net.op("Mul", x, net.op("Add", inner, net.const(1, "float32")))
    return net.op("Mul", y, net.const(0.5, "float32"))


def prelu(net: Net, x: str, channels: int) -> str:
    return net.op("PRelu", x, net.weight("slope", net.rng.uniform(0.1, 0.4, [channels, 1])))


def up(net: Net, x: str, cin: int, cout: int) -> str:
    """ConvTranspose doubling the length; every output sample is met by KERNEL/STRIDE taps."""
    w = net.draw("weight", [cin, cout, KERNEL], (STRIDE / (cin * KERNEL)) ** 0.5)
    attrs: dict[str, Any] = {"dilations": [1], "kernel_shape": [KERNEL], "pads": [1, 1], "strides": [STRIDE]}
    return net.op("ConvTranspose", x, w, net.draw("bias", [cout], 0.2), group=1, **attrs)


def build() -> onnx.ModelProto:
    """`wave [1,1,S]` to `out [1,1,S]`; S a multiple of 8."""
    net = Net("unet", seed=4)
    y = net.input("wave", [1, 1, "S"])
    skips: list[str] = []
    for level in range(3):
        with net.scope(f"encoder.{level}"):
            skips.append(y)
            cin, cout = WIDTHS[level], WIDTHS[level + 1]
            y = gelu(net, net.conv(y, cin, cout, [KERNEL], 1.4, pads=[1, 1], strides=[STRIDE]))
    with net.scope("bottleneck"):
        padded = net.pad(y, [2, 0], rank=3)
        y = net.op("Add", y, prelu(net, net.conv(padded, WIDTHS[3], WIDTHS[3], [3], 0.7), WIDTHS[3]))
    for level in (2, 1):
        with net.scope(f"decoder.{level}"):
            cin = WIDTHS[3] if level == 2 else 2 * WIDTHS[level + 1]
            y = prelu(net, up(net, y, cin, WIDTHS[level]), WIDTHS[level])
            y = net.op("Concat", y, skips[level], axis=1)
    with net.scope("decoder.0"):
        y = up(net, y, 2 * WIDTHS[1], WIDTHS[1])
        y = net.op("Concat", prelu(net, y, WIDTHS[1]), skips[0], axis=1)
    with net.scope("head"):
        y = net.conv(y, WIDTHS[1] + 1, 1, [1], 0.7)
    net.op("Tanh", y, out="out")
    net.output("out", [1, 1, "Tanhout_dim_2"])
    return net.model()
