"""Our native engine beside tract (fixed pulse) and ONNX Runtime (our flat artefact, IO binding, ping-pong state).

    python benchmarks/peers.py                          # the published models beside the repository
    python benchmarks/peers.py MODEL.onnx --pulses 1,8 --paced 300

Samples of all engines are interleaved on one core, whole Python calls: microseconds per source frame, median and
minimum, our share of the limit (`pulse/engine/native/limit.py`), how far the slowest calls lie above the median (other
work on the machine shows there: `chrt -f 1` keeps it off), ratios of medians and their geometric means. With --paced
one pulse every 10 ms times its width, the process asleep between, each engine for some seconds by itself; `bf16` is
`step` on weights in half the bytes, with --bf16 also back to back.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np
import onnx

import pulse
from pulse.engine.isa import cpu_name, current
from pulse.engine.native.compile import NativeModel
from pulse.engine.native.engine import NativeEngine
from pulse.engine.native.limit import limit_us
from pulse.engine.native.net import build

PUBLISHED = (
    "dfn2/enc", "dfn2/erb_dec", "dfn2/df_dec", "dfn3/enc", "firered/stream_vad", "nsnet2/nsnet2_20ms",
)  # fmt: skip
BATCH_US = 3000.0  # how long an engine runs before the next one has its turn
FRAME_MS = 10.0
PACED_TURNS = 4
Call = Callable[[], object]


@dataclass
class Row:
    """One model at one width: microseconds per source frame of every call, by engine."""

    model: str
    pulse: int
    limit: float
    times: dict[str, list[float]] = field(default_factory=dict)

    def ratio(self, ours: str, peer: str) -> float | None:
        return median(self.times[ours]) / median(self.times[peer]) if peer in self.times else None


def ours(model: pulse.PulsedModel, feeds: dict[str, np.ndarray]) -> dict[str, Call]:
    """`step` into bound arrays, `push` with fresh ones, `step` on bf16 weights."""
    stepped, pushed = model.stream(engine="native"), model.stream(engine="native")
    halved = model.stream(engine="native", weights="bf16")
    outputs = {p.name: np.empty([int(d) for d in p.shape], np.float32) for p in model.outputs}
    return {
        "step": lambda: stepped.step(feeds, outputs),
        "push": lambda: pushed.push(feeds),
        "bf16": lambda: halved.step(feeds, outputs),
    }


def onnxruntime(model: pulse.PulsedModel, feeds: dict[str, np.ndarray]) -> Call:
    """The flat artefact, every value bound: one pulse reads one set of states and writes the other."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(model.flat().SerializeToString(), options, providers=["CPUExecutionProvider"])
    value = ort.OrtValue.ortvalue_from_numpy
    kinds = {1: np.float32, 7: np.int64}
    states = [{s.input: value(np.zeros(s.shape, kinds[s.dtype])) for s in model.states} for _ in range(2)]
    given = {name: value(array) for name, array in feeds.items()}
    if model.info.length:
        given[model.info.length] = value(np.array(0, np.int64))
    made = {p.name: value(np.zeros([int(d) for d in p.shape], np.float32)) for p in model.outputs}
    bindings = []
    for before, after in ((0, 1), (1, 0)):
        binding = session.io_binding()
        for name, array in {**given, **states[before]}.items():
            binding.bind_ortvalue_input(name, array)
        for name, array in made.items():
            binding.bind_ortvalue_output(name, array)
        for state in model.states:
            binding.bind_ortvalue_output(state.output, states[after][state.input])
        bindings.append(binding)
    turn = [0]

    def call() -> None:
        turn[0] ^= 1
        session.run_with_iobinding(bindings[turn[0]])

    return call


