"""What a source model is, seen as a stream: facts, costs, context, and what would stop it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from pulse.errors import PulseError
from pulse.graph.ir import Graph, Node, captured
from pulse.graph.load import Source, read_model
from pulse.inspect_pulsed import inspect_pulsed
from pulse.model import is_pulsed, load, refuse_reading
from pulse.source import analyse_source
from pulse.streaming.facts import Const, Poison, Stream, Uniform
from pulse.streaming.transform import Analysis


def inspect(
    source: Source,
    *,
    inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] | None = None,
    length_multiple_of: int | None = None,
    frame_ms: float | None = None,
) -> dict[str, Any]:
    """The JSON form of `pulse inspect`.

    `macs_per_frame` counts multiply-adds of products per source frame; `receptive_field` is the source frames that one
    output frame depends on (None: unbounded, by a recurrence); `obstacles` are what some output cannot stream by.
    `delay_ms` is None unless `frame_ms`, the duration of a source frame, is given. A pulsed model tells what its
    manifest says: see `inspect_pulsed`. Raises PulseError for bad input.
    """
    proto, label = read_model(source)
    if is_pulsed(proto):
        refuse_reading(label, {"inputs": inputs, "outputs": outputs, "length_multiple_of": length_multiple_of})
        return inspect_pulsed(load(source), frame_ms)
    model = analyse_source(proto, label, inputs, outputs, length_multiple_of or 1)
    graph, signature, symbol, found = model.graph, model.signature, model.symbol, model.walk
    ports = []
    for item in signature:
        shape = [symbol if i == item.axis else d for i, d in enumerate(item.shape)]
        if item.axis is not None and item.factor != 1:
            shape[item.axis] = f"{item.factor}*{symbol}"
        rate = str(item.length.slope) if item.axis is not None else "0"
        ports.append(
            {
                "name": item.name,
                "shape": shape,
                "axis": item.axis,
                "rate": _ratio(rate),
                "delay": 0,
                "delay_ms": None if frame_ms is None or item.axis is None else 0.0,
            }
        )
    return {
        "symbol": symbol,
        "granularity": found.granularity,
        "receptive_field": _receptive_field(graph, found),
        "macs_per_frame": round(sum(_macs(n, found) for n in graph.nodes)),
        "parameters": _parameters(graph),
        "inputs": ports,
        "outputs": [_output(o.name, found, frame_ms, symbol) for o in graph.outputs],
        "facts": [{"name": n, "fact": str(found.values[n].fact)} for n in found.order],
        "obstacles": [_obstacle(p.error) for p in found.obstacles],
    }


def _ratio(rate: str) -> str:
    return rate if "/" in rate else f"{rate}/1"


def _output(name: str, found: Analysis, frame_ms: float | None, symbol: str) -> dict[str, Any]:
    fact = found.values[name].fact if name in found.values else None
    if not isinstance(fact, (Stream, Uniform)):
        return {"name": name, "shape": None, "axis": None, "rate": None, "delay": None, "delay_ms": None}
    delay = max(fact.delay, 0) if isinstance(fact, Stream) else 0
    ms = None if frame_ms is None else float(delay / fact.rate) * frame_ms
    shape = [int(d) if d.constant else re.sub(r"\bS\b", lambda _: symbol, str(d)) for d in fact.dims]
    return {
        "name": name,
        "shape": shape,
        "axis": fact.axis,
        "rate": _ratio(str(fact.rate)),
        "delay": delay,
        "delay_ms": ms,
    }


def _obstacle(error: PulseError) -> dict[str, str]:
    parts = [f"required: {error.required}", f"found: {error.found}", f"to do: {error.remedy}"]
    fields = {"required": error.required, "found": error.found, "remedy": error.remedy}
    return {"code": error.code, "node": error.node, "message": "; ".join(parts)} | fields


def _array(name: str, found: Analysis) -> np.ndarray | None:
    fact = found.values[name].fact if name in found.values else None
    return fact.value if isinstance(fact, Const) and fact.value.dtype != object else None


def _parameters(graph: Graph) -> int:
    """Numbers of floating type in initialisers and Constant nodes that are read, each counted once."""
    read = {name for node in graph.nodes for name in captured(node)}
    arrays = [value for name, value in graph.constants.items() if name in read]
    values = [value for node in graph.nodes if node.op == "Constant" for value in node.attrs.values()]
    arrays += [value for value in values if isinstance(value, np.ndarray)]
    return sum(a.size for a in arrays if np.issubdtype(a.dtype, np.floating))


def _frames(name: str, found: Analysis) -> tuple[tuple[int, ...], Fraction, int] | None:
    fact = found.values[name].fact if name in found.values else None
    if not isinstance(fact, (Stream, Uniform)):
        return None
    return fact.shape, fact.rate, fact.axis


def _macs(node: Node, found: Analysis) -> float:
    """Multiply-adds per source frame."""
    if node.op in ("Conv", "ConvTranspose"):
        side = node.inputs[0] if node.op == "ConvTranspose" else node.outputs[0]
        weights, frames = _array(node.inputs[1], found), _frames(side, found)
        if weights is None or frames is None:
            return 0
        shape, rate, axis = frames
        per_frame = prod(d for i, d in enumerate(shape) if i not in (axis, 1))
        return float(per_frame * weights.size * rate)
    if node.op in ("GRU", "LSTM", "RNN"):
        frames = _frames(node.inputs[0], found)
        parts = [_array(n, found) for n in node.inputs[1:3]]
        if frames is None or any(p is None for p in parts):
            return 0
        shape, rate, axis = frames
        runs = prod(d for i, d in enumerate(shape[:2]) if i != axis)
        return float(runs * sum(p.size for p in parts if p is not None) * rate)
    if node.op in ("MatMul", "Gemm", "Einsum"):
        frames = _frames(node.outputs[0], found)
        pair = [(n, _array(n, found)) for n in node.inputs[:2]]
        if frames is None:
            return 0
        weights = next((a for _, a in pair if a is not None), None)
        shape, rate, axis = frames
        made = prod(d for i, d in enumerate(shape) if i != axis)
        if weights is None:
            first = _frames(node.inputs[0], found)
            summed = first[0][-1] if first else 0
            return float(made * summed * rate)
        return float(made * _summed(node, weights) * rate)
    return 0


def _summed(node: Node, weights: np.ndarray) -> float:
    """Length of the sum behind each element of a product."""
    if node.op == "Gemm":
        return int(weights.shape[1 if node.attrs.get("transB") else 0])
    if node.op == "Einsum":
        terms, _, result = node.attrs["equation"].replace(" ", "").partition("->")
        letters = terms.split(",")[1]
        return float(prod(int(d) for c, d in zip(letters, weights.shape, strict=False) if c not in result))
    return int(weights.shape[-2] if weights.ndim > 1 else weights.shape[0])


_WINDOWS = ("Conv", "MaxPool", "AveragePool", "ConvInteger", "QLinearConv", "LpPool")


def _receptive_field(graph: Graph, found: Analysis) -> int | None:
    """Source frames behind one output frame: windows add up along the deepest path."""
    reach: dict[str, Fraction | None] = {}
    for node in graph.nodes:
        before: list[Fraction | None] = [reach.get(n, Fraction(0)) for n in node.inputs if n]
        widest = None if None in before else max([b for b in before if b is not None], default=Fraction(0))
        own = _reach(node, found)
        total = None if widest is None or own is None else widest + own
        for name in node.outputs:
            reach[name] = total
    ends = [
        reach.get(o.name, Fraction(0))
        for o in graph.outputs
        if o.name in found.values and not isinstance(found.values[o.name].fact, Poison)
    ]
    if not ends or any(e is None for e in ends):
        return None
    return int(-(-max(e for e in ends if e is not None) // 1)) + 1


def _reach(node: Node, found: Analysis) -> Fraction | None:
    """Source frames by which a node widens the context; None without bound."""
    frames = _frames(node.inputs[0], found) if node.inputs else None
    if frames is None or not any(_frames(n, found) for n in node.outputs):
        return Fraction(0)
    shape, rate, axis = frames
    if node.op in ("GRU", "LSTM", "RNN") and axis == (1 if node.attrs.get("layout") else 0):
        return None
    if node.op in ("CumSum", "Scan") and node.op == "Scan":
        return None
    if node.op in (*_WINDOWS, "ConvTranspose") and axis >= 2:
        kernel = node.attrs.get("kernel_shape")
        if kernel is None:
            weights = _array(node.inputs[3 if node.op == "QLinearConv" else 1], found)
            kernel = list(weights.shape[2:]) if weights is not None else [1] * (len(shape) - 2)
        dilations = node.attrs.get("dilations") or [1] * len(kernel)
        extent = (kernel[axis - 2] - 1) * dilations[axis - 2]
        if node.op == "ConvTranspose":
            stride = (node.attrs.get("strides") or [1] * len(kernel))[axis - 2]
            return Fraction(extent // stride) / rate
        return Fraction(extent) / rate
    return Fraction(0)
