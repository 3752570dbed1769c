"""Does silence slow a stream down? Denormals would: a net without biases fades towards zero after speech.

    python benchmarks/silence.py [MODEL.onnx ...] [--pulse 1]

Takes the biases out of each model (by default those of `models/` with a state that fades), feeds noise as loud as
speech, then 10 s of silence in frames of 10 ms, over and over on one core; prints microseconds per pulse of both, their
ratio and how many denormals there are in the outputs and the state of the last silence.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from statistics import median

import numpy as np
import onnx
from onnx import numpy_helper

import pulse

MODELS = ("enc", "lookahead", "fsmn", "kws_tcn", "unet")
BIAS = {"Conv": 2, "ConvTranspose": 2, "Gemm": 2, "GRU": 3, "LSTM": 3, "RNN": 3}  # which input it is
SILENCE, LOUD, ROUNDS = 1000, 1000, 20


def without_biases(path: Path) -> onnx.ModelProto:
    """The model with zeros for the biases of its convolutions, products and recurrences."""
    model = onnx.load(path)
    named = {n.input[BIAS[n.op_type]] for n in model.graph.node if len(n.input) > BIAS.get(n.op_type, 99)}
    for tensor in model.graph.initializer:
        if tensor.name in named:
            tensor.CopyFrom(numpy_helper.from_array(np.zeros_like(numpy_helper.to_array(tensor)), tensor.name))
    return model


def denormals(arrays: list[np.ndarray]) -> int:
    """How many values lie between zero and the smallest normal number."""
    floats = [np.abs(a) for a in arrays if a.dtype == np.float32]
    return int(sum(((a > 0) & (a < np.finfo(np.float32).tiny)).sum() for a in floats))


def measure(model: pulse.PulsedModel) -> tuple[float, float, int]:
    """Microseconds per pulse in noise and in the second half of the silence, medians; denormals."""
    random = np.random.default_rng(0)
    inputs = {p.name: np.zeros([int(d) for d in p.shape], np.float32) for p in model.inputs}
    outputs = {p.name: np.empty([int(d) for d in p.shape], np.float32) for p in model.outputs}
    stream = model.stream(engine="native")
    loud, quiet = [], []
    for _ in range(ROUNDS):
        for times, pulses, scale in ((loud, LOUD, 1.0), (quiet, SILENCE, 0.0)):
            for array in inputs.values():
                array[...] = scale * random.standard_normal(array.shape)
            for index in range(pulses // int(model.pulse)):
                start = time.perf_counter_ns()
                stream.step(inputs, outputs)
                if index >= pulses // int(model.pulse) // 2:
                    times.append((time.perf_counter_ns() - start) / 1e3)
    return median(loud), median(quiet), denormals([*outputs.values(), *stream.snapshot().states.values()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--pulse", type=int, default=1, help="in granules of the model")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    folder = Path(__file__).resolve().parents[1] / "models"
    print(f"{'model':20} {'noise us':>9} {'silence us':>11} {'ratio':>6} {'denormals':>10}")
    for path in args.models or [folder / f"{name}.onnx" for name in MODELS]:
        proto = without_biases(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            width = args.pulse * pulse.convert(proto, "dynamic").granularity
            loud, quiet, found = measure(pulse.convert(proto, width))
        print(f"{path.stem:20} {loud:9.2f} {quiet:11.2f} {quiet / loud:6.3f} {found:10}")


if __name__ == "__main__":
    main()
