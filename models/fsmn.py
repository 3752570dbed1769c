"""A stack of FSMN memory blocks: look-back filters chomped after padding on both sides, one block that looks ahead."""

from __future__ import annotations

import onnx

from models._build import Net

FEATURES, HIDDEN, MEMORY = 40, 96, 64
LOOKBACK, LOOKAHEAD = 10, 2
BLOCKS, AHEAD = 4, 2


def depthwise(net: Net, x: str, kernel: int) -> str:
    """Padded on both sides, as the training code writes it; the caller slices off what it does not want."""
    return net.conv(x, MEMORY, MEMORY, [kernel], 0.7, group=MEMORY, pads=[kernel - 1, kernel - 1])


def memory(net: Net, x: str, lookahead: int) -> str:
    """`[B,T,C]` to the same: x plus its filtered past and, if asked for, `lookahead` frames of its future."""
    x = net.op("Transpose", x, perm=[0, 2, 1])
    axis, step = net.const([2]), net.const([1])
    with net.scope("lookback_filter"):
        past = depthwise(net, x, LOOKBACK)
    past = net.op("Slice", past, net.const([0]), net.const([1 - LOOKBACK]), axis, step)
    y = net.op("Add", x, past)
    if lookahead:
        with net.scope("lookahead_filter"):
            future = depthwise(net, x, lookahead)
        future = net.op("Slice", future, net.const([lookahead]), net.const([2**63 - 1]), axis, step)
        y = net.op("Add", y, net.pad(future, [0, 1], rank=3))
    return net.op("Transpose", y, perm=[0, 2, 1])


def build() -> onnx.ModelProto:
    """`feat [batch,time,40]` to `probs [batch,time,1]`: probability of speech, two frames of look-ahead."""
    net = Net("fsmn", seed=5, opset=12)
    y = net.input("feat", ["batch", "time", FEATURES])
    with net.scope("fc1"):
        y = net.op("Relu", net.linear(y, FEATURES, HIDDEN, 1.2))
    with net.scope("fc2"):
        y = net.op("Relu", net.linear(y, HIDDEN, MEMORY, 1.2))
    with net.scope("fsmn1"):
        y = memory(net, y, 0)
    for index in range(1, BLOCKS):
        with net.scope(f"fsmns.{index}"):
            skip = y
            with net.scope("fc1"):
                y = net.op("Relu", net.linear(y, MEMORY, HIDDEN, 0.8))
            with net.scope("fc2"):
                y = net.linear(y, HIDDEN, MEMORY, 0.7)
            with net.scope("fsmn"):
                y = memory(net, y, LOOKAHEAD if index == AHEAD else 0)
            y = net.op("Add", y, skip)
    with net.scope("dnn"):
        y = net.op("Relu", net.linear(y, MEMORY, HIDDEN, 0.7))
    with net.scope("out"):
        net.op("Sigmoid", net.linear(y, HIDDEN, 1, 1.5), out="probs")
    net.output("probs", ["batch", "time", 1])
    return net.model()
