"""Random nets that the native engine covers stream exactly; what it does not cover is named and runs elsewhere.

60 nets by default, in chunks that xdist can share; `PULSE_NETS=5000` draws that many instead.
"""

from __future__ import annotations

import os

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from nets import BandConv, Net, Pool, Rnn, nets
from nets import Position as Place
from oracle import assert_streams

import pulse
from pulse.engine.native.compile import compiled

pytestmark = pytest.mark.filterwarnings("ignore::pulse.PulseWarning")
CHUNKS = 3
COUNT = int(os.environ.get("PULSE_NETS", "60"))

# Nets that once failed: what was read beside the pulse, or taken for something else.
PINNED = (
    Net((Pool(kind="Average", k=2, s=3, pads=(1, 0)), Place(kind="sine")), layout="NS", dims=(1, -1)),
    Net((BandConv(kind="ConvTranspose", k=3, s=2, out=1, channels=1),), layout="NCS", dims=(1, 6, -1)),
    Net((Rnn(kind="GRU", hidden=2, h0="input"),), layout="NSF", dims=(1, -1, 6)),
)


def check(net: Net, width: int) -> bool:
    """Whether the engine covers the net; if so it must stream."""
    plan = net.plan()
    model, options = net.build(), {"length_multiple_of": net.multiple} if net.multiple > 1 else {}
    try:
        compiled(pulse.convert(model, "dynamic", **options))
    except pulse.PulseError as error:
        if error.code != "engine-unsupported" or not error.node or not error.found:
            raise
        return False
    random = np.random.default_rng(net.seed)
    more = net.multiple * int(random.integers(2, 9))
    limits = {"min_length": plan.min_length, "multiple": plan.multiple, "seed": net.seed}
    lengths = [0, plan.min_length, plan.min_length + more, -(-37 // net.multiple) * net.multiple + plan.min_length]
    assert_streams(
        model, widths=(width, "dynamic"), lengths=list(dict.fromkeys(lengths)), engines=("native",), ways=2,
        least=False, full=net.build(twin=True), **limits,
    )  # fmt: skip
    return True


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_nets_run_natively_as_they_should(chunk: int) -> None:
    covered = []

    @seed(chunk)
    @settings(
        max_examples=-(-COUNT // CHUNKS), deadline=None, database=None, phases=[Phase.generate, Phase.shrink],
        print_blob=False, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(nets(), st.integers(1, 8))
    def run(net: Net, width: int) -> None:
        covered.append(check(net, width))

    run()
    assert sum(covered) > len(covered) / 3, "most nets should have a native form"


@pytest.mark.parametrize("net", PINNED, ids=range(len(PINNED)))
def test_pinned_nets(net: Net) -> None:
    assert check(net, 3)


def test_what_has_no_native_form_is_named_and_runs_on_another_engine() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> ranked (float[1,S,6] x) => (float[1,S,2] y) {
        two = Constant <value_ints: ints = [2]> ()
        y, places = TopK <axis: int = 2> (x, two)
    }"""
    proto = onnx.parser.parse_model(text)
    proto.graph.node[1].name = "best_two"
    model = pulse.convert(proto, 2)
    with pytest.raises(pulse.PulseError) as refused:
        model.stream(engine="native")
    assert refused.value.code == "engine-unsupported"
    assert "best_two" in refused.value.node
    assert "TopK" in refused.value.node + refused.value.found
    stream = model.stream()
    assert stream.engine == "onnxruntime"
    signal = np.random.default_rng(0).standard_normal((1, 4, 6)).astype(np.float32)
    assert np.array_equal(stream.push(signal)["y"], np.sort(signal, axis=2)[:, :, :-3:-1])
