"""Graphs that cannot stream are refused: by the right code, at the right node, and never converted to something wrong.

One row a graph; the node at fault is called `bad`. All run in ONNX Runtime on a full signal, which a test checks: none
is refused for being broken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from nets import from_text
from oracle import Full

import pulse


@dataclass(frozen=True)
class Refused:
    """`code`: one code, or several where more than one tells the truth."""

    what: str
    code: str
    text: str
    opset: int = 17
    length: int = 12  # of the signal on which the source runs
    node: str = "bad"  # or the value at fault


CASES = (
    # ---- operations over the whole signal
    Refused("mean over time", "reduce-over-stream",
            "(float[1,4,S] x) => (float y) { [bad] m = ReduceMean<axes=[2], keepdims=1>(x) y = Sub(x, m) }"),
    Refused("maximum over time", "reduce-over-stream",
            "(float[1,4,S] x) => (float y) { [bad] m = ReduceMax(x, v2) y = Div(x, m) }", 18),
    Refused("norm over time", "reduce-over-stream",
            "(float[1,4,S] x) => (float y) { [bad] m = ReduceL2<axes=[2]>(x) y = Div(x, m) }"),
    Refused("reduction over all axes", "reduce-over-stream",
            "(float[1,4,S] x) => (float y) { [bad] m = ReduceSum(x) y = Div(x, m) }"),
    Refused("LpNormalization over time", "reduce-over-stream",
            "(float[1,4,S] x) => (float y) { [bad] y = LpNormalization<axis=2, p=2>(x) }"),
    Refused("utterance normalisation", "reduce-over-stream",
            "(float[1,4,S] x, float[4] w1, float[4] w2) => (float y) { [bad] y = InstanceNormalization(x, w1, w2) "
            "}"),
    Refused("group normalisation", "reduce-over-stream",
            "(float[1,4,S] x, float[4] w1, float[4] w2) => (float y) { [bad] y = "
            "GroupNormalization<num_groups=2>(x, w1, w2) }", 21),
    Refused("layer normalisation that takes time in", "reduce-over-stream",
            "(float[1,S,4] x) => (float y) <float w1 = {2.0}> { [bad] y = LayerNormalization<axis=1>(x, w1) }"),
    Refused("mean and variance over time", "reduce-over-stream",
            "(float[1,4,S] x) => (float y) { [bad] y = MeanVarianceNormalization<axes=[0,2]>(x) }"),
    Refused("global average pooling gates the channels", "reduce-over-stream",
            "(float[1,4,S] x) => (float y) { [bad] m = GlobalAveragePool(x) y = Mul(x, m) }"),
    Refused("global max pooling in two dimensions", "reduce-over-stream",
            "(float[1,2,S,4] x) => (float y) { [bad] m = GlobalMaxPool(x) y = Mul(x, m) }"),
    Refused("softmax over time", "softmax-over-stream",
            "(float[1,4,S] x) => (float y) { [bad] y = Softmax<axis=2>(x) }"),
    Refused("softmax of an old opset, from time on", "softmax-over-stream",
            "(float[1,S,4] x) => (float y) { [bad] y = Softmax<axis=1>(x) }", 11),
    Refused("log-softmax over time", "softmax-over-stream",
            "(float[1,S,4] x) => (float y) { [bad] y = LogSoftmax<axis=1>(x) }"),
    Refused("hardmax over time", "softmax-over-stream sort-over-stream",
            "(float[1,S,4] x) => (float y) { [bad] y = Hardmax<axis=1>(x) }"),
    Refused("attentive pooling", "softmax-over-stream",
            "(float[1,S,4] x, float[4,1] w) => (float y) { s = MatMul(x, w) [bad] a = Softmax<axis=1>(s) p = "
            "Mul(a, x) y = Add(p, x) }"),
    Refused("attention", "attention-unbounded two-streaming-axes",
            "(float[1,S,4] x) => (float y) { k = Transpose<perm=[0,2,1]>(x) [bad] s = MatMul(x, k) a = "
            "Softmax<axis=-1>(s) y = MatMul(a, x) }"),
    Refused("attention over heads", "attention-unbounded two-streaming-axes",
            "(float[1,S,4] x, float[4,4] w1, float[4,4] w2) => (float y) <int64[4] h = {0, 0, 2, 2}, int64[3] o = "
            "{0, 0, 4}> { q = MatMul(x, w1) k = MatMul(x, w2) q4 = Reshape(q, h) k4 = Reshape(k, h) qt = "
            "Transpose<perm=[0,2,1,3]>(q4) kt = Transpose<perm=[0,2,3,1]>(k4) vt = Transpose<perm=[0,2,1,3]>(k4) "
            "[bad] s = MatMul(qt, kt) a = Softmax<axis=-1>(s) c = MatMul(a, vt) ct = Transpose<perm=[0,2,1,3]>(c) "
            "y = Reshape(ct, o) }"),
    Refused("Gram matrix of frames", "two-streaming-axes attention-unbounded",
            "(float[1,4,S] x) => (float y) { t = Transpose<perm=[0,2,1]>(x) [bad] y = MatMul(t, x) }"),
    Refused("Gram matrix by Einsum", "two-streaming-axes attention-unbounded",
            '(float[1,S,4] x) => (float y) { [bad] y = Einsum<equation="nsf,ntf->nst">(x, x) }'),
    Refused("covariance of channels", "reduce-over-stream",
            "(float[1,4,S] x) => (float y) { t = Transpose<perm=[0,2,1]>(x) [bad] g = MatMul(x, t) y = MatMul(g, "
            "x) }"),
    Refused("covariance by Einsum", "reduce-over-stream",
            '(float[1,4,S] x) => (float y) { [bad] g = Einsum<equation="ncs,nds->ncd">(x, x) y = MatMul(g, x) }'),
    Refused("pairwise differences", "two-streaming-axes attention-unbounded",
            "(float[S,4] x) => (float y) { p = Unsqueeze(x, v0) q = Unsqueeze(x, v1) [bad] y = Sub(p, q) }"),
    Refused("recurrence backwards", "recurrence-reversed",
            "(float[S,1,4] x, float[1,9,4] w1, float[1,9,3] w2) => (float y) { [bad] y = GRU<hidden_size=3, "
            'direction="reverse">(x, w1, w2) }'),
    Refused("recurrence both ways", "recurrence-reversed",
            "(float[S,1,4] x, float[2,12,4] w1, float[2,12,3] w2) => (float y) { [bad] y = LSTM<hidden_size=3, "
            'direction="bidirectional">(x, w1, w2) }'),
    Refused("simple recurrence both ways", "recurrence-reversed",
            "(float[S,1,4] x, float[2,3,4] w1, float[2,3,3] w2) => (float y) { [bad] y = RNN<hidden_size=3, "
            'direction="bidirectional">(x, w1, w2) }'),
    Refused("running sum from the end", "recurrence-reversed reversed-axis",
            "(float[1,4,S] x) => (float y) { [bad] y = CumSum<reverse=1>(x, s2) }"),
    Refused("time reversed by Slice", "reversed-axis",
            "(float[1,4,S] x, float[1,4,4] w) => (float y) { [bad] y = Slice(x, vm1, vstart, v2, vm1) }"),
    Refused("time reversed by Gather", "reversed-axis gather-over-stream from-the-end",
            "(float[1,4,S] x) => (float y) { d = Shape(x) n = Gather<axis=0>(d, s2) last = Sub(n, s1) i = "
            "Range(last, sm1, sm1) [bad] y = Gather<axis=2>(x, i) }", node="i"),
    Refused("scan from the end", "recurrence-reversed reversed-axis loop-over-stream",
            "(float[S,4] x, float[4] w) => (float[B,C] y) { [bad] h, y = Scan<num_scan_inputs=1, "
            "scan_input_directions=[1], body = step (float[4] a, float[4] b) => (float[4] c, float[4] d) { c = "
            "Add(a, b) d = Tanh(c) }>(w, x) }"),
    Refused("loop over frames", "loop-over-stream",
            "(float[S,4] x, float[4] w) => (float[B,C] y) <bool yes = {1}> { d = Shape(x) n = Gather<axis=0>(d, "
            "s0) [bad] h, y = Loop<body = step (int64 i, bool c, float[4] a) => (bool c2, float[4] b, float[4] o) "
            "{ c2 = Identity(c) f = Gather<axis=0>(x, i) b = Add(a, f) o = Tanh(b) }>(n, yes, w) }"),
    Refused("largest frames", "sort-over-stream",
            "(float[1,4,S] x) => (float y) { [bad] v, i = TopK<axis=2>(x, v3) y = Identity(v) }"),
    Refused("best frame", "sort-over-stream",
            "(float[1,4,S] x) => (int64 y) { [bad] y = ArgMax<axis=2>(x) }"),
    Refused("frames by computed indices", "gather-over-stream",
            "(float[1,4,S] x) => (float y) { r = ReduceMax<axes=[1], keepdims=0>(x) b = Sigmoid(r) i = "
            "Cast<to=7>(b) j = ReduceMax<axes=[0], keepdims=0>(i) [bad] y = Gather<axis=2>(x, j) }"),
    Refused("elements by computed indices", "gather-over-stream",
            "(float[1,4,S] x) => (float y) { b = Sigmoid(x) i = Cast<to=7>(b) [bad] y = GatherElements<axis=2>(x, "
            "i) }"),
    Refused("frames written by index", "scatter-over-stream no-rule",
            "(float[1,4,S] x) => (float y) { b = Sigmoid(x) i = Cast<to=7>(b) [bad] y = "
            "ScatterElements<axis=2>(x, i, x) }"),
    Refused("dynamic quantisation", "dynamic-quantisation",
            "(float[1,4,S] x) => (float y) { [bad] q, s, z = DynamicQuantizeLinear(x) y = DequantizeLinear(q, s, "
            "z) }"),
    Refused("noise added", "stateful-random",
            "(float[1,4,S] x) => (float y) { [bad] n = RandomNormalLike(x) y = Add(x, n) }"),
    Refused("random decisions", "stateful-random",
            "(float[1,4,S] x) => (float y) { p = Sigmoid(x) [bad] b = Bernoulli(p) y = Mul(x, b) }"),
    Refused("frames that are not zero", "data-dependent-shape",
            "(float[S] x) => (int64 y) { [bad] y = NonZero(x) }"),
    Refused("frames selected by a mask", "data-dependent-shape",
            "(float[S] x) => (float y) <float z = {0.1}> { m = Greater(x, z) [bad] y = Compress<axis=0>(x, m) }"),
    Refused("distinct values", "data-dependent-shape sort-over-stream",
            "(float[S] x) => (float y) { [bad] y = Unique(x) }"),
    # ---- lengths, starts and ends
    Refused("divided by the length", "depends-on-length",
            "(float[1,4,S] x) => (float y) { d = Shape(x) n = Gather<axis=0>(d, s2) f = Cast<to=1>(n) [bad] y = "
            "Div(x, f) }"),
    Refused("positions normalised by the length", "depends-on-length",
            "(float[1,4,S] x) => (float y) { d = Shape(x) n = Gather<axis=0>(d, s2) r = Range(s0, n, s1) rf = "
            "Cast<to=1>(r) nf = Cast<to=1>(n) [bad] p = Div(rf, nf) y = Add(x, p) }"),
    Refused("positions counted from the end", "depends-on-length from-the-end",
            "(float[1,4,S] x) => (float y) { d = Shape(x) n = Gather<axis=0>(d, s2) r = Range(s0, n, s1) [bad] p "
            "= Sub(n, r) pf = Cast<to=1>(p) y = Add(x, pf) }"),
    Refused("last frames", "from-the-end",
            "(float[1,4,S] x) => (float y) { [bad] y = Slice(x, vm3, vend, v2) }"),
    Refused("the last frame", "from-the-end",
            "(float[1,4,S] x) => (float y) { [bad] y = Gather<axis=2>(x, sm1) }"),
    Refused("the last frame joined on all", "from-the-end",
            "(float[1,4,S] x) => (float y) { [bad] l = Gather<axis=2>(x, vm1) y = Sub(x, l) }"),
    Refused("middle of the signal", "from-the-end depends-on-length",
            "(float[1,4,S] x) => (float y) { d = Shape(x) n = Gather<axis=0>(d, s2) h = Div(n, s2) h1 = "
            "Unsqueeze(h, v0) [bad] y = Slice(x, h1, vend, v2) }"),
    Refused("first half of the signal", "from-the-end depends-on-length first-frames-only",
            "(float[1,4,S] x) => (float y) { d = Shape(x) n = Gather<axis=0>(d, s2) h = Div(n, s2) h1 = "
            "Unsqueeze(h, v0) [bad] y = Slice(x, v0, h1, v2) }"),
    Refused("first frames", "first-frames-only",
            "(float[1,4,S] x) => (float y) { [bad] y = Slice(x, v0, v5, v2) }"),
    Refused("the first frame taken off all", "first-frames-only",
            "(float[1,4,S] x) => (float y) { [bad] f = Gather<axis=2>(x, v0) y = Sub(x, f) }"),
    Refused("classifier on the last state", "last-state",
            "(float[S,1,4] x, float[1,9,4] w1, float[1,9,3] w2, float[3,2] w3) => (float y) { [bad] s, h = "
            "GRU<hidden_size=3>(x, w1, w2) y = MatMul(h, w3) }", node="h"),
    Refused("last state joined on the stream", "last-state",
            "(float[S,1,4] x, float[1,12,4] w1, float[1,12,3] w2) => (float y) { [bad] s, h, c = "
            "LSTM<hidden_size=3>(x, w1, w2) q = Squeeze(s, v1) y = Add(q, c) }", node="c"),
    Refused("lengths of sequences", "sequence-lens",
            "(float[S,1,4] x, int32[1] n, float[1,9,4] w1, float[1,9,3] w2) => (float y) { [bad] y = "
            "GRU<hidden_size=3>(x, w1, w2, , n) }"),
    Refused("SAME padding with a stride", "same-padding-stride",
            '(float[1,4,S] x, float[2,4,3] w) => (float y) { [bad] y = Conv<auto_pad="SAME_UPPER", '
            "strides=[2]>(x, w) }"),
    Refused("SAME pooling with a stride", "same-padding-stride",
            '(float[1,4,S] x) => (float y) { [bad] y = MaxPool<auto_pad="SAME_LOWER", strides=[3], '
            "kernel_shape=[4]>(x) }"),
    Refused("wrapped around", "pad-mode",
            '(float[1,4,S] x) => (float y) <int64[6] p = {0,0,2,0,0,0}> { [bad] y = Pad<mode="wrap">(x, p) }', 19),
    Refused("resized to a fixed length", "resize-mode depends-on-length no-streaming-output",
            '(float[1,4,S] x) => (float y) <int64[3] n = {1, 4, 20}> { [bad] y = Resize<mode="nearest">(x, , , n) '
            "}"),
    Refused("resized with corners aligned", "resize-mode",
            '(float[1,4,S] x) => (float y) <float[3] f = {1, 1, 2}> { [bad] y = Resize<mode="linear", '
            'coordinate_transformation_mode="align_corners">(x, , f) }'),
    # ---- where the axis goes
    Refused("channels and time merged, channels outside", "merges-outer-axis",
            "(float[1,4,S] x) => (float y) <int64[2] d = {1, -1}> { [bad] y = Reshape(x, d) }"),
    Refused("flattened with channels outside", "merges-outer-axis",
            "(float[1,4,S] x) => (float y) { [bad] y = Flatten<axis=1>(x) }"),
    Refused("four quarters of the signal", "splits-stream-axis",
            "(float[1,S,4] x) => (float y) <int64[4] d = {1, 4, -1, 4}> { [bad] y = Reshape(x, d) }"),
    Refused("the signal repeated", "concat-over-stream no-rule depends-on-length",
            "(float[1,4,S] x) => (float y) <int64[3] r = {1, 1, 2}> { [bad] y = Tile(x, r) }"),
    Refused("two signals end to end", "concat-over-stream",
            "(float[1,4,S] x) => (float y) { n = Neg(x) [bad] y = Concat<axis=2>(x, n) }"),
    Refused("spectrum of the whole signal", "reduce-over-stream no-rule",
            "(float[1,S,1] x) => (float y) { [bad] y = DFT<axis=1>(x) }"),
    Refused("determinant of frames", "two-streaming-axes attention-unbounded",
            "(float[1,4,S] x) => (float y) { t = Transpose<perm=[0,2,1]>(x) [bad] g = MatMul(t, x) y = Det(g) }"),
    Refused("time as the channels of a convolution", "no-rule reduce-over-stream",
            "(float[1,S,8] x, float[2,12,3] w) => (float y) { [bad] y = Conv(x, w) }"),
    Refused("time summed by a product", "no-rule reduce-over-stream",
            "(float[1,4,S] x, float[12,3] w) => (float y) { [bad] y = MatMul(x, w) }"),
    Refused("nothing but a pooled output", "no-streaming-output reduce-over-stream",
            "(float[1,4,S] x, float[4,2] w) => (float y) { [bad] m = ReduceMean<axes=[2], keepdims=0>(x) y = "
            "MatMul(m, w) }"),
    # ---- streams that do not fit each other
    Refused("shifted against itself", "length-mismatch",
            "(float[1,4,S] x) => (float y) { c = Slice(x, v2, vend, v2) [bad] y = Add(c, x) }", length=3),
    Refused("two rates", "rate-mismatch length-mismatch",
            "(float[1,4,S] x) => (float y) { c = AveragePool<kernel_shape=[2], strides=[2]>(x) [bad] y = Add(c, "
            "x) }", length=2),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what.replace(" ", "-"))
@pytest.mark.filterwarnings("ignore::pulse.PulseWarning")
def test_refused_by_code_and_node(case: Refused) -> None:
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(from_text(case.text, case.opset), pulse="dynamic")
    error = caught.value
    assert error.code in case.code.split(), str(error)
    assert case.node in error.node, str(error)
    assert all((error.required, error.found, error.remedy)), str(error)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what.replace(" ", "-"))
def test_source_itself_runs(case: Refused) -> None:
    full = Full(from_text(case.text, case.opset))
    rng = np.random.default_rng(0)
    feeds = {}
    for entry in full.session.get_inputs():
        shape = [case.length if isinstance(d, str) else d for d in entry.shape]
        feeds[entry.name] = np.full(shape, case.length) if entry.name == "n" else rng.standard_normal(shape)
    result = full({n: a.astype(full.dtypes[n]) for n, a in feeds.items()})
    assert result["y"].size


def test_rows_are_many_and_distinct() -> None:
    assert len({case.text for case in CASES}) == len(CASES) >= 25
    assert len({code for case in CASES for code in case.code.split()}) >= 20
