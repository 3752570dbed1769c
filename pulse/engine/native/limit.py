"""How fast a pulse could be: its products at the speed of this core, their weights at the speed of the cache."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np

from pulse.engine.isa import native
from pulse.engine.native.net import Net
from pulse.engine.native.passes.canonical import NATIVE, canonical
from pulse.engine.native.passes.decompose import decompose
from pulse.engine.native.passes.simplify import simplify
from pulse.engine.native.plan import WeightStore
from pulse.graph.ir import Node

SAMPLES = 8  # of which the best counts: others may be using the machine
READS = 40_000_000  # bytes read to measure a bandwidth


@dataclass(frozen=True)
class Work:
    """Multiply-adds of one product, and the bytes of weights it reads; `count` times a pulse."""

    macs: int
    bytes: int
    count: int = 1


@dataclass(frozen=True)
class Roof:
    """What one core does at best: operations and bytes of weights per nanosecond."""

    flops: float
    bytes: float

    def ns(self, macs: float, size: float) -> float:
        """Nanoseconds that a product takes at least."""
        return max(2 * macs / self.flops, size / self.bytes)

    @staticmethod
    def of(isa: str, size: int) -> Roof:
        """Measured, for weights of `size` bytes in all."""
        return Roof(max(float(native().peak_flops(isa)) for _ in range(SAMPLES)), bandwidth(isa, size))


def limit_us(net: Net, isa: str, weights: str = "f32") -> float:
    """Microseconds of a pulse if nothing but its products took time: the sum over products of the larger of what the
    multiply-adds and what reading the weights takes, these coming from the cache that holds the model's all.

    `net` is as built; products are those of the graph, before any are merged. The net is changed. `weights` is what
    large weights are stored in.
    """
    works = products(net, weights)
    roof = Roof.of(isa, sum(w.bytes for w in works))
    return sum(w.count * roof.ns(w.macs, w.bytes) for w in works) / 1e3


def products(net: Net, weights: str = "f32") -> list[Work]:
    """Every product with constant weights."""
    for run in (decompose, simplify, canonical):
        run(net)
    store = WeightStore(huge=False, dtype=weights)
    return [work for node in net.nodes for work in _works(net, node, store)]


def _works(net: Net, node: Node, store: WeightStore) -> list[Work]:
    if node.op in ("GRU", "LSTM", "RNN"):
        w, r = (net.constants.get(n) for n in node.inputs[1:3])
        if w is None or r is None:
            return []
        steps, batch = net.shape(node.inputs[0])[:2]
        return [Work(w.size * steps * batch, store.bytes_of(w)), Work(r.size * batch, store.bytes_of(r), steps)]
    if node.domain != NATIVE:
        return []
    weight = node.attrs["weight"]
    if node.op == "Linear":
        columns = prod(net.shape(node.outputs[0])) // (weight.shape[0] * weight.shape[1])
    elif node.op == "Conv":
        columns = prod(net.shape(node.outputs[0])) // weight.shape[0]
    else:
        columns = prod(net.shape(node.inputs[0])) // weight.shape[0]
    return [Work(weight.size * columns, store.bytes_of(weight))]


@cache
def bandwidth(isa: str, size: int) -> float:
    """Bytes per nanosecond when `size` bytes are read over and over; a model's own size tells its cache level."""
    floats = max(size // 4, 1024)
    packed = native().Packed(np.zeros((floats, 1), np.float32), 1)
    return max(float(packed.read_bandwidth(isa, 1 + READS // (4 * floats))) for _ in range(SAMPLES))
