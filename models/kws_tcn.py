"""A keyword spotter: eight residual blocks of dilated depthwise-separable convolutions, padded on the left."""

from __future__ import annotations

import onnx

from models._build import Net

FEATURES, CHANNELS, CLASSES = 40, 64, 10
KERNEL = 5
DILATIONS = (1, 2, 4, 8) * 2


def batch_norm(net: Net, x: str) -> str:
    """BatchNormalization left unfused, with statistics as training leaves them: no mean at 0, no variance at 1."""
    with net.scope("norm"):
        scale = net.weight("weight", net.rng.uniform(0.8, 1.2, CHANNELS))
        bias = net.draw("bias", [CHANNELS], 0.2)
        mean = net.draw("running_mean", [CHANNELS], 0.2)
        var = net.weight("running_var", net.rng.uniform(0.7, 1.5, CHANNELS))
    return net.op("BatchNormalization", x, scale, bias, mean, var, epsilon=1e-5, momentum=0.9)


def block(net: Net, x: str, dilation: int) -> str:
    """`[B,C,T]` to the same: depthwise along time, 1x1, residual."""
    y = net.pad(x, [(KERNEL - 1) * dilation, 0], rank=3)
    with net.scope("depthwise"):
        y = net.conv(y, CHANNELS, CHANNELS, [KERNEL], 1.2, group=CHANNELS, dilations=[dilation])
        y = net.op("Relu", batch_norm(net, y))
    with net.scope("pointwise"):
        y = batch_norm(net, net.conv(y, CHANNELS, CHANNELS, [1], 0.7))
    return net.op("Relu", net.op("Add", y, x))


def build() -> onnx.ModelProto:
    """`feats [1,S,40]` to `probs [1,S,10]`, class probabilities for every frame."""
    net = Net("kws_tcn", seed=3, opset=13)
    x = net.input("feats", [1, "S", FEATURES])
    with net.scope("preprocessing"):
        y = net.op("Transpose", x, perm=[0, 2, 1])
        y = net.op("Relu", net.conv(y, FEATURES, CHANNELS, [1], 1.2))
    for index, dilation in enumerate(DILATIONS):
        with net.scope(f"backbone/network.{index}"):
            y = block(net, y, dilation)
    with net.scope("classifier"):
        y = net.linear(net.op("Transpose", y, perm=[0, 2, 1]), CHANNELS, CLASSES, 1.5)
    net.op("Softmax", y, axis=2, out="probs")
    net.output("probs", [1, "S", CLASSES])
    return net.model()
