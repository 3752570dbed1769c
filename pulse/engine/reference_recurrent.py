"""GRU, LSTM and RNN in numpy with everything ONNX defines for them: onnx.reference leaves out clip, activations,
peepholes' companions and the reverse directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

Activation = Callable[[np.ndarray], np.ndarray]
Step = Callable[[np.ndarray, list[np.ndarray]], list[np.ndarray]]

_DEFAULTS = {"GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "RNN": ["Tanh"]}
_GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def _activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    def given(value: float | None, default: float) -> float:
        return default if value is None else value

    table: dict[str, Activation] = {
        "sigmoid": lambda x: (1 / (1 + np.exp(-x))).astype(x.dtype),
        "tanh": np.tanh,
        "relu": lambda x: np.maximum(x, 0),
        "affine": lambda x: given(alpha, 1.0) * x + given(beta, 0.0),
        "leakyrelu": lambda x: np.where(x >= 0, x, given(alpha, 0.01) * x),
        "thresholdedrelu": lambda x: np.where(x > given(alpha, 1.0), x, 0),
        "scaledtanh": lambda x: given(alpha, 1.0) * np.tanh(given(beta, 1.0) * x),
        "hardsigmoid": lambda x: np.clip(given(alpha, 0.2) * x + given(beta, 0.5), 0, 1),
        "elu": lambda x: np.where(x >= 0, x, given(alpha, 1.0) * (np.exp(x) - 1)),
        "softsign": lambda x: x / (1 + np.abs(x)),
        "softplus": lambda x: np.log1p(np.exp(x)),
    }
    return table[name.lower()]


def _activations(op: str, attrs: dict[str, Any], direction: int) -> list[Activation]:
    names = attrs.get("activations") or _DEFAULTS[op] * 2
    alphas, betas = attrs.get("activation_alpha") or [], attrs.get("activation_beta") or []
    count = len(_DEFAULTS[op])
    first = direction * count

    def pick(seq: Sequence[float], i: int) -> float | None:
        return seq[i] if i < len(seq) else None

    return [_activation(names[i], pick(alphas, i), pick(betas, i)) for i in range(first, first + count)]


def _step(op: str, attrs: dict[str, Any], d: int, w: Any, r: Any, b: Any, p: Any) -> Step:
    """One frame of direction `d`: (x, states) to states."""
    f = _activations(op, attrs, d)
    limit = attrs.get("clip")
    clip: Activation = (lambda x: np.clip(x, -limit, limit)) if limit else (lambda x: x)
    wb, rb = np.split(b, 2)

    def rnn(x: np.ndarray, s: list[np.ndarray]) -> list[np.ndarray]:
        return [f[0](clip(x @ w.T + s[0] @ r.T + wb + rb))]

    def gru(x: np.ndarray, s: list[np.ndarray]) -> list[np.ndarray]:
        xz, xr, xh = np.split(x @ w.T + wb, 3, axis=-1)
        rz, rr, rh = np.split(r, 3)
        bz, br, bh = np.split(rb, 3)
        z, reset = f[0](clip(xz + s[0] @ rz.T + bz)), f[0](clip(xr + s[0] @ rr.T + br))
        inner = reset * (s[0] @ rh.T + bh) if attrs.get("linear_before_reset") else (reset * s[0]) @ rh.T + bh
        return [(1 - z) * f[1](clip(xh + inner)) + z * s[0]]

    def lstm(x: np.ndarray, s: list[np.ndarray]) -> list[np.ndarray]:
        pi, po, pf = np.split(p, 3)
        i, o, g, c = np.split(x @ w.T + s[0] @ r.T + wb + rb, 4, axis=-1)
        i = f[0](clip(i + pi * s[1]))
        forget = 1 - i if attrs.get("input_forget") else f[0](clip(g + pf * s[1]))
        cell = forget * s[1] + i * f[1](clip(c))
        return [f[0](clip(o + po * cell)) * f[2](cell), cell]

    return {"RNN": rnn, "GRU": gru, "LSTM": lstm}[op]


def run(op: str, inputs: Sequence[np.ndarray | None], attrs: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """Y, Y_h (and Y_c) in layout 0. Inputs X W R B sequence_lens initial_h [initial_c P]; sequence_lens is not read."""
    given = list(inputs) + [None] * (8 - len(inputs))
    x, w, r, b = given[:4]
    assert x is not None
    assert w is not None
    assert r is not None
    directions, hidden = r.shape[0], r.shape[2]
    shape = (directions, x.shape[1], hidden)
    starts = [np.zeros(shape, x.dtype) if s is None else s for s in given[5 : 7 if op == "LSTM" else 6]]
    gates = _GATES[op]
    b = np.zeros((directions, 2 * gates * hidden), x.dtype) if b is None else b
    p = np.zeros((directions, 3 * hidden), x.dtype) if given[7] is None else given[7]
    y = np.zeros((x.shape[0], *shape), x.dtype)
    ends = [s.copy() for s in starts]
    reverse = attrs.get("direction") == "reverse"
    for d in range(directions):
        step = _step(op, attrs, d, w[d], r[d], b[d], p[d])
        order = range(x.shape[0])[::-1] if reverse or d == 1 else range(x.shape[0])
        states = [s[d] for s in starts]
        for t in order:
            states = [s.astype(x.dtype) for s in step(x[t], states)]
            y[t, d] = states[0]
        for end, state in zip(ends, states, strict=True):
            end[d] = state
    return (y, *ends)


def _class(op: str) -> type[OpRun]:
    def _run(self: OpRun, *inputs: np.ndarray | None, **attrs: Any) -> tuple[np.ndarray, ...]:
        given = list(inputs)
        if attrs.pop("layout", 0):
            flip = [0, 5, 6] if op == "LSTM" else [0, 5]
            given = [np.swapaxes(a, 0, 1) if i in flip and a is not None else a for i, a in enumerate(given)]
            y, *ends = run(op, given, attrs)
            return (np.transpose(y, (2, 0, 1, 3)), *(np.swapaxes(e, 0, 1) for e in ends))
        return run(op, given, attrs)[: max(len(self.onnx_node.output), 1)]

    return type(op, (OpRun,), {"op_domain": "", "_run": _run})


REPAIRED: list[type[OpRun]] = [_class(op) for op in ("GRU", "LSTM", "RNN")]