def tract(path: Path, model: pulse.PulsedModel, width: int, feeds: dict[str, np.ndarray]) -> Call | None:
    """The source pulsed by tract itself, its outputs left in its own memory; None where it cannot."""
    try:
        import tract as peer
    except ImportError:
        print("  tract: not installed (pip install tract)", file=sys.stderr)
        return None
    try:
        with tempfile.TemporaryDirectory() as folder:
            net = peer.onnx().load(str(without_shapes(path, model, Path(folder))))
        order = []
        for i in range(net.input_count()):
            port = next(p for p in model.inputs if p.name == net.input_name(i))
            dims = ["S" if axis == port.axis else str(d) for axis, d in enumerate(port.shape)]
            net.set_input_fact(i, ",".join([*dims, "f32"]))
            order.append(port.name)
        typed = net.into_model()
        typed.transform(peer.Pulse(width, symbol="S"))
        state = typed.into_runnable().spawn_state()
        arrays = [feeds[name] for name in order]
        state.run(arrays)
    except Exception as error:  # tract's one exception type, or a panic turned into it
        print(f"  tract: {str(error).splitlines()[0][:100]}", file=sys.stderr)
        return None
    return lambda: state.run(arrays)


def without_shapes(path: Path, model: pulse.PulsedModel, folder: Path) -> Path:
    """A copy of the source: only outputs that stream, and no declared shapes, which tract would take for true."""
    proto = onnx.load(path)
    kept = {p.name for p in model.outputs}
    for value in [o for o in proto.graph.output if o.name not in kept]:
        proto.graph.output.remove(value)
    for value in proto.graph.output:
        value.type.tensor_type.ClearField("shape")
    del proto.graph.value_info[:]
    onnx.save(proto, folder / path.name)
    return folder / path.name


def engines(path: Path, width: int) -> tuple[Row, dict[str, Call]]:
    """What to run for a model at a width; the keys name the engines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pulse.convert(path, width)
    random = np.random.default_rng(0)
    feeds = {p.name: random.standard_normal([int(d) for d in p.shape]).astype(np.float32) for p in model.inputs}
    isa = current()
    name = f"{path.parent.name}/{path.stem}"
    row = Row(name, width, limit_us(build(model.proto, model.info, width), isa) / width)
    calls: dict[str, Call] = ours(model, feeds)
    found = tract(path, model, width, feeds)
    if found:
        calls["tract"] = found
    calls["onnxruntime"] = onnxruntime(model, feeds)
    return row, calls


def hot(row: Row, calls: dict[str, Call], seconds: float) -> None:
    """Interleaved batches, back to back."""
    counts = {}
    for name, call in calls.items():
        row.times[name] = []
        counts[name] = max(1, int(BATCH_US / max(time_one(call, 20), 1.0)))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in calls.items():
            call()
            for _ in range(counts[name]):
                start = time.perf_counter_ns()
                call()
                row.times[name].append((time.perf_counter_ns() - start) / 1e3 / row.pulse)


def time_one(call: Call, rounds: int) -> float:
    """Microseconds of one call, the least of some."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter_ns()
        call()
        best = min(best, (time.perf_counter_ns() - start) / 1e3)
    return best


