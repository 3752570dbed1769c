"""What exporters write is read: every opset, both forms of constants, functions, external data."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper
from oracle import Case, Full, assert_streams, compare, drive
from refused import code

import pulse

FLOAT = TensorProto.FLOAT
LENGTHS = (1, 2, 11, 16)


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
