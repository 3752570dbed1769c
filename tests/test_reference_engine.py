"""The engine on onnx.reference: right where that is wrong by itself."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from nets import from_text
from oracle import Case, Full, compare

import pulse


def compare_stream(text: str, what: str, silent: int | None = None) -> Case:
    """Compares a stream in two pulses with the full signal; frame `silent` of the input `x` is zero."""
    source = from_text(text)
    case = Case(Full(source), pulse.convert(source, pulse=2))
    feeds = case.signal(11, np.random.default_rng(0))
    if silent is not None:
        feeds["x"][:, silent] = 0
    stream = case.pulsed.stream(engine="reference")
    parts = [stream.push(feeds), stream.flush()]
    got = {o.name: np.concatenate([p[o.name] for p in parts], o.axis) for o in case.pulsed.outputs}
    compare(case.full(feeds), got, 1e-5, what)
    return case


@pytest.mark.parametrize("size", [1, 3, 5, 9])
def test_reference_engine_normalises_over_channels(size: int) -> None:
    compare_stream(f"(float[1,5,S,2] x) => (float y) {{ y = LRN<size = {size}, alpha = 0.7>(x) }}", f"LRN over {size}")


@pytest.mark.parametrize("p", [1, 2])
def test_reference_engine_divides_by_a_norm(p: int) -> None:
    text = f"(float[1,S,5] x) => (float y) {{ a = Relu(x) b = Sub(a, x) y = LpNormalization<p = {p}>(b) }}"
    compare_stream(text, f"norm {p}", silent=2)


CELLS = {
    "GRU": "GRU<hidden_size=3>(a, w1, w2, w4)",
    "GRU, no bias": "GRU<hidden_size=3>(a, w1, w2)",
    "GRU, reset after": "GRU<hidden_size=3, linear_before_reset=1>(a, w1, w2)",
    "GRU, clipped": "GRU<hidden_size=3, clip=0.2>(a, w1, w2)",
    "GRU, other activations": 'GRU<hidden_size=3, activations=["HardSigmoid", "Softsign"]>(a, w1, w2)',
    "LSTM, no bias": "LSTM<hidden_size=3>(a, w5, w6)",
    "LSTM, peepholes": "LSTM<hidden_size=3>(a, w5, w6, , , , , w7)",
    "LSTM, coupled": "LSTM<hidden_size=3, input_forget=1>(a, w5, w6)",
    "RNN, clipped": 'RNN<hidden_size=3, clip=0.2, activations=["Relu"]>(a, w8, w9)',
}


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS.keys())
def test_reference_engine_runs_recurrences_with_and_without_frames_to_skip(cell: str, ahead: int) -> None:
    weights = {1: "1,9,4", 2: "1,9,3", 4: "1,18", 5: "1,12,4", 6: "1,12,3", 7: "1,9", 8: "1,3,4", 9: "1,3,3"}
    inputs = "".join(f", float[{shape}] w{i}" for i, shape in weights.items() if f"w{i}" in cell)
    text = f"(float[S,1,4] x{inputs}) => (float y) {{ a = Slice(x, v{ahead}, vend, v0) y = {cell} }}"
    assert compare_stream(text, cell).pulsed.outputs[0].delay == ahead


@pytest.mark.parametrize("delay", [0, 1])
def test_recurrences_of_doubles_have_zeros_of_doubles(delay: int) -> None:
    source = from_text(f"(float[S,1,4] x, float[1,12,4] w1, float[1,12,3] w2) => (double y) "
                       f"{{ a = Slice(x, v{delay}, vend, v0) d = Cast<to=11>(a) u = Cast<to=11>(w1) "
                       f"v = Cast<to=11>(w2) y = LSTM<hidden_size=3>(d, u, v) }}")  # fmt: skip
    onnx.checker.check_model(pulse.convert(source, 2).proto, full_check=True)
    x = np.random.default_rng(0).standard_normal((7, 1, 4)).astype(np.float32)
    out = pulse.convert(source, 2).stream(engine="reference").push(x)["y"]
    assert out.dtype == np.float64
    assert np.abs(out).max() > 0
