"""A pulsed model is an ordinary ONNX file: valid, complete in its manifest, and the same numbers in any runtime."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from nets import from_text
from oracle import Arrays, Case, Full, assert_streams, compare
from published import GRAPHS, graph

import pulse
from pulse.cli import main
from pulse.inspect import inspect

pytestmark = pytest.mark.filterwarnings("ignore:output `cache_out:pulse.PulseWarning")
ROOT = Path(__file__).resolve().parent.parent
OWN = tuple(sorted(p.stem for p in (ROOT / "models").glob("*.onnx") if ".pulse" not in p.name))
GRAIN = {"unet": 8, "spectral_gate": 160}
LENGTHS = {"unet": (216, 8), "spectral_gate": (1234, 1)}  # of signals, the first no multiple of the width
MANIFEST = {"version", "source", "symbol", "pulse", "granularity", "inputs", "outputs", "states", "length"}


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_anywhere", ROOT / "examples" / "run_anywhere.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


run_anywhere = load_example()
Runner = Callable[[Arrays], Arrays]


@pytest.fixture(params=[*OWN, *GRAPHS])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def source(name: str, request: pytest.FixtureRequest) -> onnx.ModelProto:
    """The full-signal model; the published ones are not everywhere."""
    if name in OWN:
        return onnx.load(ROOT / "models" / f"{name}.onnx")
    return graph(request.getfixturevalue("shared"), name)


def width_of(name: str) -> int:
    """A width that is no divisor of the lengths."""
    return {"unet": 16, "spectral_gate": 160}.get(name, 4)


def widths(name: str) -> list[int | str]:
    return [GRAIN.get(name, 1), width_of(name), "dynamic"]


def assert_same(source: onnx.ModelProto, name: str, manifest: dict[str, Any], run: Runner, pulse_: int | None) -> None:
    """The file, driven by the example's loop, gives what the source gives for the whole signal."""
    full = Full(source)
    model = pulse.convert(source, pulse="dynamic")
    for length in LENGTHS.get(name, (37, 1)):
        feeds = Case(full, model).signal(length, np.random.default_rng(length))
        want = full(feeds)
        got = run_anywhere.drive(manifest, run, feeds, pulse_)
        assert set(got) == {o.name for o in model.outputs}
        compare(want, got, 1e-5, f"{name}, {length} frames")


# ---- the file


def test_checker_accepts_it(name: str, source: onnx.ModelProto) -> None:
    for width in widths(name):
        model = pulse.convert(source, pulse=width)
        for proto in (model.proto, model.flat()):
            onnx.checker.check_model(proto, full_check=True)
        assert not model.flat().functions
        assert {f.domain for f in model.proto.functions} <= {"pulse"}
        names = [n.name for n in model.proto.graph.node]
        assert len(set(names)) == len(names)


def test_masks_stand_before_what_reads_them() -> None:
    """A conv padded at both ends and then cut reads the mask of the start alone, in order."""
    model = from_text(
        "(float[1,4,S] x, float[4,4,3] w1, float[4,4,3] w2) => (float y) "
        "{ a = Conv<pads=[1,1]>(x, w1) b = Conv<pads=[2,2]>(a, w2) c = Slice(b, v0, vm2, v2) y = Add(a, c) }"
    )
    for width in (1, 4, "dynamic"):
        onnx.checker.check_model(pulse.convert(model, pulse=width).proto, full_check=True)


