"""Builder: collects nodes and constants in the styles exporters write, for one opset."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from nets.base import MAX_FEATURES, MAX_GRANULARITY, MAX_NEED, Invalid, Length, Value

FLOAT = TensorProto.FLOAT


class Builder:
    """Nodes of one net.

    Attributes:
        opset: opset of the model; `forms` writes ops the way it wants them.
        multiple: legal source lengths are multiples of this.
        chains: write reshapes as Shape -> Gather -> Concat chains and constants as Constant nodes, as exporters do.
        twin: write the equivalent that ONNX Runtime can run, where it lacks the form under test.
    """

    def __init__(self, opset: int, seed: int = 0, multiple: int = 1, chains: bool = False, twin: bool = False) -> None:
        self.opset, self.multiple, self.chains, self.twin = opset, multiple, chains, twin
        self.rng = np.random.default_rng([seed, 1])
        self.style = np.random.default_rng([seed, 2])
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: dict[str, Value] = {}
        self.sides: dict[str, tuple[int, ...]] = {}
        self.taps: list[Value] = []
        self.lasts: list[str] = []  # outputs which are no streams
        self.needs: list[tuple[Length, int]] = []
        self.rates: set[Fraction] = {Fraction(1)}
        self.hides = False
        self.reference = True
        self._count = 0

    # ---- nodes and constants

    def fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"

    def ops(self, kind: str, inputs: Sequence[str], outputs: int = 1, domain: str = "", **attributes: Any) -> list[str]:
        """Adds a node; the names of its outputs."""
        name = self.fresh(kind)
        names = [f"{name}_out{i}" if i else f"{name}_out" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=name, domain=domain, **attributes))
        return names

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node of one output; its name."""
        return self.ops(kind, inputs, **attributes)[0]

    def const(self, array: Any, dtype: Any = None, initializer: bool | None = None) -> str:
        """A constant, as an initializer or, in exporters' style, sometimes as a Constant node."""
        array = np.asarray(array, dtype)
        if initializer is None:
            initializer = not (self.chains and self.style.random() < 0.5)
        if initializer:
            name = self.fresh("c")
            self.initializers.append(numpy_helper.from_array(array, name))
            return name
        return self.op("Constant", value=numpy_helper.from_array(array))

    def ints(self, *values: int) -> str:
        return self.const(values, np.int64)

    def scalar(self, value: float) -> str:
        return self.const(value, np.float32)

    def weight(self, *shape: int, fan: int = 1) -> str:
        """Seeded weights that keep unit variance for `fan` summands."""
        return self.const(self.rng.standard_normal(shape) / math.sqrt(max(fan, 1)), np.float32)

    def bias(self, *shape: int) -> str:
        """Constants well away from zero, so that shortcuts at the edges show."""
        sign = self.rng.choice([-1.0, 1.0], shape)
        return self.const(sign * self.rng.uniform(0.3, 1.0, shape), np.float32)

    # ---- values

    def value(self, x: Value, name: str, dims: Sequence[int] | None = None, **changes: Any) -> Value:
        """`x` after an op: a value of the given dims, layout, length or rate, checked against the limits."""
        new = Value(
            name,
            tuple(x.dims if dims is None else dims),
            changes.get("layout", x.layout),
            changes.get("length", x.length),
            Fraction(changes.get("rate", x.rate)),
        )
        if new.features > MAX_FEATURES or not Fraction(1, MAX_GRANULARITY) <= new.rate <= 6:
            raise Invalid("too large")
        self.rates.add(new.rate)
        if math.lcm(*(r.denominator for r in self.rates)) > MAX_GRANULARITY:
            raise Invalid("granularity")
        self.need(new.length, 1)
        return new

    def need(self, length: Length, at_least: int) -> None:
        """Legal source lengths have `length >= at_least`."""
        self.needs.append((length, at_least))

    def min_length(self) -> int:
        """The least multiple from which on all needs are met, at least one frame."""
        step = self.multiple
        for s in range(step, MAX_NEED + step, step):
            if all(length.at(s) >= n for length, n in self.needs):
                return s
        raise Invalid("needs long signals")

    def legal(self, count: int = 60) -> range:
        first = self.min_length()
        return range(first, first + count * self.multiple, self.multiple)

    def divides(self, length: Length, by: int) -> bool:
        return all(length.at(s) % by == 0 for s in self.legal())

    def difference(self, a: Length, b: Length) -> int | None:
        """`a - b` if it is the same for every legal signal."""
        found = {a.at(s) - b.at(s) for s in self.legal()}
        return found.pop() if len(found) == 1 else None

    def mark(self) -> tuple[Any, ...]:
        """A point to come back to when a layer proves invalid."""
        return (
            len(self.nodes), len(self.initializers), dict(self.inputs), dict(self.sides), len(self.taps),
            len(self.lasts), len(self.needs), set(self.rates), self.hides, self.reference,
        )  # fmt: skip

    def rewind(self, mark: tuple[Any, ...]) -> None:
        nodes, initializers, self.inputs, self.sides, taps, lasts, needs, self.rates, self.hides, self.reference = mark
        del (
            self.nodes[nodes:],
            self.initializers[initializers:],
            self.taps[taps:],
            self.lasts[lasts:],
            self.needs[needs:],
        )

    def run(self, steps: Sequence[Any], x: Value) -> Value:
        """`x` through layers, one after another."""
        for step in steps:
            x = step.apply(self, x)
            self.hides |= step.hides
            self.reference &= step.reference
        return x
