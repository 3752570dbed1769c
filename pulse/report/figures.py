"""From times to the figures of a sweep: the rows of its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from onnx import ModelProto

from pulse.manifest import Manifest
from pulse.report.bench import Bench
from pulse.report.families import Insight
from pulse.report.statistics import edges, histogram, median, percentile
from pulse.streaming.emit import np_type


def row(bench: Bench, frame_ms: float | None, told: Insight | None) -> dict[str, Any]:
    """The figures of one width on one engine, with the keys of `pulse sweep --json`; times in µs, delays in ms."""
    info, pulse = bench.model.info, bench.pulse
    hot, paced = bench.hot, bench.paced
    typical = median(hot)
    period_us = None if frame_ms is None else 1000 * frame_ms * pulse
    paced_typical = median(paced) if paced else None
    load = None if paced_typical is None or period_us is None else paced_typical / period_us
    keeps_up = None if load is None else load < 1
    families = None if told is None else told.families
    return {
        "pulse": pulse,
        "engine": bench.stream.engine,
        "us_per_pulse": {
            "median": typical,
            "p99": percentile(hot, 0.99),
            "p999": percentile(hot, 0.999),
            "max": max(hot),
        },
        "us_per_frame": typical / pulse,
        "cpu_load": load,
        "paced_us_per_pulse": None
        if paced_typical is None
        else {"median": paced_typical, "p99": percentile(paced, 0.99), "max": max(paced)},
        "paced_us_per_frame": None if paced_typical is None else paced_typical / pulse,
        "delay_frames": delay_frames(info),
        "delay_ms": delays(info, pulse, frame_ms, paced_typical if keeps_up else None),
        "deadline_us": period_us,
        "missed": None if not paced or period_us is None else sum(t > period_us for t in paced),
        "keeps_up": keeps_up,
        "pulses": {"hot": len(hot), "paced": len(paced)},
        "families": families,
        "families_us_per_frame": None
        if families is None
        else {name: share * typical / pulse for name, share in families.items()},
        "kernels": {} if told is None else told.kernels,
        "products_us": {} if told is None else told.product_us,
        "state_bytes": state_bytes(info),
        "weight_bytes": weight_bytes(bench.model.proto),
    }


def delay_frames(info: Manifest) -> float:
    """Source frames by which the slowest output lags."""
    return float(max(port.delay / port.rate for port in info.outputs if port.axis is not None))


def delays(info: Manifest, pulse: int, frame_ms: float | None, compute_us: float | None) -> dict[str, float | None]:
    """Latency in ms: of the model, of waiting for a pulse to fill, of computing it, and in all; None where unknown."""
    if frame_ms is None:
        return {"model": None, "buffering": None, "compute": None, "total": None}
    model, buffering = delay_frames(info) * frame_ms, (pulse - 1) * frame_ms
    compute = None if compute_us is None else compute_us / 1000
    total = None if compute is None else model + buffering + compute
    return {"model": model, "buffering": buffering, "compute": compute, "total": total}


def add_distributions(rows: Sequence[dict[str, Any]], benches: Mapping[tuple[str, int], Bench]) -> None:
    """Gives every row the histogram of its times per pulse, paced where there are such, all in the same bins."""
    times = {key: (bench.paced or bench.hot) for key, bench in benches.items()}
    kept = [times[found["engine"], found["pulse"]] for found in rows]
    bins = edges(kept)
    for found, values in zip(rows, kept, strict=True):
        kind = "hot" if found["paced_us_per_pulse"] is None else "paced"
        found["distribution"] = {"kind": kind, "edges_us": bins, "counts": histogram(values, bins)}


def kernel_changes(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The products whose kernel depends on the width, with the kernel at each."""
    products = {name: None for found in rows for name in found["kernels"]}
    picks = {p: {str(f["pulse"]): f["kernels"][p] for f in rows if p in f["kernels"]} for p in products}
    return [{"product": p, "kernels": kernels} for p, kernels in picks.items() if len(set(kernels.values())) > 1]


def state_bytes(info: Manifest) -> int:
    """Bytes of everything a stream keeps between pulses; the same for every width."""
    return sum(prod(state.shape) * np_type(state.dtype).itemsize for state in info.states)


def weight_bytes(proto: ModelProto) -> int:
    """Bytes of the model's constants."""
    return sum(prod(item.dims) * np_type(item.data_type).itemsize for item in proto.graph.initializer)
