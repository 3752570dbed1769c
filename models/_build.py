"""A tiny graph builder: seeded weights, names and shape chains in the form exporters emit.

The helpers write what a tracing exporter would have written, noise included: pads computed by a chain of
constants, flattening by Shape/Slice/Concat/Reshape, initial recurrent states built from shapes. A model is made of
`Net` calls only, so that a builder file reads like the network it describes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Dims = Sequence[int | str]


class Net:
    """One graph under construction; values are their names.

    Args:
        name: graph name.
        seed: of the weights, which are drawn in the order of the calls.
        opset: decides whether axes are inputs or attributes.
    """

    def __init__(self, name: str, seed: int = 0, opset: int = 17) -> None:
        self.name, self.opset, self.rng = name, opset, np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self._scopes: list[str] = []
        self._seen: Counter[str] = Counter()

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names made inside start with the module's path."""
        self._scopes.append(name)
        yield
        self._scopes.pop()

    def input(self, name: str, dims: Dims) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(dims)))
        return name

    def output(self, name: str, dims: Dims) -> None:
        """Declares the value `name` (made with `out=name`) as an output."""
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(dims)))

    def weight(self, name: str, value: np.ndarray) -> str:
        full = ".".join([*self._scopes, name])
        if full in self.weights:
            raise ValueError(f"weight named twice: {full}")
        self.weights[full] = np.ascontiguousarray(value, np.float32)
        return full

    def draw(self, name: str, dims: Sequence[int], spread: float) -> str:
        """A weight with standard deviation `spread`, uniform: trained nets have no long tails either."""
        return self.weight(name, self.rng.uniform(-1, 1, dims) * spread * 3**0.5)

    def op(self, kind: str, *args: str, out: str | Sequence[str] = (), **attrs: Any) -> str:
        """Adds a node and returns its first output; `out` names the outputs instead of the exporter's scheme."""
        base = "/" + "/".join([*self._scopes, kind])
        count, self._seen[base] = self._seen[base], self._seen[base] + 1
        name = f"{base}_{count}" if count else base
        outs = [out] if isinstance(out, str) else list(out) or [f"{name}_output_0"]
        self.nodes.append(helper.make_node(kind, list(args), outs, name, **attrs))
        return outs[0]

    def const(self, value: Any, dtype: Any = np.int64) -> str:
        return self.op("Constant", value=numpy_helper.from_array(np.array(value, dtype)))

    def axes_op(self, kind: str, x: str, axes: Sequence[int], since: int = 13, **attrs: Any) -> str:
        """Squeeze, Unsqueeze (axes are an input since 13), ReduceMean (since 18)."""
        if self.opset >= since:
            return self.op(kind, x, self.const(list(axes)), **attrs)
        return self.op(kind, x, axes=list(axes), **attrs)

    def dim(self, x: str, axis: int) -> str:
        """A one-element tensor holding the length of `axis`, as tracing leaves it."""
        return self.axes_op("Unsqueeze", self.op("Gather", self.op("Shape", x), self.const(axis), axis=0), [0])

    def flatten_from(self, x: str, axis: int) -> str:
        """Merges `axis` and all after it (Shape, Slice, Concat, Reshape)."""
        shape = self.op("Shape", x)
        zero = self.const([0])
        kept = self.op("Slice", shape, zero, self.const([axis]), self.const([0]))
        return self.op("Reshape", x, self.op("Concat", kept, self.const([-1]), axis=0))

    def pad(self, x: str, torch_pads: Sequence[int], rank: int) -> str:
        """Constant padding given last axis first, turned into ONNX order by the chain every exporter emits."""
        short = self.const(list(torch_pads))
        rest = self.op("ConstantOfShape", self.const([2 * rank - len(torch_pads)]), value=_zero(TensorProto.INT64))
        pairs = self.op("Reshape", self.op("Concat", short, rest, axis=0), self.const([-1, 2]))
        last, far = self.const([-1]), self.const([-np.iinfo(np.int64).max])
        turned = self.op("Slice", pairs, last, far, self.const([0]), self.const([-1]))
        flat = self.op("Reshape", self.op("Transpose", turned, perm=[1, 0]), self.const([-1]))
        pads = self.op("Cast", flat, to=TensorProto.INT64)
        return self.op("Pad", x, pads, self.const(0, np.float32), mode="constant")

    def conv(self, x: str, cin: int, cout: int, kernel: Sequence[int], gain: float = 1.0, **attrs: Any) -> str:
        """Conv with bias; `kernel`, `strides`, `pads`, `dilations`, `group` as in ONNX."""
        n, group = len(kernel), attrs.pop("group", 1)
        fan_in = cin // group * int(np.prod(kernel))
        w = self.draw("weight", [cout, cin // group, *kernel], gain / fan_in**0.5)
        spatial = {"dilations": [1] * n, "pads": [0] * 2 * n, "strides": [1] * n} | attrs
        return self.op("Conv", x, w, self.draw("bias", [cout], 0.3), group=group, kernel_shape=list(kernel), **spatial)

    def linear(self, x: str, fan_in: int, fan_out: int, gain: float = 1.0) -> str:
        """MatMul then Add, as a linear layer on the last axis is exported."""
        y = self.op("MatMul", x, self.draw("weight", [fan_in, fan_out], gain / fan_in**0.5))
        return self.op("Add", self.draw("bias", [fan_out], 0.3), y)

    def grouped_linear(self, x: str, fan_in: int, fan_out: int, groups: int, gain: float = 1.4) -> str:
        """`[B,T,fan_in]` to `[B,T,fan_out]` in independent groups: Reshape, Einsum, Reshape, bias."""
        i, h = fan_in // groups, fan_out // groups
        split = self.op("Concat", self.dim(x, 0), self.dim(x, 1), self.const([groups]), self.const([i]), axis=0)
        w = self.draw("weight", [groups, i, h], gain / i**0.5)
        y = self.op("Einsum", self.op("Reshape", x, split), w, equation="btgi,gih->btgh")
        return self.op("Add", self.flatten_from(y, 2), self.draw("bias", [fan_out], 0.3))

    def gru(self, x: str, size_in: int, size: int, out: str = "") -> str:
        """Batch-first GRU over `[B,T,size_in]` with drawn weights."""
        w = self.draw("weight_ih", [1, 3 * size, size_in], 1 / size_in**0.5)
        r = self.draw("weight_hh", [1, 3 * size, size], 0.7 / size**0.5)
        return self.gru_with(x, w, r, self.draw("bias", [1, 6 * size], 0.2), size, out)

    def gru_with(self, x: str, w: str, r: str, b: str, size: int, out: str = "") -> str:
        """Batch-first GRU with given weights, and an initial state of zeros built from the input's shape."""
        h0_shape = self.op("Concat", self.const([1]), self.dim(x, 0), self.const([size]), axis=0)
        h0 = self.op("ConstantOfShape", h0_shape, value=_zero(TensorProto.FLOAT))
        major = self.op("Transpose", x, perm=[1, 0, 2])
        y = self.op("GRU", major, w, r, b, "", h0, hidden_size=size, linear_before_reset=1)
        y = self.axes_op("Squeeze", y, [1])
        return self.op("Transpose", y, perm=[1, 0, 2], out=out or ())

    def model(self) -> onnx.ModelProto:
        """The finished model, checked; of the IR version its opset belongs to."""
        held = [numpy_helper.from_array(value, name) for name, value in self.weights.items()]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, held)
        ir = 7 if self.opset < 15 else 8
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=ir)
        made.producer_name = "pulse"
        onnx.checker.check_model(made, full_check=True)
        return made


def _zero(dtype: int) -> onnx.TensorProto:
    return helper.make_tensor("value", dtype, [1], [0])
