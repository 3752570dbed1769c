"""Is the stream equal to the full-signal model? Random signals, random chunkings, the tail filled with NaN."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from pulse import manifest as mf
from pulse.engine.base import Engine
from pulse.errors import PulseError
from pulse.graph.load import Source, read_model
from pulse.model import PulsedModel, convert, digest_of, is_pulsed, load, refuse_reading
from pulse.streaming.emit import np_type
from pulse.streaming.facts import Stream

TOLERANCE = 1e-4  # of max |reference|; float order alone stays well below


def check(
    source: Source | PulsedModel,
    pulses: Sequence[int | str] | None = None,
    *,
    inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] | None = None,
    length_multiple_of: int | None = None,
    engine: str | None = None,
    seed: int = 0,
    against: Source | None = None,
) -> dict[str, Any]:
    """Compares streams of the given widths (by default 1, 2, 4 and 8 granules, and dynamic) with the whole signal.

    A pulsed model is checked at its own width: a fresh conversion against its source, a pulsed file against the source
    given as `against`, or that of its name in the same folder.

    Returns the JSON form of `pulse check`: `{"ok", "widths": [{"pulse", "ok", "max_error", "first_bad_node"}]}` where
    `max_error` is relative to max |reference|.
    """
    rng = np.random.default_rng
    options = {"inputs": inputs, "outputs": outputs, "length_multiple_of": length_multiple_of}
    if isinstance(source, PulsedModel):
        refuse_reading(source.info.source_name, options)
        _check_asked(source, pulses)
        proto = source.source or _source_of(source, None, against)
        rows = [_check_width(proto, source, engine, rng(seed))]
        return {"ok": rows[0]["ok"], "widths": rows}
    proto, label = read_model(source)
    if is_pulsed(proto):
        pulsed = load(source)
        refuse_reading(label, options)
        _check_asked(pulsed, pulses)
        return check(replace(pulsed, source=_source_of(pulsed, source, against)), engine=engine, seed=seed)
    if against is not None:
        raise PulseError(
            "usage",
            node="--source",
            required="a pulsed model to compare with its source",
            found="a source model",
            remedy="leave --source out: it is compared with itself",
        )
    model = convert(source, "dynamic", **options)  # type: ignore[arg-type]
    widths = list(pulses) if pulses is not None else [model.granularity * w for w in (1, 2, 4, 8)] + ["dynamic"]
    rows = [_check_width(proto, convert(source, w, **options), engine, rng(seed)) for w in widths]  # type: ignore[arg-type]
    return {"ok": all(r["ok"] for r in rows), "widths": rows}


def _check_asked(model: PulsedModel, pulses: Sequence[int | str] | None) -> None:
    if pulses and list(pulses) != [model.pulse]:
        raise PulseError(
            "illegal-pulse",
            node="pulse",
            required=f"{model.pulse}, the width this model was made for",
            found=", ".join(map(str, pulses)),
            remedy="check the source model at the widths wanted",
        )


def _source_of(model: PulsedModel, where: Any, against: Source | None) -> onnx.ModelProto:
    """The source of a pulsed file: the one given, or the file of its name beside it, if it is the same model."""
    name = model.info.source_name
    path = Path(where).parent / name if isinstance(where, (str, os.PathLike)) else None
    place: Source | None = against if against is not None else path if path is not None and path.is_file() else None
    if place is not None:
        proto, name = read_model(place)
        if digest_of(proto) == model.info.source_sha256:
            return proto
    raise PulseError(
        "source-missing",
        node=name,
        required="the source model that this file was made from",
        found="no such file beside it" if place is None else "another model of that name",
        remedy="name the source with --source, or run `pulse check` on it",
    )


def random_inputs(ports: Sequence[mf.Port], frames: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A seeded signal of that many source frames for every input."""
    arrays = {}
    for port in ports:
        shape = [port.frames(frames) if i == port.axis else int(d) for i, d in enumerate(port.shape)]
        kind = np_type(port.dtype)
        if np.issubdtype(kind, np.floating):
            arrays[port.name] = rng.standard_normal(shape).astype(kind)
        else:
            arrays[port.name] = rng.integers(0, 2, shape).astype(kind)
    return arrays