def test_manifest(name: str, source: onnx.ModelProto) -> None:
    for width in widths(name):
        model = pulse.convert(source, pulse=width)
        found = json.loads(next(p.value for p in model.proto.metadata_props if p.key == "pulse.manifest"))
        assert found == model.manifest
        assert set(found) >= MANIFEST
        assert found["version"] == 1
        assert set(found["source"]) == {"name", "sha256"}
        assert len(found["source"]["sha256"]) == 64
        assert found["pulse"] == width
        assert found["granularity"] == GRAIN.get(name, 1)
        inputs = {i.name: i.type.tensor_type for i in model.proto.graph.input}
        outputs = {o.name: o.type.tensor_type for o in model.proto.graph.output}
        for ports, wires in ((found["inputs"], inputs), (found["outputs"], outputs)):
            for port in ports:
                assert set(port) >= {"name", "axis", "rate", "delay"}
                assert port["delay"] >= 0
                dims = [d.dim_value or d.dim_param for d in wires[port["name"]].shape.dim]
                assert dims == port["shape"]
                frames = Fraction(port["rate"])
                if width == "dynamic":
                    assert isinstance(dims[port["axis"]], str)
                else:
                    assert dims[port["axis"]] == frames * width
        for state in found["states"]:
            assert set(state) >= {"input", "output", "shape", "dtype"}
            for wires, key in ((inputs, "input"), (outputs, "output")):
                assert [d.dim_value for d in wires[state[key]].shape.dim] == state["shape"]
                assert wires[state[key]].elem_type == state["dtype"]
        assert found["length"] is None or found["length"] in inputs
        assert found["position"] is None or found["position"] in {s["input"] for s in found["states"]}
        told = {p["name"] for p in found["inputs"]} | {s["input"] for s in found["states"]}
        assert set(inputs) == told | ({found["length"]} if found["length"] else set())
        assert set(outputs) == {p["name"] for p in found["outputs"]} | {s["output"] for s in found["states"]}


def test_states_start_as_zeros(name: str, source: onnx.ModelProto) -> None:
    model = pulse.convert(source, pulse=width_of(name))
    assert not {t.name for t in model.proto.graph.initializer} & {i.name for i in model.proto.graph.input}
    snapshot = model.stream().snapshot()
    assert set(snapshot.states) == {s.input for s in model.states}
    assert not any(np.any(v) for v in snapshot.states.values())


@pytest.mark.parametrize("flat", [False, True], ids=["functions", "flat"])
def test_save_and_load(name: str, source: onnx.ModelProto, tmp_path: Path, flat: bool) -> None:
    for width in widths(name)[1:]:
        model = pulse.convert(source, pulse=width)
        path = tmp_path / f"{width}.onnx"
        model.save(path, flat=flat)
        loaded = pulse.load(path)
        assert loaded.manifest == model.manifest
        assert loaded.proto == (model.flat() if flat else model.proto)
        again = tmp_path / "again.onnx"
        loaded.save(again, flat=flat)
        assert again.read_bytes() == path.read_bytes()
        case = Case(Full(source), loaded)
        feeds = case.signal(LENGTHS.get(name, (37, 1))[0], np.random.default_rng(0))
        stream, made = loaded.stream(engine="onnxruntime"), model.stream(engine="onnxruntime")
        parts = [(stream.push(feeds), made.push(feeds)), (stream.flush(), made.flush())]
        for ours, theirs in parts:
            for output in ours:
                np.testing.assert_array_equal(ours[output], theirs[output])


def test_inspect_says_what_it_is(name: str, source: onnx.ModelProto) -> None:
    """By its manifest; the cost of a frame is that of the source."""
    before = inspect(source)
    for width in (width_of(name), "dynamic"):
        model = pulse.convert(source, pulse=width)
        for proto in (model.proto, model.flat()):
            found = inspect(proto, frame_ms=10)
            assert (found["pulse"], found["obstacles"]) == (width, [])
            assert found["states"]["count"] == len(model.states)
            for key in ("symbol", "granularity", "macs_per_frame"):
                assert found[key] == before[key], key
            delays = {o["name"]: (o["delay"], o["rate"]) for o in before["outputs"] if o["delay"] is not None}
            assert {o["name"]: (o["delay"], o["rate"]) for o in found["outputs"]} == delays
            assert all(o["delay_ms"] == o["delay"] / Fraction(o["rate"]) * 10 for o in found["outputs"])


def test_inspect_as_a_command(tmp_path: Path) -> None:
    pulse.convert(ROOT / "models" / "enc.onnx", pulse=4).save(tmp_path / "enc.pulse4.onnx")
    shown = CliRunner().invoke(main, ["inspect", str(tmp_path / "enc.pulse4.onnx")])
    assert shown.exit_code == 0, shown.output
    assert "a pulsed model: pulses of 4 frames, 4 states" in shown.stdout
    assert "obstacles: none" in shown.stdout
    assert "receptive field" not in shown.stdout  # only the source knows it


# ---- manifests that do not fit


