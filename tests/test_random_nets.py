"""Random nets stream exactly, on schedule and with the least delay.

300 nets by default, in chunks that xdist can share; `PULSE_NETS=5000` draws that many instead. A failing net is
shown as a problem that can be pasted below, in PINNED.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from nets import Branch, Conv, Net, Scan, Shuffle, Slice, nets
from oracle import Full, assert_streams

CHUNKS = 6
COUNT = int(os.environ.get("PULSE_NETS", "300"))
EXAMPLES = settings(
    max_examples=-(-COUNT // CHUNKS), deadline=None, database=None, print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.large_base_example],
)  # fmt: skip

# Nets that once failed.
AHEAD = Conv(1, pads=(1, 1))  # its first frame is nothing but bias
PINNED = (
    Net((Conv(3, pads=(1, 1)), Conv(3, pads=(1, 1)))),
    Net((AHEAD, Branch(((), ()), up=False), Branch(((), (Scan(0.5), Slice(1))), up=False))),
    Net((AHEAD, Branch(((), (Branch(((Conv(1),), (Slice(),))), Slice(0, 4, 2))), up=False, fit="pad_end"))),
    Net((Conv(1, pads=(0, 1)), Shuffle(2))),  # what lies behind the last frame was read
)


def lengths_of(net: Net, min_length: int) -> list[int]:
    """Nothing, one frame, the shortest legal signals, some that no pulse divides, a longer one."""
    m = net.multiple
    rng = np.random.default_rng(net.seed)
    legal = [min_length, min_length + m, min_length + m * int(rng.integers(2, 9)), -(-37 // m) * m + min_length]
    return list(dict.fromkeys([0, 1, 2, *legal]))


def check(net: Net, width: int = 3, reference: bool = False) -> None:
    plan = net.plan()
    model, twin = net.build(), net.build(twin=True)
    limits = {"min_length": plan.min_length, "multiple": plan.multiple, "seed": net.seed, "full": twin}
    lengths = lengths_of(net, plan.min_length)
    pulsed = assert_streams(model, widths=(width, "dynamic"), lengths=lengths, ways=3, least=not plan.hides, **limits)
    assert {o.name: (o.axis, o.rate) for o in pulsed.outputs} == {v.name: (v.axis, v.rate) for v in plan.outputs}
    assert pulsed.granularity == plan.granularity
    if reference and plan.reference:
        assert_streams(
            model, widths=(width,), lengths=lengths[:5], engines=("reference",), ways=1, least=False, **limits
        )


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.filterwarnings("ignore::pulse.PulseWarning")
def test_random_nets_stream_exactly(chunk: int) -> None:
    @seed(chunk)
    @EXAMPLES
    @given(nets(), st.integers(1, 8), st.integers(0, 9))
    def run(net: Net, width: int, lot: int) -> None:
        check(net, width, reference=lot == 9)

    run()


@pytest.mark.parametrize("net", PINNED, ids=range(len(PINNED)))
@pytest.mark.filterwarnings("ignore::pulse.PulseWarning")
def test_pinned_nets(net: Net) -> None:
    check(net)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nets_run_in_onnx_runtime_with_the_shapes_foretold(chunk: int) -> None:
    """The generator on its own: what it says of a net's lengths and shapes is true of the full-signal model."""

    @seed(chunk)
    @EXAMPLES
    @given(nets())
    def run(net: Net) -> None:
        plan = net.plan()
        full = Full(net.build(twin=True))
        rng = np.random.default_rng(net.seed)
        for length in lengths_of(net, plan.min_length):
            if length < plan.min_length or length % plan.multiple:
                continue
            feeds = {v.name: rng.standard_normal(sized(v.dims, length)) for v in plan.inputs}
            feeds |= {name: rng.standard_normal(shape) for name, shape in plan.sides.items()}
            outputs = full({name: array.astype(np.float32) for name, array in feeds.items()})
            for v in plan.outputs:
                assert outputs[v.name].shape == sized(v.dims, v.length.at(length)), v.name
                assert np.isfinite(outputs[v.name]).all(), v.name

    run()


def sized(dims: tuple[int, ...], frames: int) -> tuple[int, ...]:
    return tuple(frames if dim == -1 else dim for dim in dims)