def _check_width(
    proto: onnx.ModelProto, model: PulsedModel, engine: str | None, rng: np.random.Generator
) -> dict[str, Any]:
    step = np.lcm(model.granularity, model.info.length_multiple)
    width = model.granularity if model.pulse == "dynamic" else int(model.pulse)
    delay = max(-(-p.delay * p.rate.denominator // p.rate.numerator) for p in model.outputs)
    frames = int(-(-(delay + 7 * width + 40) // step) * step)
    if model.info.length_multiple == 1:
        frames += 1  # no multiple of the pulse
    arrays = random_inputs(model.inputs, frames, rng)
    names = [p.name for p in model.outputs]
    wanted = _reference(proto, names, arrays)
    found = run_stream(model, arrays, engine, rng)
    worst = max(error(found[n], wanted[n]) for n in names)
    row: dict[str, Any] = {"pulse": model.pulse, "ok": bool(worst <= TOLERANCE), "max_error": worst}
    row["first_bad_node"] = None if row["ok"] else _first_bad(proto, model, arrays, engine)
    return row


def run_stream(
    model: PulsedModel, arrays: Mapping[str, np.ndarray], engine: str | None, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """The stream's whole output over random chunkings, frames past the end filled with NaN."""
    stream = model.stream(engine=engine, filler=np.nan)
    moving = [p for p in model.inputs if p.axis is not None]
    frames = min(arrays[p.name].shape[p.axis or 0] * p.rate.denominator // p.rate.numerator for p in moving)
    parts: dict[str, list[np.ndarray]] = {p.name: [] for p in model.outputs}
    feed = dict(arrays)
    width = model.granularity if model.pulse == "dynamic" else int(model.pulse)
    at = 0
    while at < frames:
        count = int(min(rng.integers(0, 3 * width + 1), frames - at))
        for port in moving:
            index = range(port.frames(at), port.frames(at + count))
            feed[port.name] = np.take(arrays[port.name], index, axis=port.axis)
        for name, block in stream.push(feed).items():
            parts[name].append(block)
        at += count
    for name, block in stream.flush().items():
        parts[name].append(block)
    return {p.name: np.concatenate(parts[p.name], axis=p.axis or 0) for p in model.outputs}


def error(found: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference relative to max |wanted|; infinite where shapes, or what is finite, differ."""
    if found.shape != wanted.shape:
        return float("inf")
    if not wanted.size:
        return 0.0
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(a - b))
    if not np.isfinite(difference).all():
        return float("inf")
    scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    return float(difference.max() / (scale or 1.0))


def _reference(proto: onnx.ModelProto, names: Sequence[str], arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The full-signal model's outputs, by ONNX Runtime without its fusions, or by onnx.reference."""
    engine: Engine
    proto = _exposing(proto, names)
    _fit_inputs(proto, arrays)
    if find_spec("onnxruntime"):
        from pulse.engine.ort import OnnxRuntimeEngine

        engine = OnnxRuntimeEngine(proto, optimise=False)
    else:
        from pulse.engine.reference import ReferenceEngine

        engine = ReferenceEngine(proto)
    fed = {i.name for i in proto.graph.input}
    feeds = {n: a for n, a in arrays.items() if n in fed}
    try:
        return engine.run(feeds)
    except PulseError as problem:
        raise PulseError(
            "invalid-model",
            node=proto.graph.name,
            required=f"a source model that runs on a signal of shape {[list(a.shape) for a in feeds.values()]}",
            found=problem.found,
            remedy="run the source model by itself, or skip the check with --no-check",
        ) from None


def _exposing(proto: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """The model with just these values as outputs, and only what they need."""
    from pulse.graph.ir import Node, captured

    model = onnx.ModelProto()
    model.CopyFrom(proto)
    graph = model.graph
    typed = {o.name: o for o in graph.output}
    wanted = set(names)
    kept = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            wanted |= captured(Node.from_proto(node))
            kept.append(node)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    del graph.output[:]
    for name in names:
        value = typed.get(name) or onnx.ValueInfoProto(name=name)
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")  # stale shapes are not to be believed
        graph.output.append(value)
    inputs = [i for i in graph.input if i.name in wanted]
    del graph.input[:]
    graph.input.extend(inputs)
    return model


def _fit_inputs(model: onnx.ModelProto, arrays: Mapping[str, np.ndarray]) -> None:
    """Where an export fixed the size of an axis which the user has opened, declares what will be fed."""
    stale = False
    for value in model.graph.input:
        if value.name not in arrays or not value.type.tensor_type.HasField("shape"):
            continue
        dims = value.type.tensor_type.shape.dim
        sizes = arrays[value.name].shape
        if len(dims) == len(sizes) and any(d.dim_value not in (0, n) for d, n in zip(dims, sizes, strict=True)):
            stale = True
            for dim, size in zip(dims, sizes, strict=True):
                dim.dim_value = size
    if stale:
        del model.graph.value_info[:]  # what was inferred from the sizes before


def _first_bad(
    proto: onnx.ModelProto, model: PulsedModel, arrays: Mapping[str, np.ndarray], engine: str | None
) -> str | None:
    """The first node of the source whose stream differs from its value over the whole signal."""
    order = [(node, name) for node in proto.graph.node for name in node.output if name in model.traced]
    for node, name in order:
        fact = model.traced[name].fact
        if not isinstance(fact, Stream):
            continue
        try:
            wanted = _reference(proto, [name], arrays)[name]
            found = _traced_stream(model, name, fact, arrays, engine)
        except (PulseError, KeyError, ValueError):
            continue
        first = int(np.clip(-fact.delay, 0, wanted.shape[fact.axis]))
        usable = min(found.shape[fact.axis], wanted.shape[fact.axis] - first)
        a = np.take(found, range(usable), axis=fact.axis)
        b = np.take(wanted, range(first, first + usable), axis=fact.axis)
        if error(a, b) > TOLERANCE:
            return f"{node.name or name} ({node.op_type})"
    return None


def _traced_stream(
    model: PulsedModel, name: str, fact: Stream, arrays: Mapping[str, np.ndarray], engine: str | None
) -> np.ndarray:
    """The signal frames of an inner value, as the stream makes them over the whole input."""
    inner = model.traced[name].name
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    if inner not in {o.name for o in proto.graph.output}:
        proto.graph.output.append(onnx.helper.make_tensor_value_info(inner, fact.dtype, None))
    shape = fact.block(0)
    port = mf.Port(inner, fact.dtype, shape, fact.axis, fact.rate, max(fact.delay, 0), fact.length)
    others = [p for p in model.outputs if p.name != inner]
    info = mf.Manifest(**{**vars(model.info), "outputs": [*others, port]})
    probe = PulsedModel(proto, info)
    return run_stream(probe, arrays, engine, np.random.default_rng(0))[inner]
