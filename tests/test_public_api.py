"""The public names and their signatures. What is pinned here changes only on purpose."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pulse
from pulse.manifest import Port, StatePort

NAMES = {"PulseError", "PulseWarning", "PulsedModel", "Stream", "convert", "load"}
SIGNATURES: dict[str, list[str]] = {
    "convert": [
        "source",
        "pulse='dynamic'",
        "*",
        "inputs=None",
        "outputs=None",
        "length_multiple_of=None",
        "hints=None",
    ],
    "load": ["source", "hints=None"],
    "PulsedModel.save": ["self", "path", "flat=False"],
    "PulsedModel.flat": ["self"],
    "PulsedModel.stream": ["self", "engine=None", "**options"],
    "Stream.push": ["self", "data", "*", "raw=False"],
    "Stream.flush": ["self"],
    "Stream.step": ["self", "inputs", "outputs"],
    "Stream.reset": ["self"],
    "Stream.snapshot": ["self"],
    "Stream.restore": ["self", "snapshot"],
    "PulseError.as_dict": ["self"],
}


def shown(function: Any) -> list[str]:
    """The parameters of a function, without their types."""
    parts = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        name = f"**{parameter.name}" if parameter.kind is parameter.VAR_KEYWORD else parameter.name
        parts.append(name if parameter.default is parameter.empty else f"{name}={parameter.default!r}")
    return parts


def test_names() -> None:
    assert set(pulse.__all__) == NAMES
    assert all(getattr(pulse, name) is not None for name in NAMES)
    assert pulse.__version__.count(".") == 2
    with pytest.raises(AttributeError):
        pulse.Model  # noqa: B018


def test_values_print_in_a_line() -> None:
    assert set(dir(pulse)) == NAMES | {"__version__"}
    model = pulse.convert(Path(__file__).resolve().parent.parent / "models" / "lookahead.onnx", pulse=4)
    assert repr(model) == "<PulsedModel of lookahead.onnx, pulse 4: bands [1, 4, 32] -> masked [1, 4, 32] delay 3>"
    assert repr(model.stream("reference")) == "<Stream of lookahead.onnx, pulse 4, engine reference>"


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    found: Any = pulse
    for part in name.split("."):
        found = getattr(found, part)
    assert shown(found) == SIGNATURES[name]
    assert found.__doc__


def test_attributes() -> None:
    for name in ("inputs", "outputs", "states", "granularity", "symbol", "pulse", "manifest"):
        assert isinstance(getattr(pulse.PulsedModel, name), property), name
    assert {"name", "shape", "axis", "rate", "delay", "dtype", "length"} <= set(Port.__dataclass_fields__)
    assert {"input", "output", "shape", "dtype"} <= set(StatePort.__dataclass_fields__)
    assert isinstance(pulse.Stream.engine, property)


def test_errors() -> None:
    assert not issubclass(pulse.PulseError, ValueError)
    assert issubclass(pulse.PulseWarning, UserWarning)
    error = pulse.PulseError("usage", node="n", required="r", found="f", remedy="m")
    assert error.as_dict() == {"code": "usage", "node": "n", "required": "r", "found": "f", "remedy": "m"}


def test_importing_is_cheap() -> None:
    """Neither onnx nor an engine is imported before something needs it."""
    code = "import sys, pulse; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not {"onnx", "onnxruntime", "scipy", "sounddevice", "click", "rich", "numpy"} & set(done.stdout.split())