def paced(row: Row, calls: dict[str, Call], pulses: int) -> None:
    """One pulse every 10 ms times its width, in turns of a few seconds per engine; microseconds per frame."""
    row.times.update({name: [] for name in calls})
    for _ in range(PACED_TURNS):
        for name, call in calls.items():
            due, times = time.perf_counter(), []
            for _ in range(pulses // PACED_TURNS + 3):
                due += row.pulse * FRAME_MS / 1e3
                time.sleep(max(due - time.perf_counter(), 0))
                start = time.perf_counter_ns()
                call()
                times.append((time.perf_counter_ns() - start) / 1e3 / row.pulse)
            row.times[name] += times[3:]


def without_huge_pages(path: Path, width: int) -> Call:
    """`step` on memory that is not advised into huge pages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pulse.convert(path, width)
    engine = NativeEngine(NativeModel(model.proto, model.info, huge=False))
    random = np.random.default_rng(0)
    feeds = {p.name: random.standard_normal([int(d) for d in p.shape]).astype(np.float32) for p in model.inputs}
    outputs = {p.name: np.empty([int(d) for d in p.shape], np.float32) for p in model.outputs}
    runner, _ = engine.bind(feeds, outputs)
    return lambda: runner.run_on(feeds, outputs, 0)


def table(rows: Sequence[Row], title: str) -> str:
    """Medians and minima per frame, ratios to the peers, our share of the limit."""
    names = list(dict.fromkeys(n for r in rows for n in r.times))
    lines = [title, f"{'model':22} {'P':>3} " + "".join(f"{n:>22}" for n in names) + f"{'limit':>8}{'x limit':>9}"]
    for r in rows:
        cells = [f"{median(r.times[n]):9.2f} ({min(r.times[n]):9.2f})" if n in r.times else "-" for n in names]
        share = median(r.times["step"]) / r.limit
        lines.append(f"{r.model:22} {r.pulse:>3} " + "".join(f"{c:>22}" for c in cells) + f"{r.limit:8.2f}{share:9.2f}")
    lines.append("99 % and 99.9 % of the calls took at most this many times the median")
    for r in rows:
        cells = ["/".join(f"{np.quantile(t, q) / median(t):.2f}" for q in (0.99, 0.999)) for t in r.times.values()]
        lines.append(f"{r.model:22} {r.pulse:>3} " + "".join(f"{c:>22}" for c in cells))
    if found := [over(r) for r in rows if "onnxruntime" in r.times]:
        means = " / ".join(f"{geometric_mean(part):.3f}" for part in zip(*found, strict=True))
        lines.append(f"these ratios of step over those of onnxruntime, geometric means: {means}")
    lines.append("geometric means of ratios of medians")
    for width in dict.fromkeys(r.pulse for r in rows):
        parts = []
        for mine in ("step", "push"):
            for peer in ("tract", "onnxruntime"):
                found = [r.ratio(mine, peer) for r in rows if r.pulse == width and mine in r.times]
                known = [f for f in found if f is not None]
                if known:
                    parts.append(f"{mine}/{peer} {geometric_mean(known):.3f} (worst {max(known):.3f})")
        lines.append(f"  P={width}: " + "  ".join(parts))
    return "\n".join(lines)


def over(row: Row) -> tuple[float, float]:
    """How much further above its median `step` lies at 99 % and 99.9 % than ONNX Runtime does."""
    ours, peer = row.times["step"], row.times["onnxruntime"]
    p99, p999 = (float(np.quantile(ours, q) / np.quantile(peer, q)) for q in (0.99, 0.999))
    return p99 * median(peer) / median(ours), p999 * median(peer) / median(ours)


def as_json(rows: Sequence[Row]) -> list[dict[str, object]]:
    return [
        {
            "model": r.model,
            "pulse": r.pulse,
            "limit_us": r.limit,
            "us_per_frame": {n: {"median": median(t), "min": min(t), "p99": float(np.quantile(t, 0.99)),
                                 "p999": float(np.quantile(t, 0.999))} for n, t in r.times.items()},
        }
        for r in rows
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, help="source models; by default the published ones")
    parser.add_argument("--pulses", default="1,2,4,8,16")
    parser.add_argument("--seconds", type=float, default=2.0, help="per model and width")
    parser.add_argument("--paced", type=int, metavar="PULSES", help="also paced, so many pulses each")
    parser.add_argument("--bf16", action="store_true", help="bf16 weights back to back as well")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    shared = Path(os.environ.get("PULSE_SHARED", Path(__file__).resolve().parents[1].parent / "shared"))
    paths = args.models or [shared / "models" / f"{name}.onnx" for name in PUBLISHED]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"{cpu_name()}, {current()}, one thread, microseconds per source frame: median (minimum)", file=sys.stderr)
    back, spaced = [], []
    for path in paths:
        for width in (int(w) for w in args.pulses.split(",")):
            row, calls = engines(path, width)
            hot(row, {n: call for n, call in calls.items() if n != "bf16" or args.bf16}, args.seconds)
            back.append(row)
            print(f"  {row.model} P={width} done", file=sys.stderr)
            if args.paced:
                cold = Row(row.model, width, row.limit)
                del calls["push"]
                calls["no huge pages"] = without_huge_pages(path, width)
                paced(cold, calls, args.paced)
                spaced.append(cold)
    if args.json:
        print(json.dumps({"cpu": cpu_name(), "isa": current(), "hot": as_json(back), "paced": as_json(spaced)}))
        return
    print(table(back, "back to back"))
    if spaced:
        print(table(spaced, f"paced: one pulse every {FRAME_MS:.0f} ms x P"))


if __name__ == "__main__":
    main()
