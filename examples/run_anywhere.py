"""Drives a pulsed model without pulse: `python examples/run_anywhere.py MODEL.onnx IN.npz OUT.npz [PULSE]`.

IN.npz holds an array per input of MODEL, with the whole signal; OUT.npz gets the whole output. PULSE, for a model
converted with `--pulse dynamic`, is the number of source frames per call. `drive` knows nothing of ONNX Runtime: any
runtime that takes the file will do. See docs/format.md. Needs numpy and onnxruntime only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime

Arrays = dict[str, np.ndarray]
DTYPES = {1: "f4", 2: "u1", 3: "i1", 5: "i2", 6: "i4", 7: "i8", 9: "?", 10: "f2", 11: "f8"}  # by ONNX element type


def open_model(path: str) -> tuple[dict[str, Any], Callable[[Arrays], Arrays]]:
    """The manifest of a pulsed file and a function that runs one pulse."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    manifest = json.loads(session.get_modelmeta().custom_metadata_map["pulse.manifest"])
    if manifest["version"] > 1:
        raise ValueError(f"its manifest is of version {manifest['version']}, this program knows version 1")
    names = [output.name for output in session.get_outputs()]
    return manifest, lambda feeds: dict(zip(names, session.run(None, feeds), strict=True))


def drive(
    manifest: dict[str, Any], run: Callable[[Arrays], Arrays], signal: Arrays, pulse: int | None = None
) -> Arrays:
    """The outputs for a whole signal, as the full-signal model gives them.

    `signal` has an array per input of the model, `pulse` is the width of a call where the model leaves it open.
    """
    width = pulse or manifest["granularity"] if manifest["pulse"] == "dynamic" else manifest["pulse"]
    moving = [port for port in manifest["inputs"] if port["axis"] is not None]
    outputs = manifest["outputs"]
    num, den = rate(moving[0])
    frames = signal[moving[0]["name"]].shape[moving[0]["axis"]] * den // num
    wanted = {port["name"]: number_of_frames(port["length"], frames) for port in outputs}

    feeds = {port["name"]: signal[port["name"]] for port in manifest["inputs"]}
    states = {s["input"]: np.zeros(s["shape"], DTYPES[s["dtype"]]) for s in manifest["states"]}
    blocks: dict[str, list[np.ndarray]] = {port["name"]: [] for port in outputs}
    given = dict.fromkeys(blocks, 0)
    position = 0
    while any(given[port["name"]] < port["delay"] + wanted[port["name"]] for port in outputs):
        for port in moving:
            feeds[port["name"]] = block(signal[port["name"]], port, position, width)
        if manifest["length"]:
            ended = position + width > frames
            feeds[manifest["length"]] = np.array((frames or -1) if ended else 0, np.int64)
        made = run(feeds | states)
        states = {s["input"]: made[s["output"]] for s in manifest["states"]}
        for port in outputs:
            blocks[port["name"]].append(made[port["name"]])
            given[port["name"]] += made[port["name"]].shape[port["axis"]]
        position += width

    whole = {}
    for port in outputs:
        name, axis, first = port["name"], port["axis"], port["delay"]
        shape = [0 if i == axis else dim for i, dim in enumerate(port["shape"])]
        joined = np.concatenate([np.zeros(shape, DTYPES[port["dtype"]]), *blocks[name]], axis)
        whole[name] = joined.take(range(first, first + wanted[name]), axis) if wanted[name] else joined[:0]
    return whole


def rate(port: dict[str, Any]) -> tuple[int, int]:
    """Frames of a port per source frame, as a fraction."""
    num, den = port["rate"].split("/")
    return int(num), int(den)


def block(array: np.ndarray, port: dict[str, Any], position: int, width: int) -> np.ndarray:
    """The frames of an input for the source frames from `position` on, filled up with zeros past the end."""
    num, den = rate(port)
    axis, first, count = port["axis"], position * num // den, width * num // den
    last = max(min(first + count, array.shape[axis]), first)
    present = array.take(range(first, last), axis)
    return np.pad(present, [(0, count - last + first if i == axis else 0) for i in range(array.ndim)])


def number_of_frames(text: str, frames: int) -> int:
    """How many frames an output has for so many source frames, by its expression in S."""
    if not set(text) <= set("0123456789S+-*/(), max"):
        raise ValueError(f"`{text}` is no length")
    return int(eval(text, {"__builtins__": {}}, {"S": frames, "max": max}))


def main(args: list[str]) -> int:
    if len(args) not in (3, 4) or not all(a.isdecimal() and int(a) > 0 for a in args[3:]):
        print("usage: python examples/run_anywhere.py MODEL.onnx IN.npz OUT.npz [PULSE]", file=sys.stderr)
        return 2
    try:
        manifest, run = open_model(args[0])
        with np.load(args[1]) as signal:
            made = drive(manifest, run, dict(signal), *map(int, args[3:]))
        with open(args[2], "wb") as file:
            np.savez(file, **made)
    except Exception as error:  # ONNX Runtime has exception types of its own
        print(f"cannot run {args[0]} on {args[1]}: {error or type(error).__name__}", file=sys.stderr)
        return 2
    print(f"{args[2]}: " + ", ".join(f"{name} {list(value.shape)}" for name, value in made.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
