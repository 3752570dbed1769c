"""What a pulsed model is: its manifest in the form of `pulse inspect`, and what a pulse costs."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from pulse.errors import PulseError
from pulse.graph.ir import Node
from pulse.manifest import Port
from pulse.streaming.emit import np_type

if TYPE_CHECKING:
    from pulse.engine.native.net import Net
    from pulse.model import PulsedModel


def inspect_pulsed(model: PulsedModel, frame_ms: float | None = None) -> dict[str, Any]:
    """The JSON form of `pulse inspect` for a pulsed model.

    It has two keys more than that of a source: `pulse`, the width, and `states` with `count` and `bytes`.
    `receptive_field` is None: only the source knows it. `macs_per_frame` is None where shapes depend on the data.
    """
    sizes = [prod(s.shape) * np_type(s.dtype).itemsize for s in model.states]
    return {
        "symbol": model.symbol,
        "granularity": model.granularity,
        "receptive_field": None,
        "macs_per_frame": _macs_per_frame(model),
        "parameters": _parameters(model),
        "inputs": [_port(p, frame_ms) for p in model.inputs],
        "outputs": [_port(p, frame_ms) for p in model.outputs],
        "facts": [],
        "obstacles": [],
        "pulse": model.pulse,
        "states": {"count": len(sizes), "bytes": sum(sizes)},
    }


def _port(port: Port, frame_ms: float | None) -> dict[str, Any]:
    late = float(port.delay / port.rate) if port.axis is not None else 0.0
    return {
        "name": port.name,
        "shape": list(port.shape),
        "axis": port.axis,
        "rate": f"{port.rate.numerator}/{port.rate.denominator}",
        "delay": port.delay,
        "delay_ms": None if frame_ms is None or port.axis is None else late * frame_ms,
    }


def _parameters(model: PulsedModel) -> int:
    """Numbers of floating type in initialisers."""
    return sum(prod(t.dims) for t in model.proto.graph.initializer if np_type(t.data_type).kind == "f")


def _macs_per_frame(model: PulsedModel) -> int | None:
    from pulse.engine.native.net import build

    width = model.granularity if model.pulse == "dynamic" else int(model.pulse)
    try:
        net = build(model.proto, model.info, width)
    except PulseError:
        return None
    return round(sum(_macs(net, node) for node in net.nodes) / width)


def _macs(net: Net, node: Node) -> int:
    """Multiply-adds of a node in a pulse."""
    if node.op in ("GRU", "LSTM", "RNN"):
        frames, batch, _ = net.shape(node.inputs[0])
        return frames * batch * sum(prod(net.shape(n)) for n in node.inputs[1:3])
    if node.op in ("Conv", "ConvTranspose"):
        weights = net.shape(node.inputs[1])
        counted = node.outputs[0] if node.op == "Conv" else node.inputs[0]
        return prod(net.shape(counted)) * prod(weights[1:])
    if node.op in ("MatMul", "Gemm"):
        summed = net.shape(node.inputs[0])[0 if node.attrs.get("transA") else -1]
        return prod(net.shape(node.outputs[0])) * summed
    if node.op == "Einsum":
        sizes: dict[str, int] = {}
        terms = node.attrs["equation"].replace(" ", "").partition("->")[0].split(",")
        for term, name in zip(terms, node.inputs, strict=True):
            sizes.update(zip(term, net.shape(name), strict=False))
        return prod(sizes.values()) if len(terms) > 1 else 0
    return 0