def with_manifest(change: Callable[[dict[str, Any]], object]) -> onnx.ModelProto:
    model = pulse.convert(ROOT / "models" / "enc.onnx", pulse=4).proto
    manifest = json.loads(model.metadata_props[0].value)
    changed = change(manifest)
    model.metadata_props[0].value = changed if isinstance(changed, str) else json.dumps(manifest)
    return model


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda m: m.update(version=2), "manifest-newer"),
        (lambda m: m.update(version="1"), "manifest-newer"),
        (lambda m: m.pop("version"), "manifest-invalid"),
        (lambda m: "{", "manifest-invalid"),
        (lambda m: "[]", "manifest-invalid"),
        (lambda m: m.pop("states"), "manifest-invalid"),
        (lambda m: m["states"].pop(), "manifest-invalid"),
        (lambda m: m["outputs"][0].update(name="other"), "manifest-invalid"),
        (lambda m: m["outputs"][0].update(rate="1/0"), "manifest-invalid"),
        (lambda m: m["outputs"][0].update(delay=-1), "manifest-invalid"),
        (lambda m: m["outputs"][0].update(axis=9), "manifest-invalid"),
        (lambda m: m["outputs"][0].update(length="S**9"), "manifest-invalid"),
        (lambda m: m.update(pulse=0), "manifest-invalid"),
        (lambda m: m.update(granularity=3), "manifest-invalid"),
        (lambda m: m.update(length="length"), "manifest-invalid"),
    ],
)
def test_manifest_that_does_not_fit(change: Callable[[dict[str, Any]], object], code: str) -> None:
    with pytest.raises(pulse.PulseError) as caught:
        pulse.load(with_manifest(change))
    assert caught.value.code == code


def test_a_newer_manifest_is_accepted_with_more_keys() -> None:
    model = pulse.load(with_manifest(lambda m: (m.update(author="x"), m["states"][0].update(kind="history"))))
    assert model.pulse == 4


def test_a_source_has_no_manifest() -> None:
    with pytest.raises(pulse.PulseError) as caught:
        pulse.load(ROOT / "models" / "enc.onnx")
    assert caught.value.code == "manifest-missing"


# ---- without pulse


