"""What broke other converters, pinned: each is right here, with the least delay, or refused by a code."""

from __future__ import annotations

import warnings

import pytest
from nets import (
    Across,
    Act,
    Branch,
    ConcatTime,
    Conv,
    Conv2d,
    ConvT,
    Frames,
    Gather,
    Layout,
    MatMul,
    Net,
    Norm,
    Pad,
    Pool,
    Resize,
    Rnn,
    Scan,
    Slice,
    from_text,
)  # fmt: skip
from oracle import assert_streams

import pulse

RELU = Act("Relu", bias=False)
CAUSAL = {k: (k - 1, 0) for k in range(1, 9)}


def unet(levels: int, k: int = 3, lookahead: int = 0) -> Net:
    """`levels` strided levels, a skip connection across each, one convolution with look-ahead outside."""
    inside: tuple = (Conv(3, pads=(1, 1), out=3), RELU)
    for _ in range(levels):
        down, up = Conv(k, s=2, pads=(k - 2, 0) if k > 1 else (0, 0), out=4), ConvT(2, s=2, out=3)
        inside = (Branch(((down, RELU, *inside, up), ()), "Concat"), Conv(1, out=3))
    return Net((Conv(1 + lookahead, pads=(0, lookahead), out=4), *inside), multiple=2**levels)


