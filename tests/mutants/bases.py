"""What is mutated: the example models, a small net for every rule file, and what these become as pulsed files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nets import from_text

MODELS = Path(__file__).parents[2] / "models"


@dataclass(frozen=True)
class Base:
    """`weight`: how often it is drawn. Large ones seldom: they are slow, and most of them is weights."""

    name: str
    data: bytes
    pulsed: bool
    weight: int = 8


# One or more for every file of pulse/streaming/rules.
TEXTS = {
    "axes": "(float[1,4,S] x, float[1,4,S] z) => (float y) <int64[2] k = {2, 0}, int64[2] l = {2, 2}> "
    "{ a = Transpose<perm=[0,2,1]>(x) b = Unsqueeze(a, v1) c = Squeeze(b, v1) d = Transpose<perm=[0,2,1]>(c) "
    "e = Gather<axis=1>(d, k) f, g = Split<axis=1>(z, l) h = Add(e, f) y = Mul(h, g) }",
    "concat": "(float[1,4,S] x, float[1,4,2] w1, float[1,4,1] w2) => (float y) { a = Concat<axis=2>(w1, x, w2) "
    "b = Slice(a, v3, vend, v2) y = Concat<axis=1>(x, b) }",
    "conv": "(float[1,4,S] x, float[4,2,3] w1, float[4] w2, float[4,4,2] w3) => (float y) "
    '{ a = Conv<pads=[1,1], group=2>(x, w1, w2) b = Relu(a) y = Conv<strides=[2], auto_pad="VALID">(b, w3) }',
    "conv in two dimensions": "(float[1,1,S,6] x, float[2,1,3,3] w1, float[2] w2) => (float y) "
    "{ y = Conv<pads=[2,1,0,1], dilations=[1,1], strides=[1,2]>(x, w1, w2) }",
    "conv_transpose": "(float[1,4,S] x, float[4,4,4] w1, float[4] w2, float[4,2,3] w3) => (float y) "
    "{ a = ConvTranspose<strides=[2], pads=[1,1]>(x, w1, w2) "
    "y = ConvTranspose<strides=[3], group=2, output_padding=[1]>(a, w3) }",
    "cumsum": "(float[1,2,S] x) => (float y) { a = CumSum<exclusive=1>(x, s2) y = CumSum(a, s1) }",
    "elementwise": "(float[1,4,S] x) => (float y) <float[4,1] g = {1.0, 2.0, 3.0, 4.0}, float l = {-1.0}, "
    "float u = {1.0}> { a = Mul(x, g) b = Clip(a, l, u) c = LeakyRelu<alpha=0.2>(b) d = Greater(c, l) "
    "e = Where(d, c, l) f = Cast<to=1>(d) y = Add(e, f) }",
    "framewise": "(float[1,S,6] x, float[6] w1, float[6] w2) => (float y) { a = LayerNormalization<axis=-1>(x, w1, w2) "
    "b = Softmax<axis=2>(a) c = ReduceMean<axes=[2], keepdims=1>(b) d, i = TopK<axis=2>(b, v2) e = Sub(d, c) "
    "j = ArgMax<axis=2, keepdims=1>(b) k = Cast<to=1>(j) y = Add(e, k) }",
    "quantised": "(float[1,4,S] x, float[4] w1) => (float y) <float s = {0.1}, uint8 z = {128}> "
    "{ q = QuantizeLinear(x, s, z) a = DequantizeLinear(q, s, z) y = Dropout(a) }",
    "matmul": "(float[S,4] x, float[4,6] w1, float[6] w2, float[6,3] w3) => (float y) { a = Gemm<beta=0.5>(x, w1, w2) "
    'b = MatMul(a, w3) y = Einsum<equation="ij,ik->ijk">(b, a) }',
    "pad": "(float[1,2,S] x, float[2,2,3] w1) => (float y) <int64[6] p = {0, 1, 2, 0, 0, 1}, float c = {0.5}> "
    "{ a = Pad(x, p, c) b = Slice(a, v0, v2, v1) y = Conv(b, w1) }",
    "pad_from_signal": "(float[1,2,S] x, float[2,2,3] w1) => (float y) <int64[6] p = {0, 0, 2, 0, 0, 1}> "
    '{ a = Pad<mode="reflect">(x, p) b = Conv(a, w1) y = Pad<mode="edge">(b, p) }',
    "pool": "(float[1,2,S] x) => (float y) { a = MaxPool<kernel_shape=[3], pads=[1,1], strides=[2], ceil_mode=1>(x) "
    "b = AveragePool<kernel_shape=[2], pads=[1,0]>(a) "
    "y = AveragePool<kernel_shape=[3], strides=[2], count_include_pad=1, pads=[1,1]>(b) }",
    "ramp": "(float[1,S,4] x, float[1,50,4] w1) => (float y) { d = Shape(x) n = Gather<axis=0>(d, v1) "
    "t = Slice(w1, v0, n, v1) a = Add(x, t) m = Gather<axis=0>(d, s1) i = Range(s0, m, s1) j = Mod(i, s5) "
    "k = Unsqueeze(j, v1) f = Cast<to=1>(k) y = Add(a, f) }",
    "recurrent": "(float[S,1,4] x, float[1,9,4] w1, float[1,9,3] w2, float[1,18] w3, float[1,12,3] w4, "
    "float[1,12,3] w5) => (float y) { a, h = GRU<hidden_size=3, linear_before_reset=1>(x, w1, w2, w3) "
    "b = Squeeze(a, v1) c = Slice(b, v1, vend, v0) y, i, j = LSTM<hidden_size=3>(c, w4, w5) }",
    "recurrent over bands": "(float[5,S,4] x, float[2,3,4] w1, float[2,3,3] w2) => (float y, float h) "
    '{ y, h = RNN<hidden_size=3, direction="bidirectional", activations=["Tanh", "Relu"]>(x, w1, w2) }',
    "reshape": "(float[1,S,4] x) => (float y) <int64[4] k = {0, 0, 2, 2}, int64[3] l = {1, -1, 2}> "
    "{ a = Reshape(x, k) b = Reshape(a, l) c = Flatten<axis=2>(b) d = Shape(x) e = Gather<axis=0>(d, v1) "
    "f = Concat<axis=0>(v1, e, v4) y = Reshape(c, f) }",
    "resize": "(float[1,2,S] x) => (float y) <float[3] k = {1.0, 2.0, 2.0}, float[3] l = {1.0, 1.0, 0.5}> "
    '{ a = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , k) '
    'y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(a, , l) }',
    "scan": "(float[S,4] x, float[4] w) => (float y) { a = Slice(x, v2, vend, v0) h, y = Scan<num_scan_inputs=1, "
    "body = step (float[4] s, float[4] t) => (float[4] u, float[4] v) { p = Add(s, t) u = Tanh(p) v = Identity(u) "
    "}>(w, a) }",
    "shape_made": "(float[1,S,4] x, float[1,1,4] w) => (float y) { d = Shape(x) z = ConstantOfShape(d) "
    "e = Expand(w, d) a = Add(x, z) y = Mul(a, e) }",
    "slice": "(float[1,S,4] x) => (float y) { a = Slice(x, v1, vm1, v1) b = Slice(a, v0, vend, v1, v2) "
    "y = Slice(b, v1, v3, v2) }",
    "tile": "(float[1,S,4] x, float[1,1,4] w) => (float y) <int64[3] k = {1, 1, 2}> { d = Shape(x) "
    "n = Gather<axis=0>(d, v1) r = Concat<axis=0>(v1, n, v1) t = Tile(w, r) a = Add(x, t) y = Tile(a, k) }",
    "unfold": "(float[1,S] x) => (float y) <int64[1,4] k = {0, 1, 2, 3}> { d = Shape(x) n = Gather<axis=0>(d, s1) "
    "m = Sub(n, s3) c = Div(m, s2) i = Range(s0, c, s1) j = Mul(i, s2) l = Unsqueeze(j, v1) p = Add(l, k) "
    "y = Gather<axis=1>(x, p) }",
    "STFT": "(float[1,S,1] x, float[8] w) => (float y) <int64 hop = {4}> { y = STFT(x, hop, w) }",
    "If and a function": "(float[1,4,S] x) => (float y) <bool c = {1}> { a = If (c) <then_branch = t () => (float p) "
    "{ p = Sigmoid(x) }, else_branch = e () => (float q) { q = Tanh(x) }> y = MeanVarianceNormalization<axes=[1]>(a) }",
    "a vector beside the signal": "(float[1,S,4] x, float[1,4] v, float[8,3] w1) => (float y) { u = Unsqueeze(v, v1) "
    "d = Shape(x) n = Gather<axis=0>(d, v1) k = Concat<axis=0>(v1, n, v4) e = Expand(u, k) a = Concat<axis=2>(x, e) "
    "y = MatMul(a, w1) }",
}


@cache
def bases() -> tuple[Base, ...]:
    """All of them, always in the same order."""
    import pulse

    found = [Base(p.stem, p.read_bytes(), False, 1) for p in sorted(MODELS.glob("*.onnx"))]
    for i, (name, text) in enumerate(TEXTS.items()):
        opset = (17, 18, 21)[i % 3] if "axes=[" not in text and "ReduceMean" not in text else 17
        source = from_text(text, opset)
        found.append(Base(name, source.SerializeToString(), False))
        made = pulse.convert(source)
        if i % 3 == 0:
            made = pulse.convert(source, 4 * made.granularity)
        proto = made.flat() if i % 4 == 1 else made.proto
        found.append(Base(f"pulsed {name}", proto.SerializeToString(), True, 4))
    large = pulse.convert(MODELS / "enc.onnx", 4)
    return (*found, Base("pulsed enc", large.proto.SerializeToString(), True, 1))
