"""In which order of axes each value would best lie in memory, and with which margins of zeros."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pulse.engine.native.net import Net
from pulse.engine.native.passes.canonical import NATIVE
from pulse.engine.native.passes.residual import depthwise
from pulse.graph.ir import Node
from pulse.streaming.functions import DOMAIN

MILD, STRONG = 1, 2  # what a wish saves: some speed, or a copy
Margins = tuple[tuple[int, int], ...]


class Wishes:
    """Found by one walk from the results backwards.

    Attributes:
        orders: axes of a value from the outermost to the innermost, where a reader cares.
        margins: zeros that a convolution wants before and after each axis.
    """

    def __init__(self, net: Net) -> None:
        self.net = net
        self.orders: dict[str, tuple[int, ...]] = {}
        self.margins: dict[str, Margins] = {}
        self._strength: dict[str, int] = {}
        for node in reversed(net.nodes):
            self._visit(node)

    def _want(self, name: str, order: Sequence[int], strength: int) -> None:
        if strength > self._strength.get(name, 0):
            self.orders[name], self._strength[name] = tuple(order), strength

    def _pass(self, source: str, to: str, order: Sequence[int] | None) -> None:
        if source in self.orders and order is not None:
            self._want(to, order, self._strength[source])

    def _need(self, name: str, margins: Margins) -> None:
        old = self.margins.get(name, ((0, 0),) * len(margins))
        self.margins[name] = tuple((max(a, c), max(b, d)) for (a, b), (c, d) in zip(old, margins, strict=True))

    def _visit(self, node: Node) -> None:
        x = node.inputs[0] if node.inputs else ""
        y = node.outputs[0]
        rank = len(self.net.shape(x)) if x in self.net.types else 0
        if node.op == "Transpose":
            perm = node.attrs["perm"]
            self._pass(y, x, [perm[a] for a in self.orders.get(y, ())])
            if y in self.margins:
                self._need(x, tuple(self.margins[y][int(i)] for i in np.argsort(perm)))
        elif node.op == "Reshape" and not node.domain:
            self._reshape(x, y)
        elif node.domain == NATIVE and node.op == "Linear":
            self._want(x, range(rank), MILD)
        elif node.domain == NATIVE and node.op in ("Conv", "ConvTranspose"):
            self._conv(node, x, rank)
        elif node.domain == NATIVE and node.op == "Chain":
            for name in node.inputs:
                if self.net.shape(name) == self.net.shape(y):
                    self._pass(y, name, self.orders.get(y))
        elif node.op in ("GRU", "LSTM", "RNN"):
            self._want(x, range(rank), MILD)
        elif node.op == "Concat":
            for name in node.inputs:
                self._pass(y, name, self.orders.get(y))
        elif node.domain == DOMAIN and node.op in ("Mask", "MaskStart", "MaskEnd"):
            self._pass(y, x, self.orders.get(y))
            if y in self.margins:
                self._need(x, self.margins[y])

    def _reshape(self, x: str, y: str) -> None:
        old, new = self.net.shape(x), self.net.shape(y)
        old_axes, new_axes = ([i for i, d in enumerate(s) if d != 1] for s in (old, new))
        if [old[i] for i in old_axes] != [new[i] for i in new_axes]:
            self._want(x, range(len(old)), STRONG)
            return
        of = dict(zip(new_axes, old_axes, strict=True))
        if y in self.orders:
            moved = [of[a] for a in self.orders[y] if a in of]
            self._pass(y, x, [i for i in range(len(old)) if i not in moved] + moved)
        if y in self.margins:
            back = {o: self.margins[y][n] for n, o in of.items()}
            self._need(x, tuple(back.get(i, (0, 0)) for i in range(len(old))))

    def _conv(self, node: Node, x: str, rank: int) -> None:
        single = depthwise(self.net, node)
        self._want(x, (0, 2, 1) if rank == 3 else range(rank), MILD)
        if single or node.op == "ConvTranspose":
            return
        if any(any(p) for p in node.attrs["pads"]):
            self._need(x, ((0, 0), (0, 0), *((max(a, 0), max(b, 0)) for a, b in node.attrs["pads"])))