# name, net, delay of `y` in its frames
RIGHT = {
    "look-ahead, then ConvTranspose of stride 4": (Net((Conv(2, pads=(0, 1)), ConvT(4, s=4))), 4),
    "look-ahead, then ConvTranspose with overlap": (Net((Conv(3, pads=(1, 1)), ConvT(4, s=2, crop=(1, 1)))), 3),
    "U-Net of one level": (unet(1), 2),
    "U-Net of two levels": (unet(2), 4),
    "U-Net of three levels": (unet(3), 8),
    "U-Net of two levels with look-ahead outside": (unet(2, lookahead=1), 8),
    "U-Net with wide kernels": (unet(2, k=5, lookahead=2), 8),
    "shift ahead by Pad": (Net((Pad(-2, 2), Conv(3, pads=CAUSAL[3]))), 2),
    "shift ahead by Slice": (Net((Slice(2), Conv(3, pads=CAUSAL[3]))), 2),
    "last frames dropped": (Net((Slice(0, 3), Conv(3, pads=CAUSAL[3]))), 3),
    "GRU whose last state is an output": (Net((Rnn("GRU", last=True), MatMul())), 0),
    "LSTM whose last states are outputs": (Net((Rnn("LSTM", last=True), MatMul())), 0),
    "unfold of bands by Gather": (
        Net((Gather(2, 4, "NSF"), Conv2d((3, 1), pads=(2, 0), channels=4), RELU), "NSF", (1, -1, 6)), 0,
    ),
    "unfold of time by Gather": (Net((Pad(2), Frames(3), MatMul())), 0),
    "unfold of time by Gather, hop 2": (Net((Frames(4, 2), MatMul()), chains=True), 1),
    "FSMN with left padding": (
        Net((Branch(((Pad(19), Conv(20, groups=0)), ()), "Add"), MatMul(), RELU)), 0,
    ),
    "FSMN with look-ahead": (
        Net((Branch(((Pad(4), Conv(5, groups=0)), (Pad(-1, 2), Conv(2, groups=0)), ()), "Add"), MatMul())), 2,
    ),
    "two biased 'same' convolutions": (Net((Conv(3, pads=(1, 1)), Conv(3, pads=(1, 1)))), 2),
    "four biased 'same' convolutions, dilated": (Net(tuple(Conv(3, d=d, pads=(d, d)) for d in (1, 2, 4, 1))), 8),
    "nearest x2": (Net((Resize(2), Conv(3, pads=CAUSAL[3]))), 0),
    "nearest x2 after look-ahead": (Net((Conv(2, pads=(0, 1)), Resize(2))), 2),
    "reflect pad": (Net((Pad(2, 0, "reflect"), Conv(3))), 2),
    "edge pad": (Net((Pad(2, 0, "edge"), Conv(3))), 0),
    "edge pad, what works on frames, a convolution": (Net((Pad(2, 0, "edge"), RELU, MatMul(), Conv(3))), 0),
    "edge pad at both ends, a layout, a strided convolution": (
        Net((Pad(3, 1, "edge"), Act("Tanh"), Conv2d((4, 1), (2, 1))), "NSF", (1, -1, 6)), 0,
    ),
    "reflect pad at both ends, what works on frames, a pooling": (
        Net((Pad(2, 2, "reflect"), MatMul(), Act("Tanh"), Pool("Average", 3))), 2,
    ),
    "padded AveragePool": (Net((Pool("Average", 3, pads=(1, 1)),)), 1),
    "padded AveragePool that counts its padding": (Net((Pool("Average", 3, pads=(2, 2), count_pad=True),)), 0),
    "AveragePool with ceil_mode": (Net((Pool("Average", 3, 2, pads=(1, 1), ceil=True), Conv(2, pads=(1, 0)))), 0),
    "constant frames before the signal": (Net((ConcatTime(2), Conv(3))), 0),
    "constant frames behind the signal": (Net((ConcatTime(0, 2), Conv(3))), 2),
    "Pad of another value than zero": (Net((Pad(4, 0, "constant", 1.5), Conv(3), RELU, Conv(3))), 0),
    "Pad ahead of several valid convolutions": (Net((Pad(6), Conv(3), RELU, Conv(3, d=2), Rnn("GRU"))), 0),
    "Pad, GRU, then a valid convolution": (Net((Pad(2), Rnn("GRU", h0="const"), Conv(3))), 0),
    "Pad, Scan, then a valid convolution": (Net((Pad(2), Scan(0.5), Conv(3))), 0),
    "GRU both ways over bands": (Net((Across("GRU", 3, "bidirectional", "zeros", 2), MatMul()), "NSF", (1, -1, 8)), 0),
    "LSTM backwards over bands": (Net((Across("LSTM", 3, "reverse", "const"), MatMul()), "NSF", (1, -1, 8)), 0),
    "stack of 2-D convolutions": (
        Net(
            (
                Conv2d((3, 3), (1, 2), pads=(2, 0), fpads=(1, 1), out=4), RELU,
                Conv2d((2, 3), (1, 2), pads=(1, 0), fpads=(1, 1), groups=2, out=4), Norm("batch"), Layout("NCSF", 4),
                Conv2d((3, 1), d=(2, 1), pads=(2, 2), groups=0, channels=4), Layout("NSF"), Rnn("GRU"),
            ),
            "NCSF", (1, 1, -1, 8), chains=True,
        ), 2,
    ),
    "GTCRN in small": (
        Net(
            (
                Layout("NSF"), Gather(2, 4, "NSF"), Conv2d((1, 3), fpads=(1, 1), channels=4, out=4), RELU,
                Conv2d((3, 1), d=(2, 1), pads=(4, 0), groups=0, channels=4),
                Across("GRU", 2, "bidirectional", "zeros", 4),
                Branch(((Rnn("GRU", 4), MatMul(8)), ()), "Add"), MatMul(6), Act("Tanh"),
            ),
            "NSF", (1, -1, 6), chains=True,
        ), 0,
    ),
    "causal strided encoder, transposed decoder": (
        Net((Conv(4, s=2, pads=(2, 0)), RELU, Rnn("GRU"), ConvT(4, s=2, crop=(0, 2)), RELU), multiple=2), 0,
    ),
    "ConvTranspose with kernel smaller than its stride": (Net((ConvT(2, s=3, extra=1), Conv(2, pads=(1, 0)))), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT, ids=lambda name: name.replace(" ", "-"))
@pytest.mark.filterwarnings("ignore::pulse.PulseWarning")
def test_right_with_least_delay(name: str) -> None:
    net, delay = RIGHT[name]
    plan = net.plan()
    lengths = [n for n in (0, 1, 2, 3, 7, 16, 29, 40) if n % net.multiple == 0 or n == 1]
    assert_streams(
        net.build(), widths=(1, 3, 4, "dynamic"), lengths=lengths, min_length=plan.min_length, multiple=net.multiple,
        delays={"y": delay}, full=net.build(twin=True),
    )  # fmt: skip


def test_right_in_onnx_reference() -> None:
    net, _ = RIGHT["two biased 'same' convolutions"]
    assert_streams(net.build(), widths=(4,), lengths=(1, 2, 9), engines=("reference",))


def test_last_states_are_dropped_with_a_warning() -> None:
    net, _ = RIGHT["LSTM whose last states are outputs"]
    with pytest.warns(pulse.PulseWarning) as caught:
        model = pulse.convert(net.build(), pulse=4)
    lasts = net.plan().lasts
    assert len(lasts) == 2
    assert [o.name for o in model.outputs] == ["y"]
    told = " ".join(str(w.message) for w in caught)
    assert all(name in told and name in " ".join(map(str, model.warnings)) for name in lasts)


def test_outputs_may_leave_out_what_cannot_stream() -> None:
    text = "(float[1,4,S] x, float[4,4,3] w) => (float y, float z) { y = Conv(x, w) [bad] z = Softmax<axis=2>(y) }"
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(from_text(text), pulse=4)
    assert caught.value.code == "softmax-over-stream"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = pulse.convert(from_text(text), pulse=4, outputs=["y"])
    assert [(o.name, o.delay) for o in model.outputs] == [("y", 2)]


def test_pulse_four_takes_three_frames() -> None:
    net, _ = RIGHT["two biased 'same' convolutions"]
    assert_streams(net.build(), widths=(4,), lengths=(3,), ways=1)


def test_messages_name_the_node_first_and_are_short() -> None:
    text = "(float[1,4,S] x) => (float y) { z = Tanh(x) [pool] m = GlobalAveragePool(z) y = Sub(z, m) }"
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(from_text(text), pulse=4)
    message = str(caught.value)
    assert message.splitlines()[0].startswith("reduce-over-stream at `pool")
    assert "to do:" in message
    assert len(message.splitlines()) <= 5
