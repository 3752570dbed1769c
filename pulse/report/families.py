"""Where the time of a pulse goes, by family of operators, and which kernels it is spent in."""

from __future__ import annotations

import json
import tempfile
import time
from bisect import bisect_right as bisect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulse.report.statistics import median

if TYPE_CHECKING:
    from pulse.report.bench import Bench

CONVOLUTION, RECURRENT, LINEAR = "convolution", "recurrent", "linear"
NORMALISATION, ELEMENTWISE, MOVEMENT, CALL = "normalisation", "elementwise", "data movement", "call"
FAMILIES = (CONVOLUTION, RECURRENT, LINEAR, NORMALISATION, ELEMENTWISE, MOVEMENT, CALL)

_OPS = {
    CONVOLUTION: "Conv FusedConv ConvTranspose MaxPool AveragePool GlobalAveragePool ConvInteger QLinearConv LpPool",
    RECURRENT: "GRU LSTM RNN Scan Loop CumSum",
    LINEAR: "MatMul FusedMatMul Gemm FusedGemm Einsum MatMulInteger QLinearMatMul MatMulIntegerToFloat",
    NORMALISATION: "LayerNormalization BatchNormalization InstanceNormalization GroupNormalization Softmax LogSoftmax "
    "SkipLayerNormalization SimplifiedLayerNormalization ReduceMean ReduceSum ReduceMax ReduceMin ReduceL1 ReduceL2 "
    "ReduceSumSquare ReduceProd ReduceLogSum ReduceLogSumExp ArgMax ArgMin LpNormalization",
    MOVEMENT: "Concat Slice Split Transpose Reshape Squeeze Unsqueeze Pad Gather GatherElements GatherND ScatterND "
    "Expand Tile Flatten Identity Shape Cast Constant ConstantOfShape DepthToSpace SpaceToDepth Resize Range "
    "ReorderInput ReorderOutput MemcpyToHost MemcpyFromHost",
}
_FAMILY = {op: family for family, ops in _OPS.items() for op in ops.split()}
MOST_PULSES = 200


def family(op: str) -> str:
    """The family of an operator type; what computes element by element is the rest."""
    return _FAMILY.get(op, ELEMENTWISE)


@dataclass(frozen=True)
class Insight:
    """What an engine tells about a pulse.

    Attributes:
        families: share of the time of a pulse per family, 1 in all; "call" is what lies between and around operators.
        kernels: name of the kernel per product, empty where the engine does not tell.
        product_us: microseconds per pulse of each of these products, where known.
    """

    families: dict[str, float]
    kernels: dict[str, str] = field(default_factory=dict)
    product_us: dict[str, float] = field(default_factory=dict)


def insight(bench: Bench, seconds: float) -> Insight | None:
    """What the bench's engine tells after runs of about twice that long, None if it tells nothing."""
    if bench.stream.engine == "native":
        from pulse.report.native import native_insight

        return native_insight(bench, seconds)
    return onnxruntime_insight(bench, seconds) if bench.stream.engine == "onnxruntime" else None


def onnxruntime_insight(bench: Bench, seconds: float) -> Insight | None:
    """Shares by ONNX Runtime's own profile, in a session of its own.

    The profile slows down what lies between the operators: how much of a step that is comes from runs without it.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder) / "profile")
        try:
            session = onnxruntime.InferenceSession(
                bench.model.proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception:  # onnxruntime's own exception types: a fusion that rejects the graph
            return None
        feeds = bench.feeds()
        end = time.perf_counter() + seconds
        for _ in range(MOST_PULSES):
            session.run(None, feeds)
            if time.perf_counter() > end:
                break
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    return shares(per_run(events), *_timed(bench, seconds))


def _timed(bench: Bench, seconds: float) -> tuple[float, float]:
    """Microseconds of the engine's run without a profile, and of a whole step."""
    from pulse.engine.ort import OnnxRuntimeEngine

    inner: list[float] = []
    whole: list[float] = []
    feeds, engine = bench.feeds(), OnnxRuntimeEngine(bench.model.proto)
    end = time.perf_counter() + seconds
    while len(whole) < 5 or (len(whole) < MOST_PULSES and time.perf_counter() < end):
        whole.append(bench.step())
        start = time.perf_counter_ns()
        engine.run(feeds)
        inner.append((time.perf_counter_ns() - start) / 1e3)
    return median(inner), median(whole)


def per_run(events: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Microseconds per family in one run, the middle of all runs, from ONNX Runtime's profile."""
    runs = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["name"] == "model_run")
    spent: list[dict[str, float]] = [defaultdict(float) for _ in runs]
    for event in events:
        if event["cat"] == "Node" and event["name"].endswith("_kernel_time"):
            index = bisect(runs, event["ts"], key=lambda run: run[0]) - 1
            # whole microseconds, cut off: half of one is missing on average
            spent[index][family(event["args"]["op_name"])] += event["dur"] + 0.5
    seen = [name for name in FAMILIES if any(name in run for run in spent)]
    return {name: median([run.get(name, 0.0) for run in spent]) for name in seen}


def shares(spent: Mapping[str, float], run_us: float, step_us: float) -> Insight | None:
    """Shares of a step: the operators', at most the run they are in, and as "call" what is left."""
    inside = sum(spent.values())
    if not inside:
        return None
    scale = min(run_us / inside, 1.0) / max(step_us, run_us)
    found = {name: us * scale for name, us in spent.items() if us}
    return Insight(found | {CALL: max(1 - sum(found.values()), 0.0)})
