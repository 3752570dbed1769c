"""Recurrent layers: the whole pulse's input projection as one product, then the recurrence."""

from __future__ import annotations

from typing import Any

import numpy as np

from pulse.engine.isa import native
from pulse.engine.native.lower.context import Context, Unsupported
from pulse.engine.native.lower.product import product
from pulse.engine.native.memory import Buffer, View
from pulse.engine.native.plan import BYTES, Field, Ref
from pulse.graph.ir import Node
from pulse.streaming.functions import DOMAIN


def interleaved(weight: np.ndarray, gates: int, lanes: int) -> np.ndarray:
    """Rows (gates * units, ...) as blocks of one vector of units per gate; units are filled up to whole vectors."""
    units = len(weight) // gates
    padded = -(-units // lanes) * lanes
    full = np.zeros((gates, padded, *weight.shape[1:]), np.float32)
    full[:, :units] = weight.reshape(gates, units, *weight.shape[1:])
    return full.reshape(gates, padded // lanes, lanes, *weight.shape[1:]).swapaxes(0, 1).reshape(-1, *weight.shape[1:])


class Layer:
    """What a recurrent node has: weights per direction, input, initial states, clock."""

    def __init__(self, ctx: Context, node: Node, gates: int) -> None:
        self.ctx, self.node, self.gates = ctx, node, gates
        streaming = node.domain == DOMAIN
        names = [node.input(i) for i in range(8)]
        if streaming:  # x, w, r, b, h (, c, p), position
            states = 2 if node.op == "LSTM" else 1
            self.states = names[4 : 4 + states]
            self.peepholes = names[6] if node.op == "LSTM" else ""
            self.position: str | None = node.inputs[-1]
        else:
            if names[4]:
                raise Unsupported("sequence_lens")
            self.states = [n for n in names[5:7] if n] if node.op == "LSTM" else [n for n in names[5:6] if n]
            self.peepholes = names[7] if node.op == "LSTM" else ""
            self.position = None
        if node.attrs.get("layout") or node.attrs.get("clip"):
            raise Unsupported("layout 1 or clip of a recurrent layer")
        if any(n not in ctx.net.constants for n in names[1:3]):
            raise Unsupported("recurrent weights that are computed")
        self.w, self.r = (ctx.net.constants[n] for n in names[1:3])  # (directions, gates * units, k)
        bias = ctx.net.constants.get(names[3]) if names[3] else None
        if names[3] and bias is None:
            raise Unsupported("a recurrent bias that is computed")
        self.directions, rows, self.k = self.w.shape
        self.units = rows // gates
        self.bias = bias if bias is not None else np.zeros((self.directions, 2 * rows), np.float32)
        self.padded = -(-self.units // ctx.lanes) * ctx.lanes
        shape = ctx.net.shape(names[0])
        self.steps, self.batch = shape[0], shape[1]

    def backwards(self, direction: int) -> bool:
        kind = self.node.attrs.get("direction", "forward")
        return kind == "reverse" or (kind == "bidirectional" and direction == 1)

    def _clock(self) -> dict[str, Field]:
        if self.position is None:
            return {"position": None}
        attrs = self.node.attrs
        return {
            "position": self.ctx.slot(self.position),
            "num": attrs["num"],
            "den": attrs["den"],
            "delay": attrs["delay"],
        }

    def project(self, direction: int, weight: np.ndarray, bias: np.ndarray) -> View:
        """W x + bias of all steps: (steps, batch, rows)."""
        ctx = self.ctx
        x = ctx.view(self.node.inputs[0])
        gx = ctx.fresh((self.steps, self.batch, len(weight)))
        attrs: dict[str, Any] = {"bias": bias if bias.any() else None, "act": "none", "alpha": 0.0, "slope": None}
        product(
            ctx, attrs, weight[None], rows=[(self.k, x.strides[2])],
            columns=list(zip(x.shape[:2], x.strides[:2], gx.strides[:2], strict=True)), loops=[],
            b=Ref(x.buffer, x.offset), c=Ref(gx.buffer, gx.offset), cm=1,
        )  # fmt: skip
        return gx

    def memory(self, index: int) -> View:
        """State `index`, (directions, batch, units), to be read and left as it is after the last step."""
        ctx = self.ctx
        shape = (self.directions, self.batch, self.units)
        name = self.states[index] if index < len(self.states) else ""
        kept = self.node.outputs[1 + index] if len(self.node.outputs) > 1 + index else ""
        home = ctx.homes.get(name)
        if home is not None and len(ctx.uses[name]) == 1 and kept:
            ctx.views[kept] = home
            return home
        made = ctx.out(kept) if kept else ctx.fresh(shape)
        ctx.copy(ctx.view(name) if name else ctx.constant(np.zeros(shape, np.float32)), made)
        return made

    def output(self) -> tuple[View, View | None]:
        """Where steps write, (steps, directions, batch, units) with units contiguous; and where that must be copied."""
        ctx = self.ctx
        name = self.node.outputs[0]
        if not name:
            return ctx.fresh((self.steps, self.directions, self.batch, self.units)), None
        y = ctx.out(name)
        if y.strides[3] == 1 or self.units == 1:
            return y, None
        return ctx.fresh(y.shape), y

    def arguments(self, gx: View, y: View, h: View, direction: int, packed: Buffer, scratch: int) -> dict[str, Field]:
        """Of a direction's step, from the last frame where it runs backwards; `scratch` in vectors of units."""
        back = self.backwards(direction)
        sign, last = (-1, self.steps - 1) if back else (1, 0)
        return self._clock() | {
            "w": Ref(packed), "scratch": self.ctx.fresh((scratch * self.padded,)),
            "gx": Ref(gx.buffer, gx.offset + last * gx.strides[0]), "gxt": sign * gx.strides[0], "gxb": gx.strides[1],
            "y": Ref(y.buffer, y.offset + direction * y.strides[1] + last * y.strides[0]), "yt": sign * y.strides[0],
            "yb": y.strides[2], "h": Ref(h.buffer, h.offset + direction * h.strides[0]), "hb": h.strides[1],
            "steps": self.steps, "batch": self.batch, "units": self.units,
        }  # fmt: skip

    def facts(self, dtype: str) -> dict[str, Any]:
        """What a profile wants to know; `dtype` is what the recurrent weights are stored in."""
        count = self.steps * self.batch
        m = self.gates * self.units
        return {
            "m": m,
            "k": self.units,
            "n": 1,
            "count": count,
            "macs": m * self.units * count,
            "bytes": BYTES[dtype] * m * self.units,
        }


def gru(ctx: Context, node: Node) -> None:
    """GRU, and pulse.GRU which skips frames before the signal."""
    if (node.attrs.get("activations") or ["Sigmoid", "Tanh"])[:2] != ["Sigmoid", "Tanh"]:
        raise Unsupported("other activations than sigmoid and tanh in a GRU")
    layer = Layer(ctx, node, 3)
    before = bool(node.attrs.get("linear_before_reset"))
    rows, lanes = 3 * layer.units, ctx.lanes
    h = layer.memory(0)
    y, copied = layer.output()
    for d in range(layer.directions):
        wb, rb = layer.bias[d, :rows].copy(), layer.bias[d, rows:].copy()
        last = slice(2 * layer.units, rows)
        kept = rb[last].copy()
        if before:
            rb[last] = 0
        gx = layer.project(d, interleaved(layer.w[d], 3, lanes), interleaved(wb + rb, 3, lanes))
        dtype = ctx.weights.kept_as(layer.r[d])
        if before:
            packed = ctx.weights.put(interleaved(layer.r[d], 3, lanes)[None], 3 * lanes, dtype)
        else:
            both = interleaved(layer.r[d, : 2 * layer.units], 2, lanes), interleaved(layer.r[d, last], 1, lanes)
            parts = [_panels(both[0], 2 * lanes, dtype), _panels(both[1], lanes, dtype)]
            packed = ctx.weights.put(np.concatenate(parts))
        args = layer.arguments(gx, y, h, d, packed, 3) | {"half": int(dtype == "bf16")}
        args["rb"] = Ref(ctx.weights.put(interleaved(kept, 1, lanes))) if before else None
        args["before"] = int(before)
        ctx.step("gru", args, kernel="gru", picked_by="-", **layer.facts(dtype))
    if copied is not None:
        ctx.copy(y, copied)


def lstm(ctx: Context, node: Node) -> None:
    """LSTM, and pulse.LSTM which skips frames before the signal."""
    if (node.attrs.get("activations") or ["Sigmoid", "Tanh", "Tanh"])[:3] != ["Sigmoid", "Tanh", "Tanh"]:
        raise Unsupported("other activations than sigmoid and tanh in an LSTM")
    if node.attrs.get("input_forget"):
        raise Unsupported("an LSTM with input_forget")
    layer = Layer(ctx, node, 4)
    peepholes = ctx.net.constants.get(layer.peepholes) if layer.peepholes else None
    if layer.peepholes and peepholes is None:
        raise Unsupported("peepholes that are computed")
    rows, lanes = 4 * layer.units, ctx.lanes
    h, c = layer.memory(0), layer.memory(1)
    y, copied = layer.output()
    for d in range(layer.directions):
        bias = interleaved(layer.bias[d, :rows] + layer.bias[d, rows:], 4, lanes)
        gx = layer.project(d, interleaved(layer.w[d], 4, lanes), bias)
        dtype = ctx.weights.kept_as(layer.r[d])
        packed = ctx.weights.put(interleaved(layer.r[d], 4, lanes)[None], 4 * lanes, dtype)
        args = layer.arguments(gx, y, h, d, packed, 3) | {"half": int(dtype == "bf16")}
        args |= {"c": Ref(c.buffer, c.offset + d * c.strides[0]), "cb": c.strides[1], "peepholes": None}
        if peepholes is not None and peepholes[d].any():
            args["peepholes"] = Ref(ctx.weights.put(interleaved(peepholes[d], 3, lanes)))
        ctx.step("lstm", args, kernel="lstm", picked_by="-", **layer.facts(dtype))
    if copied is not None:
        ctx.copy(y, copied)


def rnn(ctx: Context, node: Node) -> None:
    """RNN, and pulse.RNN which skips frames before the signal."""
    layer = Layer(ctx, node, 1)
    acts = node.attrs.get("activations") or ["Tanh"] * layer.directions
    if any(a not in ("Tanh", "Relu") for a in acts[: layer.directions]):
        raise Unsupported("other activations than tanh and relu in an RNN")
    h = layer.memory(0)
    y, copied = layer.output()
    for d in range(layer.directions):
        units, lanes = layer.units, ctx.lanes
        bias = interleaved(layer.bias[d, :units] + layer.bias[d, units:], 1, lanes)
        gx = layer.project(d, interleaved(layer.w[d], 1, lanes), bias)
        dtype = ctx.weights.kept_as(layer.r[d])
        packed = ctx.weights.put(interleaved(layer.r[d], 1, lanes)[None], lanes, dtype)
        args = layer.arguments(gx, y, h, d, packed, 2) | {"relu": int(acts[d] == "Relu"), "half": int(dtype == "bf16")}
        ctx.step("rnn", args, kernel="rnn", picked_by="-", **layer.facts(dtype))
    if copied is not None:
        ctx.copy(y, copied)


def _panels(weight: np.ndarray, height: int, dtype: str) -> np.ndarray:
    """Rows in panels of `height` as they lie in memory, in one vector of floats."""
    arena = native().Arena(native().packed_floats(height, *weight.shape, dtype), False)
    arena.pack(0, height, weight, dtype)
    return np.array(arena.array)
