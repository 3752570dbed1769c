"""A mask estimator with look-ahead: a convolution two frames ahead, a GRU, a 'same' convolution, a mask."""

from __future__ import annotations

import onnx

from models._build import Net

BANDS, CHANNELS, HIDDEN = 32, 48, 64


def time_first(net: Net, x: str) -> str:
    return net.op("Transpose", x, perm=[0, 2, 1])


def layer_norm(net: Net, x: str, size: int) -> str:
    scale = net.weight("weight", net.rng.uniform(0.7, 1.3, size))
    return net.op("LayerNormalization", x, scale, net.draw("bias", [size], 0.2), axis=-1, epsilon=1e-5)


def build() -> onnx.ModelProto:
    """`bands [batch,frames,32]` to `masked` of the same shape; three frames of look-ahead."""
    net = Net("lookahead", seed=6, opset=18)
    x = net.input("bands", ["batch", "frames", BANDS])
    with net.scope("conv_in"):
        y = net.pad(time_first(net, x), [0, 2], rank=3)
        y = net.op("Relu", net.conv(y, BANDS, CHANNELS, [3], 1.4))
    with net.scope("gru"):
        y = net.gru(time_first(net, y), CHANNELS, HIDDEN)
    with net.scope("conv_out"):
        y = time_first(net, net.conv(time_first(net, y), HIDDEN, CHANNELS, [3], 1.4, pads=[1, 1]))
    with net.scope("norm"):
        y = net.op("Relu", layer_norm(net, y, CHANNELS))
    with net.scope("mask"):
        mask = net.op("Sigmoid", net.linear(y, CHANNELS, BANDS, 2.0))
    net.op("Mul", x, mask, out="masked")
    net.output("masked", ["batch", "frames", BANDS])
    return net.model()
