"""A small causal encoder after DeepFilterNet's: two feature inputs, convolutions over time and frequency, a GRU."""

from __future__ import annotations

import onnx

from models._build import Net

CHANNELS = 16
ERB_BANDS, SPEC_BINS = 16, 32
EMB = 64


def separable(net: Net, name: str, x: str, kernel_time: int, out: str = "") -> str:
    """Depthwise over time and frequency, halving the bands, then 1x1 and ReLU; causal by a Pad before."""
    with net.scope(name):
        if kernel_time > 1:
            x = net.pad(x, [0, 0, kernel_time - 1, 0], rank=4)
        with net.scope("0"):
            kernel, pads = [kernel_time, 3], [0, 1, 0, 1]
            y = net.conv(x, CHANNELS, CHANNELS, kernel, 1.2, group=CHANNELS, strides=[1, 2], pads=pads)
        with net.scope("1"):
            y = net.conv(y, CHANNELS, CHANNELS, [1, 1], 1.4)
        return net.op("Relu", y, out=out or ())


def entry(net: Net, name: str, x: str, channels: int, out: str) -> str:
    """The first 3x3 convolution, one group per input channel, then 1x1 where there are several."""
    with net.scope(name):
        x = net.pad(x, [0, 0, 2, 0], rank=4)
        with net.scope("1"):
            y = net.conv(x, channels, CHANNELS, [3, 3], 1.4, group=channels, pads=[0, 1, 0, 1])
        if channels > 1:
            with net.scope("2"):
                y = net.conv(y, CHANNELS, CHANNELS, [1, 1], 1.4)
        return net.op("Relu", y, out=out)


def flat(net: Net, x: str) -> str:
    """`[B,C,T,F]` to `[B,T,F·C]`."""
    return net.flatten_from(net.op("Transpose", x, perm=[0, 2, 3, 1]), 2)


def build() -> onnx.ModelProto:
    """`feat_erb [1,1,S,16]`, `feat_spec [1,2,S,32]` to `e0`, `e1`, `c0` (signal on axis 2), `emb`, `lsnr` (axis 1)."""
    net = Net("enc", seed=2)
    erb = net.input("feat_erb", [1, 1, "S", ERB_BANDS])
    spec = net.input("feat_spec", [1, 2, "S", SPEC_BINS])

    e0 = entry(net, "erb_conv0", erb, 1, "e0")
    e1 = separable(net, "erb_conv1", e0, 1, "e1")
    e2 = separable(net, "erb_conv2", e1, 3)
    c0 = entry(net, "df_conv0", spec, 2, "c0")
    c1 = separable(net, "df_conv1", c0, 1)

    with net.scope("df_fc_emb"):
        df = net.op("Relu", net.grouped_linear(flat(net, c1), CHANNELS * SPEC_BINS // 2, EMB, 8))
    with net.scope("combine"):
        both = net.op("Concat", flat(net, e2), df, axis=-1)
    with net.scope("emb_gru/linear_in"):
        y = net.op("Relu", net.grouped_linear(both, CHANNELS * ERB_BANDS // 4 + EMB, EMB, 8))
    with net.scope("emb_gru/gru"):
        net.gru(y, EMB, EMB, out="emb")
    with net.scope("lsnr_fc"):
        y = net.op("Sigmoid", net.linear("emb", EMB, 1, 2.0))
    y = net.op("Mul", y, net.const(50, "float32"))
    net.op("Add", y, net.const(-15, "float32"), out="lsnr")

    # Exporters name the dims they cannot follow after the node, and give up on others.
    net.output("e0", ["Relue0_dim_0", CHANNELS, "S", "Relue0_dim_3"])
    net.output("e1", ["Relue0_dim_0", CHANNELS, "S", "Relue1_dim_3"])
    net.output("emb", ["Transposeemb_dim_0", "S", EMB])
    net.output("c0", ["Reluc0_dim_0", CHANNELS, "S", SPEC_BINS])
    net.output("lsnr", ["Transposeemb_dim_0", "S", 1])
    return net.model()