def test_example_needs_no_pulse() -> None:
    tree = ast.parse((ROOT / "examples" / "run_anywhere.py").read_text(encoding="utf-8"))
    modules = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    modules |= {str(n.module) for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {m for m in modules if m.split(".")[0] not in sys.stdlib_module_names} == {"numpy", "onnxruntime"}


@pytest.mark.parametrize("kind", ["fixed", "dynamic", "flat"])
def test_example_drives_it(name: str, source: onnx.ModelProto, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "pulsed.onnx"
    pulse.convert(source, pulse="dynamic" if kind == "dynamic" else width_of(name)).save(path, flat=kind == "flat")
    manifest, run = run_anywhere.open_model(str(path))
    assert_same(source, name, manifest, run, GRAIN.get(name, 1) * 3 if kind == "dynamic" else None)


def example(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "examples/run_anywhere.py", *map(str, args)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_example_as_a_program(tmp_path: Path) -> None:
    source = onnx.load(ROOT / "models" / "enc.onnx")
    model = pulse.convert(source, pulse="dynamic")
    model.save(tmp_path / "enc.onnx")
    feeds = Case(Full(source), model).signal(41, np.random.default_rng(0))
    np.savez(tmp_path / "in.npz", **feeds)
    done = example(tmp_path / "enc.onnx", tmp_path / "in.npz", tmp_path / "out.npz", 5)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "out.npz") as found:
        compare(Full(source)(feeds), dict(found), 1e-5, "examples/run_anywhere.py")

    onnx.save(with_manifest(lambda m: m.update(version=2)), tmp_path / "newer.onnx")
    for args in (["newer.onnx"], ["absent.onnx"]):
        failed = example(tmp_path / args[0], tmp_path / "in.npz", tmp_path / "no.npz")
        assert failed.returncode == 2
        assert failed.stderr.startswith("cannot run ")
        assert "Traceback" not in failed.stderr
    assert example().returncode == 2
    assert not (tmp_path / "no.npz").exists()


# ---- other runtimes


def in_tract(path: Path) -> Runner:
    tract = pytest.importorskip("tract")
    outputs = [o.name for o in onnx.load(path).graph.output]
    model = tract.onnx().load(str(path))
    inputs = [model.input_name(i) for i in range(model.input_count())]
    runnable = model.into_model().into_runnable()

    def run(feeds: Arrays) -> Arrays:
        results = runnable.run([feeds[n].copy(order="C") for n in inputs])
        return {n: r.to_numpy() for n, r in zip(outputs, results, strict=True)}

    return run


def in_openvino(path: Path) -> Runner:
    openvino = pytest.importorskip("openvino")
    # in float32 also where the CPU would rather have bfloat16
    options = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(str(path), "CPU", options).create_infer_request()

    def run(feeds: Arrays) -> Arrays:
        return {name: value.copy() for port, value in request.infer(feeds).items() for name in port.names}

    return run


@pytest.mark.parametrize("runtime", [in_tract, in_openvino], ids=["tract", "openvino"])
def test_flat_form_runs_elsewhere(
    name: str, source: onnx.ModelProto, tmp_path: Path, runtime: Callable[[Path], Runner]
) -> None:
    path = tmp_path / "flat.onnx"
    model = pulse.convert(source, pulse=width_of(name))
    model.save(path, flat=True)
    assert_same(source, name, model.manifest, runtime(path), None)


def test_flat_dynamic_form_runs_in_openvino(name: str, source: onnx.ModelProto, tmp_path: Path) -> None:
    model = pulse.convert(source, pulse="dynamic")
    model.save(tmp_path / "flat.onnx", flat=True)
    assert_same(source, name, model.manifest, in_openvino(tmp_path / "flat.onnx"), 3 * GRAIN.get(name, 1))


RECURRENT = {
    op: "(float[1,6,S] x, float[8,6,3] w0, float[8] w9, float[1,{0},8] w1, float[1,{0},5] w2, float[1,{1}] w3)"
    " => (float y) {{ a = Conv<pads=[0,2]>(x, w0, w9) t = Transpose<perm=[2,0,1]>(a) "
    "y = {2}<hidden_size=5>(t, w1, w2, w3) }}".format(5 * gates, 10 * gates, op)
    for op, gates in {"GRU": 3, "RNN": 1, "LSTM": 4}.items()
}


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("op", "runtime"),
    [(op, r) for op in RECURRENT for r in (in_tract, in_openvino) if (op, r) != ("LSTM", in_tract)],
    ids=lambda v: v if isinstance(v, str) else v.__name__,
)
def test_recurrence_behind_look_ahead_runs_elsewhere(
    tmp_path: Path, op: str, runtime: Callable[[Path], Runner], width: int
) -> None:
    """All but LSTM in tract: its cell state is known after the last frame only, so its early frames must be cut off."""
    source = from_text(RECURRENT[op])
    model = pulse.convert(source, pulse=width)
    assert model.outputs[0].delay == 2
    model.save(tmp_path / "flat.onnx", flat=True)
    assert_same(source, op, model.manifest, runtime(tmp_path / "flat.onnx"), None)


# ---- names that the pulsed graph would like to use itself

TAKEN = ["position", "position.next", "length", "frames", "at_start", "const", "x.history", "x.history.next", "y.h",
         "y.h.next", "no_bias", "y.early", "b.delay"]  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("width", [2, "dynamic"])
def test_outputs_keep_their_names(name: str, width: int | str) -> None:
    text = (
        "(float[1,4,S] x, float[4,4,4] w1, float[1,9,4] w2, float[1,9,3] w3) => (float y, float other) "
        "{ a = Conv<pads=[1,2]>(x, w1) b = Conv<pads=[2,1]>(a, w1) other = Add(b, a) "
        "c = Transpose<perm=[2,0,1]>(b) y = GRU<hidden_size=3>(c, w2, w3) }"
    )
    source = from_text(text)
    source.graph.output[1].name = name
    next(n for n in source.graph.node if n.output[0] == "other").output[0] = name
    model = pulse.convert(source, width)
    onnx.checker.check_model(model.proto, full_check=True)
    assert [o.name for o in model.outputs] == ["y", name]
    names = [p.name for p in (*model.proto.graph.input, *model.proto.graph.output)]
    assert len(set(names)) == len(names)
    assert_streams(source, widths=[width], lengths=(9,), engines=["onnxruntime", "reference"], least=False)
