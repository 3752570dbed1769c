"""Bodies of Scan, Loop and If read values from outside themselves: what is known goes along, the signal is refused."""

from __future__ import annotations

import onnx
import pytest
from nets import from_text
from oracle import assert_streams

import pulse

ENGINES = ["onnxruntime", "reference"]
BODY = "(float[4] s, float[4] e) => (float[4] t, float[4] o) {{ {q} t = Add(q, e) o = Tanh(t) }}"


def scan(
    q: str, before: str = "", inputs: str = "float[S,4] x", outputs: str = "y", after: str = ""
) -> onnx.ModelProto:
    """`h[t] = q(h[t-1], ...) + x[t]`, `y = tanh(h)`, where `q` is read by the body."""
    declared = ", ".join(f"float {name}" for name in outputs.split())
    body = BODY.format(q=q)
    return from_text(
        f"({inputs}, float[4] w0, float[4] w1, float[4] w2) => ({declared}) "
        f"{{ {before} h, y = Scan<num_scan_inputs=1, body = body {body}>(w0, x) {after} }}"
    )


BRANCHES = (
    "<then_branch = yes () => (float[4] p) { p = Mul(s, w1) }, else_branch = no () => (float[4] n) { n = Neg(s) }>"
)
READS = {
    "a constant": scan("q = Mul(s, w1)"),
    "a constant, twice": scan("a = Mul(s, w1) q = Sub(a, w1)"),
    "a constant in a body inside": scan(f"c = Greater(e, e) d = ReduceSum(e) g = Less(d, d) q = If {BRANCHES}(g)"),
    "a constant also read outside": scan("q = Mul(s, w1)", outputs="y z", after="z = Add(y, w1)"),
    "a vector given at run time": scan("q = Mul(s, v)", inputs="float[S,4] x, float[4] v"),
    "what is made of one": scan("q = Mul(s, k)", "k = Tanh(v)", "float[S,4] x, float[4] v"),
    "a constant that an output is named like": scan(
        "q = Mul(s, k)", "k = Tanh(w1)", outputs="y o2", after="o2 = Neg(y)"
    ),
}
WHOLE = {
    "the signal": scan("m = ReduceMean<axes=[0], keepdims=0>(x) q = Mul(s, m)"),
    "what is made of it": scan("m = ReduceMean<axes=[0], keepdims=0>(z) q = Mul(s, m)", "z = Neg(x)"),
    "the signal in a body inside": scan(
        "d = ReduceSum(e) g = Less(d, d) q = If<then_branch = yes () => (float[4] p) "
        "{ p = ReduceMean<axes=[0], keepdims=0>(x) }, else_branch = no () => (float[4] n) { n = Neg(s) }>(g)"
    ),
    "its length": scan("f = Cast<to=1>(l) q = Mul(s, f)", "l = Shape<start=0, end=1>(x)"),
}


@pytest.mark.parametrize("model", READS.values(), ids=READS.keys())
def test_scan_reads_from_outside(model: onnx.ModelProto) -> None:
    assert_streams(model, engines=ENGINES)


@pytest.mark.parametrize("pad", ["", "ahead", "behind"])
def test_scan_reads_from_outside_at_other_delays(pad: str) -> None:
    text = {"": "a = Neg(x0)", "ahead": "a = Conv<pads=[3,0]>(x0, w3)", "behind": "a = Conv<pads=[0,2]>(x0, w3)"}[pad]
    before = f"{text} b = Transpose<perm=[2,1,0]>(a) x = Squeeze(b, v2)"
    assert_streams(scan("q = Mul(s, w1)", before, "float[1,4,S] x0, float[4,4,3] w3"), engines=ENGINES)


@pytest.mark.parametrize("model", WHOLE.values(), ids=WHOLE.keys())
def test_scan_that_reads_the_whole_signal_is_refused(model: onnx.ModelProto) -> None:
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(model)
    assert caught.value.code == "loop-over-stream"
    assert caught.value.node == "h (Scan)"


def test_a_loop_over_constants_is_one() -> None:
    body = "(int64 i, bool c, float[4] a) => (bool d, float[4] b) { d = Identity(c) b = Mul(a, w1) }"
    assert_streams(
        from_text(
            "(float[1,S,4] x, float[4] w0, float[4] w1) => (float y) "
            f"{{ yes = Equal(s3, s3) k = Loop<body = body {body}>(s3, yes, w0) y = Mul(x, k) }}"
        ),
        engines=ENGINES,
    )
