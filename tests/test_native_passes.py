"""Passes keep what they promise: fewer nodes, less work, and nothing folded that something else still reads."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from conftest import find_shared
from native_models import NAMES, path_of, pulsed
from onnx import numpy_helper

import pulse
from pulse.engine.native.compile import NativeModel, compiled
from pulse.engine.native.net import Net, build
from pulse.engine.native.passes import run_passes
from pulse.engine.native.plan import OWN, WeightStore
from pulse.graph.ir import Node

pytestmark = pytest.mark.filterwarnings("ignore::pulse.PulseWarning")


def net_of(text: str, constants: dict[str, np.ndarray], width: int = 4) -> Net:
    """The net of a graph in ONNX's text form, after all passes."""
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    proto.graph.initializer.extend(
        numpy_helper.from_array(a if a.dtype == np.int64 else a.astype(np.float32), n) for n, a in constants.items()
    )
    model = pulse.convert(proto, width)
    net = build(model.proto, model.info, width)
    run_passes(net)
    return net


def ops(net: Net) -> list[str]:
    return [node.op for node in net.nodes]


def only(net: Net, op: str) -> Node:
    found = [node for node in net.nodes if node.op == op]
    assert len(found) == 1, ops(net)
    return found[0]


RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape)


BANDS = "g (float[1,2,S,16] x) => (float[1,8,S,16] y)"
POINTWISE = {"w": normal(8, 8, 1, 1), "b": normal(8)}


def test_a_grouped_convolution_and_a_pointwise_one_become_one_where_that_is_less_work() -> None:
    text = f"{BANDS} {{ a = Conv <group: int = 2, pads: ints = [0,1,0,1]> (x, v)  c = Conv (a, w, b)  y = Relu (c) }}"
    net = net_of(text, {"v": normal(8, 1, 1, 3), **POINTWISE})
    conv = only(net, "Conv")
    assert ops(net) == ["Conv"]
    assert conv.attrs["weight"].shape == (8, 2, 1, 3)
    assert conv.attrs["group"] == 1
    assert conv.attrs["act"] == "relu"


def test_two_convolutions_stay_two_where_one_would_be_more_work_or_the_first_is_wanted() -> None:
    deep = (
        f"{BANDS} {{ a = Conv (x, u)  d = Conv <group: int = 8, pads: ints = [0,1,0,1]> (a, v)  y = Conv (d, w, b) }}"
    )
    net = net_of(deep, {"u": normal(8, 2, 1, 1), "v": normal(8, 1, 1, 3), **POINTWISE})
    assert ops(net).count("Conv") == 3
    both = "g (float[1,2,S,16] x) => (float[1,8,S,16] y, float[1,8,S,16] a)"
    text = f"{both} {{ a = Conv <group: int = 2, pads: ints = [0,1,0,1]> (x, v)  y = Conv (a, w, b) }}"
    assert ops(net_of(text, {"v": normal(8, 1, 1, 3), **POINTWISE})) == ["Conv", "Conv"]


def test_scales_shifts_and_norms_go_into_the_product_before_them() -> None:
    text = """g (float[1,S,6] x) => (float[1,S,10] y) {
        a = MatMul (x, w)  b = Add (a, bias)  r = Reshape (b, split)  t = Transpose <perm: ints = [0,2,3,1]> (r)
        m = Mul (t, scale)  back = Transpose <perm: ints = [0,3,1,2]> (m)  f = Reshape (back, join)  y = Relu (f)
    }"""
    constants = {"w": normal(6, 10), "bias": normal(10), "scale": normal(2, 5, 1)}
    net = net_of(text, constants | {"split": np.array([1, -1, 2, 5]), "join": np.array([1, -1, 10])})
    linear = only(net, "Linear")
    assert linear.attrs["act"] == "relu"
    factor = constants["scale"].reshape(-1)
    assert np.allclose(linear.attrs["weight"][0], (constants["w"] * factor).T, atol=1e-6)
    assert np.allclose(linear.attrs["bias"], constants["bias"] * factor, atol=1e-6)
    assert set(ops(net)) <= {"Linear", "Reshape", "Transpose"}


