"""The one oracle of every streaming test: the stream against the full-signal model.

`assert_streams` checks, for every chunking, that the stream's output with its tail is what the full-signal model gives,
that frames leave on schedule and that the declared delays are the least possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx.reference import ReferenceEvaluator

import pulse

Arrays = dict[str, np.ndarray]
KINDS = {
    "tensor(float)": "f4",
    "tensor(double)": "f8",
    "tensor(int64)": "i8",
    "tensor(int32)": "i4",
    "tensor(bool)": "?",
}


class Full:
    """A full-signal model in ONNX Runtime: one thread, optimisations off (some fusions reject valid graphs)."""

    def __init__(self, model: onnx.ModelProto) -> None:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        self.model = model
        self.session = ort.InferenceSession(model.SerializeToString(), options)
        self.dtypes = {i.name: KINDS[i.type] for i in self.session.get_inputs()}

    def __call__(self, feeds: Mapping[str, np.ndarray]) -> Arrays:
        names = [o.name for o in self.session.get_outputs()]
        return dict(zip(names, self.session.run(None, dict(feeds)), strict=True))

    def reference(self, feeds: Mapping[str, np.ndarray]) -> Arrays | None:
        """The same by onnx.reference, None where it cannot."""
        try:
            evaluator = ReferenceEvaluator(self.model)
            with np.errstate(all="ignore"):
                return dict(zip(evaluator.output_names, evaluator.run(None, dict(feeds)), strict=True))
        except Exception:  # its ops raise whatever numpy raises
            return None


@dataclass(frozen=True)
class Case:
    """A pulsed model with what is needed to feed it and its source."""

    full: Full
    pulsed: Any  # pulse.PulsedModel

    def signal(self, length: int, rng: np.random.Generator, scale: float = 1.0) -> Arrays:
        """Random streaming inputs for `length` source frames."""
        return {i.name: self._array(i, _frames(i.rate, length), rng, scale) for i in self.streaming}

    def sides(self, rng: np.random.Generator) -> Arrays:
        """Random inputs that have no stream axis."""
        return {i.name: self._array(i, 0, rng, 1.0) for i in self.pulsed.inputs if i.axis is None}

    @property
    def streaming(self) -> list[Any]:
        return [i for i in self.pulsed.inputs if i.axis is not None]

    def filler(self, engine: str) -> float:
        """Frames past the end, of which nothing may show: NaN, but where it is an index, times 0, or not understood."""
        nodes = self.full.model.graph.node
        casts = any(n.op_type == "Cast" and n.attribute[0].i == onnx.TensorProto.INT64 for n in nodes)
        unfit = casts or any(n.op_type == "Resize" or (n.op_type, engine) == ("MaxPool", "reference") for n in nodes)
        floating = all(self.full.dtypes[i.name][0] == "f" for i in self.streaming)
        return np.nan if floating and not unfit else 1e3

    def _array(self, port: Any, frames: int, rng: np.random.Generator, scale: float) -> np.ndarray:
        shape = [frames if axis == port.axis else int(dim) for axis, dim in enumerate(port.shape)]
        array = scale * rng.standard_normal(shape)
        dtype = self.full.dtypes[port.name]
        return (array * 3).astype(dtype) if dtype[0] in "i?" else array.astype(dtype)

    def cut(self, feeds: Mapping[str, np.ndarray], start: int, stop: int) -> Arrays:
        """Source frames [start, stop) of the streaming inputs."""
        return {
            i.name: _take(feeds[i.name], i.axis, _frames(i.rate, start), _frames(i.rate, stop)) for i in self.streaming
        }


def _frames(rate: Fraction, n: int) -> int:
    return int(rate * n)


def _take(array: np.ndarray, axis: int, start: int, stop: int | None = None) -> np.ndarray:
    return array[(slice(None),) * axis + (slice(start, stop),)]


def chunkings(length: int, rng: np.random.Generator, count: int) -> list[list[int]]:
    """`count` ways to cut a signal: all at once, frame by frame, then random ones, empty chunks among them."""
    ways = [[length], [1] * length]
    while len(ways) < count:
        largest = int(rng.choice([2, 5, 12, 40]))
        chunks: list[int] = []
        while sum(chunks) < length:
            chunks.append(int(min(rng.integers(0, largest + 1), length - sum(chunks))))
        ways.append(chunks)
    return ways[:count]


def drive(
    case: Case, stream: Any, feeds: Mapping[str, np.ndarray], sides: Arrays, chunks: Sequence[int], step: int
) -> Arrays:
    """Pushes `feeds` in chunks, checks the schedule after each, flushes; whole outputs.

    `step`: source frames the stream consumes at least at a time.
    """
    parts: dict[str, list[np.ndarray]] = {o.name: [] for o in case.pulsed.outputs}
    got = dict.fromkeys(parts, 0)
    position = 0
    for index, chunk in enumerate(chunks):
        out = stream.push({**case.cut(feeds, position, position + chunk), **(sides if index == 0 else {})})
        position += chunk
        consumed = position // step * step
        for o in case.pulsed.outputs:
            parts[o.name].append(out[o.name])
            got[o.name] += out[o.name].shape[o.axis]
            due = floor(o.rate * consumed) - o.delay
            assert got[o.name] >= due, f"hoarded: {o.name} gave {got[o.name]} of {due} frames due after {position}"
    tail = stream.flush()
    return {o.name: np.concatenate([*parts[o.name], tail[o.name]], o.axis) for o in case.pulsed.outputs}


def compare(want: Arrays, got: Arrays, tol: float, what: str, blur: Arrays | None = None) -> None:
    """Asserts equality of shapes and of values within `tol` of max|want|, plus `blur` where given."""
    for name, g in got.items():
        w = want[name]
        assert g.shape == w.shape, f"{what}: {name} has shape {g.shape}, the full signal {w.shape}"
        assert g.dtype == w.dtype, f"{what}: {name} is {g.dtype}, the full signal {w.dtype}"
        if w.size == 0:
            continue
        wide, gwide = w.astype(np.float64), g.astype(np.float64)
        assert np.isfinite(gwide).all() or not np.isfinite(wide).all(), f"{what}: {name} is not finite"
        error = np.abs(wide - gwide) / max(np.abs(wide).max(), 1e-30)
        allowed = tol if blur is None else tol + blur[name]
        if (error > allowed).any():
            at = np.unravel_index(np.argmax(error - allowed), error.shape)
            raise AssertionError(f"{what}: {name} off by {error[at]:.3g} of max at {tuple(map(int, at))} of {w.shape}")


def blur(full: Full, feeds: Arrays, rng: np.random.Generator, trials: int = 12) -> Arrays:
    """How far the full-signal model itself moves, of max, when its input moves by a rounding error.

    Where rounding meets a step (quantisation, comparisons), no order of sums is the right one.
    """
    base = full(feeds)
    spread = {n: np.zeros(v.shape) for n, v in base.items()}
    for _ in range(trials):
        moved = {n: (v * (1 + 1e-6 * rng.standard_normal(v.shape))).astype(v.dtype) for n, v in feeds.items()}
        for n, v in full(moved).items():
            distance = np.abs(v.astype(np.float64) - base[n]) / max(np.abs(base[n].astype(np.float64)).max(), 1e-30)
            spread[n] = np.maximum(spread[n], distance)
    return {n: 4 * v for n, v in spread.items()}


def assert_streams(
    model: onnx.ModelProto,
    *,
    widths: Sequence[int | str] = (1, 3, "dynamic"),
    lengths: Sequence[int] = (0, 1, 2, 5, 17, 32),
    engines: Sequence[str] = ("onnxruntime",),
    seed: int = 0,
    ways: int = 3,
    tol: float = 1e-5,
    least: bool = True,
    min_length: int = 1,
    multiple: int = 1,
    full: onnx.ModelProto | None = None,
    delays: Mapping[str, int] | None = None,
    **options: Any,
) -> Any:
    """Asserts that `model` streams exactly, on schedule, with the least delay; returns its dynamic form.

    Args:
        model: the full-signal model.
        widths: pulse widths; numbers that are no multiple of the granularity are multiplied by it.
        lengths: signal lengths in source frames, a legal one last. Those which the source cannot take flush without an
            error (less than `min_length`) or are refused at flush (no multiple of `multiple`).
        engines: which engines stream; all are held against ONNX Runtime on the full signal.
        ways: chunkings per length.
        tol: error allowed, relative to max|reference|.
        least: measure the least delay and hold the declared one against it.
        full: the model that gives the reference, if not `model`.
        delays: what each output's delay must be.
        options: for `pulse.convert`.
    """
    reference = Full(full or model)
    rng = np.random.default_rng(seed)
    if multiple > 1:
        options.setdefault("length_multiple_of", multiple)
    dynamic = pulse.convert(model, pulse="dynamic", **options)
    g = dynamic.granularity
    if delays is not None:
        declared = {o.name: o.delay for o in dynamic.outputs if o.name in delays}
        assert declared == dict(delays), f"declared delays {declared}, expected {dict(delays)}"
    for width in dict.fromkeys(w if isinstance(w, str) or w % g == 0 else w * g for w in widths):
        pulsed = dynamic if width == "dynamic" else pulse.convert(model, pulse=width, **options)
        assert {o.name: o.delay for o in pulsed.outputs} == {o.name: o.delay for o in dynamic.outputs}
        case = Case(reference, pulsed)
        step = g if isinstance(width, str) else width
        for engine in engines:
            what = f"pulse {width}, {engine}"
            stream = pulsed.stream(engine=engine, filler=case.filler(engine))
            _assert_equal(case, stream, step, lengths, rng, ways, tol, min_length, multiple, what)
            if pulsed is not dynamic:
                _assert_snapshot(case, stream, dynamic.stream(engine=engine), lengths[-1], rng, tol, what)
    if least:
        assert_least_delay(Case(reference, dynamic), seed=seed, min_length=min_length, multiple=multiple)
    return dynamic


def _assert_equal(
    case: Case, stream: Any, step: int, lengths: Iterable[int], rng: np.random.Generator, ways: int, tol: float,
    min_length: int, multiple: int, what: str,
) -> None:  # fmt: skip
    """One stream over all lengths and chunkings, reset in between, once by way of a snapshot."""
    for length in lengths:
        feeds, sides = case.signal(length, rng), case.sides(rng)
        if length % multiple:
            _assert_illegal(stream, feeds, sides, what)
            continue
        want = case.full({**feeds, **sides}) if length >= max(min_length, 1) else None
        if length == 0 and min_length <= 1:  # or else sums of too short parts may broadcast, which means nothing
            want = case.full.reference({**feeds, **sides})
        for chunks in chunkings(length, rng, ways if length > 1 else 1):
            stream.reset()
            here = f"{what}, {length} frames as {chunks if len(set(chunks)) > 1 else f'{len(chunks)} equal chunks'}"
            got = drive(case, stream, feeds, sides, chunks, step)
            if length == 0:
                frames = {o.name: got[o.name].shape[o.axis] for o in case.pulsed.outputs}
                assert frames == {o.name: o.length.at(0) for o in case.pulsed.outputs}, here
            if want is None:
                continue
            if length == 0:
                assert {n: v.size for n, v in got.items()} == {n: want[n].size for n in got}, here
                continue
            try:
                compare(want, got, tol, here)
            except AssertionError:
                compare(want, got, tol, here, blur(case.full, {**feeds, **sides}, rng))


def _assert_illegal(stream: Any, feeds: Arrays, sides: Arrays, what: str) -> None:
    """A signal of a length that the source cannot take is told so at its end."""
    stream.reset()
    stream.push({**feeds, **sides})
    with pytest.raises(pulse.PulseError) as caught:
        stream.flush()
    assert caught.value.code == "length-illegal", f"{what}: {caught.value}"


def _assert_snapshot(
    case: Case, stream: Any, other: Any, length: int, rng: np.random.Generator, tol: float, what: str
) -> None:
    """A stream restored from a snapshot goes on as if nothing had happened: after a flush, or at any width."""
    feeds, sides = case.signal(length, rng), case.sides(rng)
    at = int(rng.integers(0, length + 1))
    stream.reset()
    first = stream.push({**case.cut(feeds, 0, at), **sides})
    snapshot = stream.snapshot()
    runs = []
    for taker in (stream, stream, other):
        taker.restore(snapshot)
        rest = taker.push(case.cut(feeds, at, length))
        tail = taker.flush()
        runs.append({name: np.concatenate([first[name], rest[name], tail[name]], _axis(case, name)) for name in first})
    for name in first:
        assert np.array_equal(runs[0][name], runs[1][name], equal_nan=True), (
            f"{what}: {name} differs after restore at {at}"
        )
    compare(runs[0], runs[2], tol, f"{what}, restored in a dynamic stream at {at} of {length}")


def _axis(case: Case, output: str) -> int:
    return next(o.axis for o in case.pulsed.outputs if o.name == output)


# ---- least delays


def least_delays(case: Case, *, seed: int = 0, min_length: int = 1, multiple: int = 1) -> dict[str, int]:
    """The least delay each output could have, in its frames, measured on the full-signal model.

    After N source frames, N a multiple of the granularity, a frame may leave if it is the same whatever follows: other
    frames (the future is changed), or fewer (the signal ends at N or later). What a maximum hides on random signals
    stays hidden, so this is a lower bound.
    """
    rng = np.random.default_rng(seed)
    g = case.pulsed.granularity
    unit = lcm(g, multiple)
    start = ceil(min_length / unit) * unit
    # far enough for what is declared: no delay larger than N shows after N frames
    far = start + ceil((max(o.delay / o.rate for o in case.pulsed.outputs) + 4) / unit) * unit
    longest = far + 4 * unit + ceil(24 / unit) * unit
    sides = case.sides(rng)
    least = dict.fromkeys((o.name for o in case.pulsed.outputs), 0)
    early = range(0, start + 2 * g, g)  # where frames wait for the first ones, as those of an edge do
    for n in sorted({*early[-10:], 0, g, far, far + g, far + 2 * unit}):
        known = case.signal(longest, rng)
        base = case.full({**known, **sides})
        same = {o.name: base[o.name].shape[o.axis] for o in case.pulsed.outputs}
        for other in _continuations(case, known, n, longest, min_length, multiple, rng):
            result = case.full({**other, **sides})
            for o in case.pulsed.outputs:
                same[o.name] = min(same[o.name], _agree(base[o.name], result[o.name], o.axis))
        for o in case.pulsed.outputs:
            least[o.name] = max(least[o.name], floor(o.rate * n) - same[o.name])
    return least


def _continuations(
    case: Case, known: Arrays, n: int, longest: int, min_length: int, multiple: int, rng: np.random.Generator
) -> Iterable[Arrays]:
    """Signals which are as `known` up to frame `n`."""
    for scale in (1.0, 1.0, 4.0, 0.1, 4.0, 1.0):
        future = case.signal(longest, rng, scale)
        yield {
            i.name: np.concatenate(
                [
                    _take(known[i.name], i.axis, 0, _frames(i.rate, n)),
                    _take(future[i.name], i.axis, _frames(i.rate, n)),
                ],
                i.axis,
            )
            for i in case.streaming
        }
    first = -(-max(min_length, n, 1) // multiple) * multiple
    for end in range(first, min(first + 3 * multiple, longest), multiple):
        yield case.cut(known, 0, end)


def _agree(a: np.ndarray, b: np.ndarray, axis: int) -> int:
    """Frames at the start that are equal in both."""
    frames = min(a.shape[axis], b.shape[axis])
    first, second = _take(a, axis, 0, frames).astype(np.float64), _take(b, axis, 0, frames).astype(np.float64)
    apart = np.abs(first - second) > 3e-6 * max(np.abs(first).max(initial=0.0), 1e-30)
    changed = np.flatnonzero(apart.any(axis=tuple(i for i in range(a.ndim) if i != axis)))
    return int(changed[0]) if changed.size else frames


def assert_least_delay(case: Case, *, seed: int = 0, min_length: int = 1, multiple: int = 1) -> None:
    """Asserts that no output declares more delay than the least possible."""
    least = least_delays(case, seed=seed, min_length=min_length, multiple=multiple)
    for o in case.pulsed.outputs:
        assert o.delay == least[o.name], f"{o.name} declares delay {o.delay}, the least possible is {least[o.name]}"
