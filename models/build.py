"""Writes the example models: `python models/build.py [NAME ...]`, all of them without a name."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import onnx

HERE = Path(__file__).resolve().parent
NAMES = ("enc", "kws_tcn", "unet", "fsmn", "lookahead", "spectral_gate")


def build(name: str) -> onnx.ModelProto:
    """The model `name`, built from its seeds; the same bytes every time."""
    if str(HERE.parent) not in sys.path:
        sys.path.insert(0, str(HERE.parent))
    model: onnx.ModelProto = importlib.import_module(f"models.{name}").build()
    return model


def serialise(model: onnx.ModelProto) -> bytes:
    return bytes(model.SerializeToString(deterministic=True))


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        print(f"no such model: {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    for name in names or NAMES:
        path = HERE / f"{name}.onnx"
        path.write_bytes(serialise(build(name)))
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