def test_a_batch_norm_goes_into_a_convolution_and_else_into_a_chain() -> None:
    norm = {"s": normal(8), "t": normal(8), "mean": normal(8), "var": np.abs(normal(8)) + 0.5}
    folded = f"{BANDS} {{ c = Conv (x, w, b)  y = BatchNormalization (c, s, t, mean, var) }}"
    net = net_of(folded, {"w": normal(8, 2, 1, 1), "b": normal(8), **norm})
    assert ops(net) == ["Conv"]
    alone = "g (float[1,8,S] x) => (float[1,8,S] y) { y = BatchNormalization (x, s, t, mean, var) }"
    assert ops(net_of(alone, norm)) == ["Chain"]


def test_elementwise_operations_pass_over_memory_once() -> None:
    text = """g (float[1,S,8] x) => (float[1,S,8] y) {
        half = Constant <value = float {0.5}> ()  one = Constant <value = float {1.0}> ()
        r = Constant <value = float {1.4142135}> ()
        d = Div (x, r)  e = Erf (d)  a = Add (e, one)
        m = Mul (x, a)  h = Mul (m, half)  s = Add (h, bias)  y = Tanh (s)
    }"""
    net = net_of(text, {"bias": normal(8)})
    assert ops(net) == ["Chain"]
    assert [i.op for i in only(net, "Chain").attrs["code"]].count("affine") <= 3


def test_chains_do_not_swallow_what_is_read_elsewhere() -> None:
    text = """g (float[1,S,8] x) => (float[1,S,8] y, float[1,S,8] z) {
        a = Exp (x)  y = Add (a, b)  s = Softmax (a)  z = Mul (s, a)
    }"""
    net = net_of(text, {"b": normal(8)})
    assert ops(net) == ["Chain", "Chain", "Softmax", "Chain"]


def test_a_residual_is_one_more_in_the_newest_tap_or_an_addend() -> None:
    text = """g (float[1,8,S] x) => (float[1,8,S] y) {
        e = Exp (x)  c = Conv <group: int = 8, pads: ints = [3,0]> (e, w)  a = Add (e, c)  s = Add (a, x)  y = Relu (s)
    }"""
    w = normal(8, 1, 4)
    net = net_of(text, {"w": w})
    conv = only(net, "Conv")
    assert np.allclose(conv.attrs["weight"][:, 0], w[:, 0] + np.array([0, 0, 0, 1]), atol=1e-6)
    assert conv.inputs[1] == "x"
    assert conv.attrs["act"] == "relu"
    assert ops(net) == ["Chain", "History", "Conv"]


def test_starts_of_states_leave_the_graph() -> None:
    """Padding with a value other than zero before a convolution makes its history start with that."""
    text = """g (float[1,4,S] x) => (float[1,4,S] y) {
        p = Pad (x, pads, two)  y = Conv (p, w)
    }"""
    constants = {"pads": np.array([0, 0, 2, 0, 0, 0]), "two": np.array(2.0), "w": normal(4, 4, 3)}
    net = net_of(text, constants)
    assert "Where" not in ops(net)
    (start,) = net.initials.values()
    assert isinstance(start, np.ndarray)
    assert (start == 2).all()


COPIES = {"shared/nsnet2/nsnet2_20ms": 0, "shared/firered/stream_vad": 0, "shared/dfn2/enc": 3, "models/kws_tcn": 0}


@pytest.mark.parametrize("name", COPIES)
def test_transposes_and_reshapes_vanish(name: str) -> None:
    """What is copied: inputs into the windows they slide through, and one flattening of what is delivered too."""
    model = pulsed(path_of(name, find_shared()), 4)
    steps = compiled(model).at(4).plan.steps
    assert [s.kind for s in steps].count("copy") == COPIES[name], [s.node for s in steps if s.kind == "copy"]


@pytest.mark.parametrize("name", NAMES)
def test_one_packing_serves_all_widths(name: str) -> None:
    model = pulsed(path_of(name, find_shared()), "dynamic")
    native = NativeModel(model.proto, model.info)
    for granules in (1, 2, 3, 4, 8, 16):
        steps = native.at(granules * model.granularity).plan.steps
        own = {id(b): b.size for s in steps for b in s.operands() if b.kind == "weights" and b.index == OWN}
        assert sum(own.values()) * 4 <= 4096, f"{name} packs weights anew at width {granules}"


def test_equal_weights_are_stored_once() -> None:
    store, array = WeightStore(False), np.ones((1, 32, 8), np.float32)
    first = store.put(array, 16)
    assert store.put(array.copy(), 16) is first
    assert store.put(array, 32) is not first
    assert store.put(array[0]) is not first
    store.finish()
    assert store.put(array, 16) is first
    assert store.put(2 * array, 16).index == OWN
