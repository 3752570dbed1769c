"""The documentation holds: links lead somewhere, tables of commands are complete, docs/format.md drives a file."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from onnx.helper import tensor_dtype_to_np_dtype

import pulse
from pulse.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ort = pytest.importorskip("onnxruntime", reason="docs/format.md is about other runtimes")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    broken = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert not broken


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "python.md"], ids=lambda page: page.name)
def test_code_runs_as_it_stands(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").symlink_to(ROOT / "models")
    (tmp_path / "build").mkdir()
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)


def test_arrays_of_push_stay_what_they_were() -> None:
    model = pulse.convert(ROOT / "models" / "lookahead.onnx", pulse=4)
    signal = np.random.default_rng(3).standard_normal((1, 40, 32)).astype(np.float32)
    for engine in ("native", "onnxruntime", "reference"):
        stream = model.stream(engine)
        made = [stream.push(signal[:, at : at + 4])["masked"] for at in range(0, 40, 4)]
        kept = [array.copy() for array in made]
        stream.push(signal)
        stream.flush()
        for array, copy in zip(made, kept, strict=True):
            np.testing.assert_array_equal(array, copy)


def test_readme_lists_every_command() -> None:
    listed = re.findall(r"^\| `pulse (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(set(listed)) == sorted(COMMANDS)


def drive(path: Path, signal: np.ndarray) -> np.ndarray:
    """The one output for one streaming input, by the numbered steps of docs/format.md and nothing else."""
    session = ort.InferenceSession(str(path))
    manifest = json.loads(session.get_modelmeta().custom_metadata_map["pulse.manifest"])
    (source,), (output,), width = manifest["inputs"], manifest["outputs"], manifest["pulse"]
    states = {s["input"]: np.zeros(s["shape"], tensor_dtype_to_np_dtype(s["dtype"])) for s in manifest["states"]}
    names = [output["name"]] + [s["output"] for s in manifest["states"]]
    step, axis = int(width * Fraction(source["rate"])), source["axis"]
    frames = int(signal.shape[axis] / Fraction(source["rate"]))
    wanted = eval(output["length"], {"S": frames, "max": max})
    blocks, given, at = [], 0, 0
    while given < output["delay"] + wanted:
        block = signal.take(range(at * step, min((at + 1) * step, signal.shape[axis])), axis)
        rest = [(0, step - block.shape[axis] if i == axis else 0) for i in range(block.ndim)]
        feeds = {source["name"]: np.pad(block, rest)} | states
        if manifest["length"]:
            feeds[manifest["length"]] = np.array(0 if (at + 1) * width <= frames else frames or -1)
        made, *kept = session.run(names, feeds)
        states = dict(zip(states, kept, strict=True))
        blocks.append(made)
        given += made.shape[output["axis"]]
        at += 1
    return np.concatenate(blocks, output["axis"]).take(range(output["delay"], output["delay"] + wanted), output["axis"])


@pytest.mark.parametrize(
    ("name", "width", "shape"),
    [("unet", 8, (1, 1, 208)), ("lookahead", 4, (1, 51, 32)), ("fsmn", 3, (1, 40, 40)), ("fsmn", 4, (1, 1, 40))],
)
def test_format_page_drives_a_model(tmp_path: Path, name: str, width: int, shape: tuple[int, ...]) -> None:
    source = ROOT / "models" / f"{name}.onnx"
    model = pulse.convert(source, pulse=width)
    model.save(tmp_path / "pulsed.onnx")
    signal = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    session = ort.InferenceSession(str(source))
    (full,) = session.run(None, {session.get_inputs()[0].name: signal})
    found = drive(tmp_path / "pulsed.onnx", signal)
    assert found.shape == full.shape
    np.testing.assert_allclose(found, full, atol=1e-5 * np.abs(full).max())
