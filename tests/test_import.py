"""What exporters write is read: every opset, both forms of constants, functions, external data, shape arithmetic."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from nets import from_text
from onnx import TensorProto, helper, numpy_helper
from oracle import Case, Full, assert_streams, compare, drive

import pulse

MODELS = Path(__file__).resolve().parent.parent / "models"
ENC = MODELS / "enc.onnx"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
LENGTHS = (1, 2, 11, 16)


def code(call: Callable[..., Any], *args: Any, **options: Any) -> str:
    with pytest.raises(pulse.PulseError) as caught:
        call(*args, **options)
    assert caught.value.remedy
    return caught.value.code


# ---- opsets


class Exporter:
    """Nodes in the form of an opset: parameters are attributes in old ones, inputs in new ones."""

    def __init__(self, opset: int) -> None:
        self.opset, self.nodes, self.constants = opset, [], []
        self.rng = np.random.default_rng(opset)

    def weight(self, *shape: int) -> str:
        return self.constant((self.rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32))

    def constant(self, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(self.constants)}"))
        return str(self.constants[-1].name)

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attrs: Any) -> Any:
        names = [f"{kind}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=f"{kind}_{len(self.nodes)}", **attrs))
        return names[0] if outputs == 1 else names

    def moved(self, since: int, kind: str, *inputs: str, outputs: int = 1, **parameters: Any) -> Any:
        """An op whose parameters became inputs with opset `since`."""
        if self.opset < since:
            return self.op(kind, *inputs, outputs=outputs, **parameters)
        given = [self.constant(np.array(v, np.int64 if np.ndim(v) else np.float32)) for v in parameters.values()]
        return self.op(kind, *inputs, *given, outputs=outputs)

    def reduced(self, kind: str, x: str, axis: int) -> str:
        if self.opset < (13 if kind == "ReduceSum" else 18):
            return str(self.op(kind, x, axes=[axis], keepdims=1))
        return str(self.op(kind, x, self.constant(np.array([axis])), keepdims=1))

    def model(self, x: list[int | str], y: str, rank: int) -> onnx.ModelProto:
        self.nodes.append(helper.make_node("Identity", [y], ["y"], name="last"))
        graph = helper.make_graph(
            self.nodes,
            "exported",
            [helper.make_tensor_value_info("x", FLOAT, x)],
            [helper.make_tensor_value_info("y", FLOAT, [f"d{i}" for i in range(rank)])],
            self.constants,
        )
        version = 4 if self.opset < 10 else 7 if self.opset < 15 else 8 if self.opset < 19 else 10
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=version)


def everything(opset: int) -> onnx.ModelProto:
    """`x [1,1,S,8] -> y [1,S,12]`, by the ops whose form has changed between opsets."""
    e = Exporter(opset)
    a = e.moved(11, "Pad", "x", pads=[0, 0, 2, 1, 0, 0, 0, 1])
    a = e.op("Conv", a, e.weight(4, 1, 3, 3), e.weight(4), kernel_shape=[3, 3])
    a = e.op("BatchNormalization", a, *(e.constant(np.abs(e.rng.standard_normal(4)).astype("f4")) for _ in range(4)))
    a = e.moved(11, "Clip", a, min=-0.5, max=0.75)
    a = e.op("Dropout", a)
    a = e.moved(10, "Slice", a, starts=[1], ends=[7], axes=[3])
    a = e.op("Transpose", a, perm=[0, 2, 1, 3])
    a = e.op("Reshape", a, shape_chain(e, a, 24))
    a = e.op("Add", e.op("MatMul", a, e.weight(24, 24)), e.weight(24))
    a = e.moved(13, "Squeeze", a, axes=[0])
    a = e.op("Softmax", a, axis=1)
    a = e.moved(13, "Unsqueeze", a, axes=[0])
    a = e.op("Sub", a, e.reduced("ReduceMean", a, 2))
    a = e.op(
        "Div", a, e.op("Sqrt", e.op("Add", e.reduced("ReduceSum", e.op("Mul", a, a), 2), e.constant(np.float32(1))))
    )
    if opset < 13:
        one, two = e.op("Split", a, outputs=2, axis=2, split=[12, 12])
    else:
        one, two = e.op("Split", a, e.constant(np.array([12, 12])), outputs=2, axis=2)
    return e.model([1, 1, "S", 8], e.op("Mul", e.op("Sigmoid", one), two), 3)


def shape_chain(e: Exporter, like: str, last: int) -> str:
    """The dims [shape[0], shape[1], last], as exporters compute them."""
    shape = e.op("Shape", like)
    dims = [
        e.moved(13, "Unsqueeze", e.op("Gather", shape, e.constant(np.int64(i)), axis=0), axes=[0]) for i in range(2)
    ]
    return str(e.op("Concat", *dims, e.constant(np.array([last])), axis=0))


def upsampled(opset: int) -> onnx.ModelProto:
    """`x [1,2,S,3] -> y [1,2,2*S,3]`: Upsample, which became Resize."""
    e = Exporter(opset)
    scales = [1.0, 1.0, 2.0, 1.0]
    if opset < 9:
        y = e.op("Upsample", "x", scales=scales, mode="nearest")
    elif opset < 10:
        y = e.op("Upsample", "x", e.constant(np.array(scales, np.float32)), mode="nearest")
    elif opset < 11:
        y = e.op("Resize", "x", e.constant(np.array(scales, np.float32)), mode="nearest")
    else:
        modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        y = e.op(
            "Resize",
            "x",
            e.constant(np.zeros(0, np.float32)),
            e.constant(np.array(scales, np.float32)),
            mode="nearest",
            **modes,
        )
    return e.model([1, 2, "S", 3], y, 4)


@pytest.mark.parametrize("opset", range(7, onnx.defs.onnx_opset_version() + 1))
@pytest.mark.parametrize("build", [everything, upsampled], ids=lambda f: f.__name__)
def test_every_opset(build: Callable[[int], onnx.ModelProto], opset: int) -> None:
    model = build(opset)
    onnx.checker.check_model(model)
    try:
        Full(model)
    except Exception as error:  # onnxruntime's own exception types
        if "opset" in str(error):
            pytest.skip(f"ONNX Runtime {ort.__version__} does not run opset {opset}")
        raise
    pulsed = assert_streams(model, widths=(3, "dynamic"), lengths=LENGTHS, ways=2, delays={"y": 0}, least=False)
    assert pulsed.proto.opset_import[0].version == max(17, opset)


@pytest.mark.parametrize("opset", [1, 6, onnx.defs.onnx_opset_version() + 1])
def test_opsets_out_of_reach(opset: int) -> None:
    model = everything(17)
    model.opset_import[0].version = opset
    assert code(pulse.convert, model) == "opset-unsupported"


# ---- forms of a file


def test_initializers_listed_as_inputs() -> None:
    """As in IR version 3, where every initializer had to be an input too."""
    model = everything(8)
    for tensor in model.graph.initializer:
        model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    model.ir_version = 3
    pulsed = assert_streams(model, widths=(3,), lengths=LENGTHS, least=False)
    assert [i.name for i in pulsed.inputs] == ["x"]


def test_constants_as_nodes() -> None:
    model = everything(13)
    for tensor in reversed(model.graph.initializer):
        value = onnx.TensorProto()
        value.CopyFrom(tensor)
        model.graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], value=value))
    del model.graph.initializer[:]
    assert_streams(model, widths=(3,), lengths=LENGTHS, least=False)


def test_stale_shapes_are_ignored() -> None:
    model = everything(17)
    dims = model.graph.output[0].type.tensor_type.shape.dim
    dims[1].dim_value, dims[2].dim_value = 100, 99
    first = model.graph.node[0].output[0]
    model.graph.value_info.append(helper.make_tensor_value_info(first, FLOAT, [1, 5, 102]))
    right = everything(17)
    assert_streams(model, widths=(3,), lengths=LENGTHS, least=False, full=right)


def test_names_and_docs_do_not_matter() -> None:
    model = everything(17)
    for node in model.graph.node:
        node.ClearField("name")
        node.doc_string = "exported"
    model.graph.ClearField("name")
    model.graph.name = ""
    model.graph.node[-1].name = "last"
    assert_streams(_named(model), widths=(3,), lengths=LENGTHS, least=False)


def _named(model: onnx.ModelProto) -> onnx.ModelProto:
    """The checker asks for a graph name, and for no other."""
    model.graph.name = "g"
    return model


def with_function() -> onnx.ModelProto:
    """`y = twice(gain(x))`, with functions of a domain of their own, one calling the other by an attribute."""
    text = """
    <ir_version: 8, opset_import: ["" : 17, "my" : 1]>
    net (float[1,4,S] x) => (float[1,4,T] y) <float[4,4,3] w> { y = my.twice<by = 0.5>(x, w) }
    <domain: "my", opset_import: ["" : 17, "my" : 1]>
    twice <by> (x, w) => (y) { a = my.block<by: float = @by>(x, w) y = my.block<by: float = @by>(a, w) }
    <domain: "my", opset_import: ["" : 17]>
    block <by: float> (x, w) => (y) { a = Conv<pads = [2, 0]>(x, w) y = LeakyRelu<alpha: float = @by>(a) }
    """
    model = onnx.parser.parse_model(text)
    w = np.random.default_rng(0).standard_normal((4, 4, 3)).astype(np.float32) / 3
    del model.graph.initializer[:]
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    return model


def test_local_functions() -> None:
    model = with_function()
    assert len(model.functions) == 2
    pulsed = assert_streams(model, widths=(3, "dynamic"), lengths=LENGTHS, delays={"y": 0})
    assert {f.domain for f in pulsed.proto.functions} == {"pulse"}


def test_opset_under_its_other_name() -> None:
    model = everything(13)
    model.opset_import[0].domain = "ai.onnx"
    for node in list(model.graph.node)[::2]:
        node.domain = "ai.onnx"
    assert_streams(model, widths=(3,), lengths=(1, 11), least=False, full=everything(13))


# ---- external data


def save_external(folder: Path, location: str = "weights.bin") -> Path:
    path = folder / "net.onnx"
    onnx.save(
        everything(17),
        path,
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location=location,
        size_threshold=100,
    )
    return path


def test_external_data(tmp_path: Path) -> None:
    path = save_external(tmp_path)
    assert path.stat().st_size < 20_000
    assert (tmp_path / "weights.bin").stat().st_size > 2_000
    pulsed = pulse.convert(path, pulse=3)
    case = Case(Full(everything(17)), pulsed)
    feeds = case.signal(11, np.random.default_rng(0))
    compare(case.full(feeds), drive(case, pulsed.stream(), feeds, {}, [4, 7], 3), 1e-5, "external data")
    pulsed.save(tmp_path / "elsewhere.onnx")
    data = bytearray((tmp_path / "weights.bin").read_bytes())
    data[0] ^= 1
    (tmp_path / "weights.bin").write_bytes(data)
    assert pulse.convert(path, pulse=3).manifest["source"] != pulsed.manifest["source"]
    (tmp_path / "weights.bin").unlink()
    assert pulse.load(tmp_path / "elsewhere.onnx").stream().push(feeds)["y"].shape == (1, 9, 12)


def test_external_data_that_is_not_there(tmp_path: Path) -> None:
    path = save_external(tmp_path)
    (tmp_path / "weights.bin").unlink()
    assert code(pulse.convert, path) == "missing-external-data"
    (tmp_path / "weights.bin").mkdir()
    assert code(pulse.convert, path) == "missing-external-data"
    assert code(pulse.convert, path.read_bytes()) == "missing-external-data"
    assert code(pulse.convert, onnx.load(path, load_external_data=False)) == "missing-external-data"


def test_external_data_cut_short(tmp_path: Path) -> None:
    path = save_external(tmp_path)
    data = (tmp_path / "weights.bin").read_bytes()
    (tmp_path / "weights.bin").write_bytes(data[: len(data) // 2])
    assert code(pulse.convert, path) in ("missing-external-data", "invalid-model")


@pytest.mark.parametrize("place", ["../weights.bin", "sub/../../weights.bin", "/weights.bin"])
def test_external_data_outside_the_folder(tmp_path: Path, place: str) -> None:
    (tmp_path / "inner" / "sub").mkdir(parents=True)
    path = save_external(tmp_path / "inner")
    os.replace(tmp_path / "inner" / "weights.bin", tmp_path / "weights.bin")
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = str(tmp_path / "weights.bin") if place.startswith("/") else place
    path.write_bytes(model.SerializeToString())
    assert code(pulse.convert, path) == "missing-external-data"


# ---- what exporters compute


def test_if_around_a_squeeze() -> None:
    """As scripted models have it: the rank is looked up before an axis is removed."""
    model = from_text(
        """(float[1,1,S,4] x, float[4,3] w1) => (float y) <int64[1] axes = {1}> {
        shape = Shape(x) one = Gather(shape, s1) alone = Equal(one, s1)
        a = If (alone) <
          then_branch = g1 () => (float t) { t = Squeeze(x, axes) },
          else_branch = g2 () => (float f) { f = Identity(x) }
        >
        y = MatMul(a, w1) }""",
        opset=13,
    )
    assert_streams(model, widths=(1, 4), lengths=LENGTHS, delays={"y": 0})


def test_if_that_depends_on_the_length_is_refused() -> None:
    model = from_text(
        """(float[1,S,4] x) => (float y) {
        shape = Shape(x) frames = Gather(shape, s1) long = Greater(frames, s100)
        y = If (long) <
          then_branch = g1 () => (float t) { t = Relu(x) },
          else_branch = g2 () => (float f) { f = Neg(x) }
        > }"""
    )
    assert code(pulse.convert, model) == "depends-on-length"


GRU = "y = GRU<hidden_size = 5>(t, w1, w2, w3, , h0)"
STARTS = {
    "ConstantOfShape": """shape = Shape(x) batch = Gather(shape, v0) dims = Concat<axis = 0>(v1, batch, v5)
        h0 = ConstantOfShape(dims)""",
    "ConstantOfShape of ones": """shape = Shape(x) batch = Gather(shape, v0) dims = Concat<axis = 0>(v1, batch, v5)
        h0 = ConstantOfShape<value = float[1] {1.0}>(dims)""",
    "Expand": """shape = Shape(x) batch = Slice(shape, v0, v1) dims = Concat<axis = 0>(v1, batch, v5)
        h0 = Expand(w4, dims)""",
    "Where on Equal": """shape = Shape(x) batch = Gather(shape, s0) b = Unsqueeze(batch, v0)
        dims = Concat<axis = 0>(v1, b, v5) asked = Concat<axis = 0>(vm1, b, vm1) given = Shape(w4)
        minus = ConstantOfShape<value = int64[1] {-1}>(v3) kept = Equal(asked, minus)
        ones = ConstantOfShape<value = int64[1] {1}>(v3)
        final = Where(kept, ones, asked) h0 = Expand(w4, final)""",
    "product of dims": """shape = Shape(x) n = Size(w4) first = Gather(shape, s0) total = Mul(first, s1)
        b = Reshape(total, vm1) five = Reshape(n, vm1) dims = Concat<axis = 0>(v1, b, five)
        h0 = ConstantOfShape(dims)""",
    "Tile": "shape = Shape(x) batch = Gather(shape, v0) reps = Concat<axis = 0>(v1, batch, v1) h0 = Tile(w4, reps)",
}


@pytest.mark.parametrize("batch", [1, "batch"])
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS.keys())
def test_initial_states_made_from_shapes(start: str, batch: int | str) -> None:
    model = from_text(
        f"""(float[{batch},S,4] x, float[1,15,4] w1, float[1,15,5] w2, float[1,30] w3, float[1,1,5] w4) => (float y)
        {{ {start} t = Transpose<perm = [1,0,2]>(x) {GRU} }}"""
    )
    pulsed = assert_streams(model, widths=(1, 4), lengths=LENGTHS, delays={"y": 0})
    assert len(pulsed.states) in (1, 2)  # a start that is not zero needs the position


def test_initial_state_of_the_wrong_batch_is_told() -> None:
    model = from_text(
        f"""(float[1,S,4] x, float[1,15,4] w1, float[1,15,5] w2, float[1,30] w3) => (float y)
        {{ shape = Shape(x) frames = Gather(shape, v1) dims = Concat<axis = 0>(v1, frames, v5)
        h0 = ConstantOfShape(dims) t = Transpose<perm = [1,0,2]>(x) {GRU} }}"""
    )
    assert code(pulse.convert, model) in ("contradicting-shape", "depends-on-length")


LENGTH = "shape = Shape(x) frames = Gather(shape, s1) real = Cast<to = 1>(frames)"
ARITHMETIC = {
    "halves and doubles": (
        f"{LENGTH} half = Div(real, two) low = Floor(half) n = Cast<to = 7>(low) twice = Mul(n, s2)"
        " e = Reshape(twice, vm1) y = Slice(x, v0, e, v1)",
        2,
    ),
    "rounds up": (
        f"{LENGTH} half = Div(real, two) high = Ceil(half) n = Cast<to = 7>(high) twice = Mul(n, s2)"
        " more = Sub(twice, frames) z = Reshape(more, vm1) pads = Concat<axis = 0>(v0, v0, v0, v0, z, v0)"
        " y = Pad(x, pads)",
        2,
    ),
    "integer division": (
        "shape = Shape(x) frames = Gather(shape, s1) n = Div(frames, s3) third = Mul(n, s3) e = Reshape(third, vm1)"
        " y = Slice(x, v0, e, v1)",
        3,
    ),
    "frames of four": (
        "shape = Shape(x) frames = Gather(shape, s1) n = Div(frames, s4) whole = Mul(n, s4) e = Reshape(whole, vm1)"
        " cut = Slice(x, v0, e, v1) rows = Reshape(n, vm1) dims = Concat<axis = 0>(v1, rows, v16)"
        " y = Reshape(cut, dims)",
        4,
    ),
    "modulo": (
        "shape = Shape(x) frames = Gather(shape, s1) over = Mod(frames, s2) whole = Sub(frames, over)"
        " e = Reshape(whole, vm1) y = Slice(x, v0, e, v1)",
        2,
    ),
    "at least four frames": (
        "shape = Shape(x) frames = Gather(shape, s1) n = Max(frames, s4) more = Sub(n, frames) z = Reshape(more, vm1)"
        " pads = Concat<axis = 0>(v0, v0, v0, v0, z, v0) y = Pad(x, pads)",
        1,
    ),
}


@pytest.mark.parametrize(("body", "granule"), ARITHMETIC.values(), ids=ARITHMETIC.keys())
def test_arithmetic_on_lengths(body: str, granule: int) -> None:
    model = from_text(f"(float[1,S,4] x) => (float y) <float two = {{2.0}}> {{ {body} }}")
    pulsed = assert_streams(model, widths=(1, 3, "dynamic"), lengths=(1, 2, 3, 4, 5, 10, 12), least=False)
    assert granule % pulsed.granularity == 0


BAKED = {
    "reshape": ("y = Reshape(x, dims)", "length-mismatch"),
    "expand": ("y = Expand(w1, dims)", "no-streaming-output"),
    "mask": ("y = Mul(x, w2)", "length-mismatch"),
    "zeros": ("z = ConstantOfShape<value = float[1] {0.5}>(dims) y = Add(x, z)", "length-mismatch"),
    "slice": ("y = Slice(x, v0, v100, v1)", "first-frames-only"),
}


@pytest.mark.parametrize(("body", "wanted"), BAKED.values(), ids=BAKED.keys())
def test_baked_lengths_are_refused(body: str, wanted: str) -> None:
    """A length of 100 frames, traced into the graph as a number."""
    model = from_text(
        "(float[1,S,4] x, float[1,1,4] w1, float[1,100,4] w2) => (float y) "
        f"<int64[3] dims = {{1, 100, 4}}> {{ {body} }}"
    )
    assert code(pulse.convert, model) == wanted


# ---- which axis streams


def plain(dims: list[int | str | None], opset: int = 17) -> onnx.ModelProto:
    """`y = relu(x)` for an `x` of these dims."""
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"], name="relu")],
        "plain",
        [helper.make_tensor_value_info("x", FLOAT, dims)],
        [helper.make_tensor_value_info("y", FLOAT, [None] * len(dims))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize(
    ("dims", "axis", "shape"),
    [
        (["batch", "time", 80], 1, (1, 3, 80)),
        (["N", 80, "T"], 2, (1, 80, 3)),
        (["batch_size", "num_frames", 80], 1, (1, 3, 80)),
        ([1, None, 80], 1, (1, 3, 80)),
        (["T", 1, 80], 0, (3, 1, 80)),
        ([1, "batch", 80], 1, (1, 3, 80)),
    ],
    ids=str,
)
def test_the_axis_is_found(dims: list[int | str | None], axis: int, shape: tuple[int, ...]) -> None:
    (port,) = pulse.convert(plain(dims), pulse=3).inputs
    assert (port.axis, port.shape) == (axis, shape)


@pytest.mark.parametrize(
    ("dims", "wanted"),
    [
        ([1, 100, 80], "no-stream-axis"),
        (["batch", 100, 80], "no-stream-axis"),
        (["batch", "time", "freq"], "ambiguous-stream-axis"),
        ([1, "H", "W"], "ambiguous-stream-axis"),
        ([1, "S", "S"], "two-stream-axes"),
        ([None, None, 80], "ambiguous-stream-axis"),
        ([0, "T", 80], "ambiguous-stream-axis"),
        ([-1, "T", 80], "ambiguous-stream-axis"),
    ],
    ids=str,
)
def test_the_axis_is_asked_for(dims: list[int | str | None], wanted: str) -> None:
    model = plain(dims)
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(model)
    assert caught.value.code == wanted
    assert "--input x=1,S,80" in caught.value.remedy or "--input NAME=DIMS" in caught.value.remedy
    (port,) = pulse.convert(model, pulse=3, inputs={"x": "1,S,80"}).inputs
    assert (port.axis, port.shape) == (1, (1, 3, 80))


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ("1,S,80", (1, 3, 80)),
        ("1,S,80,f32", (1, 3, 80)),
        (" 1 , S , 80 , F32 ", (1, 3, 80)),
        ("1,frames,40", (1, 3, 40)),
        ("1,2*S,80", (1, 6, 80)),
        ("1, 2 * S, 80", (1, 6, 80)),
    ],
)
def test_shapes_given_by_the_user(given: str, shape: tuple[int, ...]) -> None:
    model = plain([1, 100, 80])
    pulsed = pulse.convert(model, pulse=3, inputs={"x": given})
    assert pulsed.inputs[0].shape == pulsed.outputs[0].shape == shape
    out = pulsed.stream().push(np.full([2 * d if i == 1 else d for i, d in enumerate(shape)], -1, np.float32))
    assert not out["y"].any()


@pytest.mark.parametrize(
    ("inputs", "wanted"),
    [
        ({"z": "1,S,80"}, "unknown-input"),
        ({"x": "1,S"}, "contradicting-shape"),
        ({"x": "1,S,80,4"}, "contradicting-shape"),
        ({"x": "1xSx80"}, "bad-input-spec"),
        ({"x": "1,S,0"}, "bad-input-spec"),
        ({"x": "1,S,-1"}, "bad-input-spec"),
        ({"x": "1,S+1,80"}, "bad-input-spec"),
        ({"x": "1,0*S,80"}, "bad-input-spec"),
        ({"x": "1,,80"}, "bad-input-spec"),
        ({"x": ""}, "bad-input-spec"),
        ({"x": "1,100,80"}, "no-stream-axis"),
        ({"x": "1,S,T"}, "ambiguous-stream-axis"),
        ({"x": "1,S,S"}, "two-stream-axes"),
    ],
    ids=str,
)
def test_shapes_that_cannot_be(inputs: dict[str, str], wanted: str) -> None:
    assert code(pulse.convert, plain([1, "S", 80]), inputs=inputs) == wanted


@pytest.mark.parametrize(
    ("given", "at"),
    [("1,1,S,17", "feat_erb"), ("1,1,S,8", "feat_erb"), ("2,1,S,16", ""), ("1,2,S,16", "")],
)
def test_sizes_that_contradict_the_graph(given: str, at: str) -> None:
    """Also where the contradiction shows as two streams of different rates, far from the input."""
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(ENC, inputs={"feat_erb": given})
    assert caught.value.code == "contradicting-shape"
    if at:
        assert caught.value.node == at
        assert "feat_erb=1,1,S,16" in caught.value.required


def test_a_refusal_stays_one_whatever_the_sizes() -> None:
    model = from_text("(float[1,S,8] x) => (float y) { m = ReduceMean<axes = [1]>(x) y = Sub(x, m) }")
    assert code(pulse.convert, model, inputs={"x": "1,S,40"}) == "reduce-over-stream"


# ---- files that are none


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not-onnx"),
    "one byte": (b"\x08", "not-onnx"),
    "zeros": (bytes(1000), "not-onnx"),
    "random": (np.random.default_rng(3).bytes(4096), "not-onnx"),
    "text": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "not-onnx"),
    "archive": (b"PK\x03\x04" + bytes(100), "not-onnx"),
    "a header alone": (onnx.ModelProto(ir_version=8, producer_name="x").SerializeToString(), "not-onnx"),
}
CUTS = (1, 7, 100, 1000, 20_000, ENC.stat().st_size // 2)


@pytest.mark.parametrize(("data", "wanted"), BAD.values(), ids=BAD.keys())
def test_files_that_are_no_model(tmp_path: Path, data: bytes, wanted: str) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(data)
    assert code(pulse.convert, path) == wanted
    assert code(pulse.convert, data) == wanted
    assert code(pulse.load, path) == wanted


@pytest.mark.parametrize("cut", CUTS)
def test_truncated_file(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(ENC.read_bytes()[:-cut])
    assert code(pulse.convert, path) in ("not-onnx", "invalid-model")
    pulsed = pulse.convert(ENC, pulse=4).proto.SerializeToString()
    path.write_bytes(pulsed[:-cut])
    assert code(pulse.load, path) in ("not-onnx", "invalid-model", "manifest-missing", "manifest-invalid")


def test_paths_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert code(pulse.convert, tmp_path / "absent.onnx") == "file-not-found"
    assert code(pulse.convert, tmp_path) == "file-unreadable"
    assert code(pulse.convert, ENC / "x.onnx") == "file-unreadable"
    assert code(pulse.convert, "a\0b.onnx") == "file-unreadable"
    assert code(pulse.convert, tmp_path / ("x" * 300)) == "file-unreadable"

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert code(pulse.convert, ENC) == "file-unreadable"


def test_a_pulsed_model_is_not_converted_again(tmp_path: Path) -> None:
    pulsed = pulse.convert(ENC, pulse=4)
    assert code(pulse.convert, pulsed.proto, pulse=8) == "already-pulsed"
    assert code(pulse.convert, pulsed.flat()) == "already-pulsed"


WIDE = {
    "Conv": "(float[1,5,S] x, float[4,4,3] w1) => (float y) { [bad] y = Conv(x, w1) }",
    "grouped Conv": "(float[1,6,S] x, float[4,4,3] w1) => (float y) { [bad] y = Conv<group = 2>(x, w1) }",
    "ConvTranspose": "(float[1,5,S] x, float[4,4,3] w1) => (float y) { [bad] y = ConvTranspose(x, w1) }",
    "GRU": (
        "(float[S,1,5] x, float[1,6,4] w1, float[1,6,2] w2) => (float y) { [bad] y = GRU<hidden_size = 2>(x, w1, w2) }"
    ),
    "LSTM": (
        "(float[S,1,5] x, float[1,8,4] w1, float[1,8,2] w2) => (float y) { [bad] y = LSTM<hidden_size = 2>(x, w1, w2) }"
    ),
    "BatchNormalization": (
        "(float[1,5,S] x, float[4] w1, float[4] w2, float[4] w3, float[4] w4) => (float y) "
        "{ [bad] y = BatchNormalization(x, w1, w2, w3, w4) }"
    ),
    "MatMul": "(float[1,S,5] x, float[4,4] w1) => (float y) { [bad] y = MatMul(x, w1) }",
}


@pytest.mark.parametrize("text", WIDE.values(), ids=WIDE.keys())
def test_features_that_do_not_fit_the_weights(text: str) -> None:
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(from_text(text))
    assert caught.value.code == "contradicting-shape"
    assert caught.value.node.startswith("bad")


UNKNOWN = {
    "another domain": (lambda n: setattr(n, "domain", "com.microsoft"), "unknown-op"),
    "an operator of no opset": (lambda n: setattr(n, "op_type", "Frobnicate"), "unknown-op"),
    "an operator of a later opset": (lambda n: setattr(n, "op_type", "Gelu"), "unknown-op"),
    "an input from nowhere": (lambda n: n.input.__setitem__(0, "nowhere"), "invalid-model"),
    "no input": (lambda n: n.ClearField("input"), "invalid-model"),
    "two outputs of one name": (lambda n: n.output.extend(["y", "y"]), "invalid-model"),
    "an attribute it does not have": (
        lambda n: n.attribute.append(helper.make_attribute("size", 3)),
        "invalid-model",
    ),
}


@pytest.mark.parametrize(("change", "wanted"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_graphs_that_are_wrong(change: Callable[[onnx.NodeProto], object], wanted: str) -> None:
    model = plain([1, "S", 80])
    change(model.graph.node[0])
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert(model)
    assert caught.value.code == wanted
    if wanted == "unknown-op":
        assert caught.value.node.startswith("relu")


# ---- what cannot be written


def test_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pulsed = pulse.convert(plain([1, "S", 80]), pulse=3)
    kept = tmp_path / "kept.onnx"
    kept.write_bytes(b"what was there")
    (tmp_path / "folder").mkdir()
    assert code(pulsed.save, tmp_path / "absent" / "x.onnx") == "output-unwritable"
    assert code(pulsed.save, tmp_path / "folder") == "output-unwritable"
    assert code(pulsed.save, kept / "x.onnx") == "output-unwritable"
    assert code(pulsed.save, "a\0b.onnx") == "output-unwritable"

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert code(pulsed.save, kept) == "output-unwritable"
    monkeypatch.undo()
    assert kept.read_bytes() == b"what was there"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "kept.onnx"]
    pulsed.save(kept)
    assert pulse.load(kept).manifest == pulsed.manifest
