"""Seeded random input for a model: `python examples/make_input.py MODEL.onnx OUT.npz FRAMES`.

Every input of the full-signal MODEL gets an array under its name. The symbolic dim that is the signal becomes FRAMES,
batch dims become 1. Needs numpy and onnx only.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError

BATCH_NAMES = ("batch", "batch_size", "n", "b")


def signal_symbol(graph: onnx.GraphProto) -> str:
    """The one symbolic dim of the inputs that is no batch dim; ValueError where there are several or none."""
    named = {dim.dim_param for value in real_inputs(graph) for dim in value.type.tensor_type.shape.dim if dim.dim_param}
    found = sorted(name for name in named if name.lower() not in BATCH_NAMES)
    if len(found) != 1:
        raise ValueError(f"required: one symbolic signal dim among the inputs, found: {found or 'none'}")
    return found[0]


def real_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Inputs that are not initialisers (old exporters list those too)."""
    held = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in held]


def make_input(path: Path, frames: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Arrays by input name for the model at `path`, standard normal (integers: 0 or 1)."""
    graph = onnx.load(path, load_external_data=False).graph
    symbol, rng = signal_symbol(graph), np.random.default_rng(seed)
    made: dict[str, np.ndarray] = {}
    for value in real_inputs(graph):
        kind = value.type.tensor_type
        dims = [frames if d.dim_param == symbol else 1 if d.dim_param else d.dim_value or 1 for d in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        floating = np.issubdtype(dtype, np.floating)
        made[value.name] = (rng.standard_normal(dims) if floating else rng.integers(0, 2, dims)).astype(dtype)
    return made


def main(args: list[str]) -> int:
    if len(args) != 3 or not args[2].isdecimal() or int(args[2]) < 1:
        print("usage: python examples/make_input.py MODEL.onnx OUT.npz FRAMES", file=sys.stderr)
        return 2
    try:
        made = make_input(Path(args[0]), int(args[2]))
        with open(args[1], "wb") as file:  # a handle, so that savez adds no suffix of its own
            np.savez(file, **made)
    except (OSError, ValueError, DecodeError) as error:
        print(f"cannot make {args[1]} for {args[0]}: {error}", file=sys.stderr)
        return 2
    print(f"{args[1]}: " + ", ".join(f"{name} {list(value.shape)}" for name, value in made.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
