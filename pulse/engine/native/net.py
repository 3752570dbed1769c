"""A pulsed graph at one width: every value has a type and a shape of numbers, what is constant is folded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import numpy_helper

from pulse.errors import PulseError
from pulse.graph.fold import fold
from pulse.graph.infer import infer
from pulse.graph.ir import Node
from pulse.graph.sizes import check_sizes
from pulse.manifest import Manifest
from pulse.streaming.functions import DOMAIN

Type = tuple[int, tuple[int, ...]]  # ONNX element type, shape
LARGEST_FOLD = 1 << 24  # elements; larger results are not worth computing ahead


@dataclass
class Net:
    """Nodes in topological order over typed values.

    Attributes:
        info: the manifest; `width` is the number of source frames of one pulse.
        initials: per state, what it starts as where that is not zeros: an array, or the name of an input.
    """

    info: Manifest
    width: int
    opset: int
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)
    initials: dict[str, np.ndarray | str] = field(default_factory=dict)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.types[name][1]

    def uses(self) -> dict[str, list[Node]]:
        """Nodes that read each value, in order; a node that reads it twice is there twice."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.inputs:
                if name:
                    found.setdefault(name, []).append(node)
        return found

    def makers(self) -> dict[str, Node]:
        """The node that makes each value."""
        return {o: node for node in self.nodes for o in node.outputs if o}

    @property
    def results(self) -> set[str]:
        """Outputs and next states: values that must be there after the pulse."""
        return {p.name for p in self.info.outputs} | {s.output for s in self.info.states}

    def add_constant(self, hint: str, value: np.ndarray) -> str:
        name, count = hint, 0
        while name in self.types or name in self.constants:
            count += 1
            name = f"{hint}.{count}"
        self.constants[name] = value
        self.types[name] = (onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        return name

    def rename(self, old: str, new: str) -> None:
        """Every reader of `old` reads `new`."""
        for node in self.nodes:
            node.inputs = [new if i == old else i for i in node.inputs]

    def prune(self) -> None:
        """Drops nodes that no result needs."""
        alive = set(self.results)
        kept = []
        for node in reversed(self.nodes):
            if any(o in alive for o in node.outputs):
                alive.update(i for i in node.inputs if i)
                kept.append(node)
        self.nodes = kept[::-1]


def build(proto: onnx.ModelProto, info: Manifest, width: int) -> Net:
    """The net of a pulsed model at a width. Raises PulseError `engine-unsupported` where shapes depend on data."""
    opset = next(o.version for o in proto.opset_import if o.domain in ("", "ai.onnx"))
    net = Net(info, width, opset)
    for tensor in proto.graph.initializer:
        net.constants[tensor.name] = numpy_helper.to_array(tensor)
        net.types[tensor.name] = (tensor.data_type, tuple(tensor.dims))
    for port in info.inputs:
        dims = [port.frames(width) if i == port.axis else int(d) for i, d in enumerate(port.shape)]
        net.types[port.name] = (port.dtype, tuple(dims))
    for state in info.states:
        net.types[state.input] = (state.dtype, state.shape)
    if info.length:
        net.types[info.length] = (onnx.TensorProto.INT64, ())
    for node in _sorted([Node.from_proto(item) for item in proto.graph.node], set(net.types)):
        _add(net, node)
    for state in info.states:
        _hold(net, state.output, state.dtype, state.shape)
    for port in info.outputs:
        dims = [port.frames(width) if i == port.axis else int(d) for i, d in enumerate(port.shape)]
        _hold(net, port.name, port.dtype, tuple(dims))
    net.prune()
    return net


def _hold(net: Net, name: str, dtype: int, shape: tuple[int, ...]) -> None:
    """A result must be what the manifest says: its memory is laid out by that."""
    if net.types.get(name) != (dtype, shape):
        raise PulseError(
            "manifest-invalid",
            node=name,
            required=f"type {dtype}, shape {list(shape)}, as the manifest says",
            found=f"{net.types.get(name)}",
            remedy="convert the source model again",
        )


def _sorted(nodes: list[Node], known: set[str]) -> list[Node]:
    """The nodes so that each comes after what it reads."""
    made = set(known)
    done: list[Node] = []
    while nodes:
        waiting = []
        for node in nodes:
            if all(not i or i in made for i in node.inputs):
                made.update(node.outputs)
                done.append(node)
            else:
                waiting.append(node)
        if len(waiting) == len(nodes):
            raise PulseError(
                "invalid-model",
                node=waiting[0].label,
                required="values that are made before they are read",
                found="inputs that nothing makes",
                remedy="convert the source model again",
            )
        nodes = waiting
    return done


def _add(net: Net, node: Node) -> None:
    """Adds a node with the types of its outputs, or its results where all it reads is known."""
    given = [net.constants.get(i) if i else None for i in node.inputs]
    known = all(a is not None or not i for a, i in zip(given, node.inputs, strict=True))
    if node.op == "Shape" and not node.domain and node.inputs[0] in net.types:
        dims = np.array(net.shape(node.inputs[0]), np.int64)
        start, end = node.attrs.get("start", 0), node.attrs.get("end")
        _set_constant(net, node.outputs[0], dims[start:end])
        return
    if known and not node.domain:
        try:
            results = fold(node, given, [net.types[i][0] if i else 0 for i in node.inputs], net.opset)
        except (LookupError, ValueError):
            results = []
        if results and sum(a.size for a, _ in results) <= LARGEST_FOLD:
            for name, (array, _) in zip(node.outputs, results, strict=False):
                if name:
                    _set_constant(net, name, array)
            return
    types = [net.types[i] if i else None for i in node.inputs]
    try:
        if node.domain == DOMAIN and min(node.attrs.get(key, 1) for key in ("num", "den", "per")) < 1:
            raise ValueError("frames counted at no rate")
        found = _FUNCTIONS[node.op](node, types) if node.domain == DOMAIN else infer(node, types, given, net.opset)
    except (ValueError, KeyError) as error:
        raise PulseError(
            "engine-unsupported",
            node=node.label,
            required="shapes that are known before the pulse runs",
            found=str(error)[:200],
            remedy="choose --engine onnxruntime",
        ) from None
    for name, kind in zip(node.outputs, found, strict=False):
        if name:
            net.types[name] = kind
    net.nodes.append(node)


def _set_constant(net: Net, name: str, array: np.ndarray) -> None:
    net.constants[name] = array
    net.types[name] = (onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


# -- shapes of the streaming functions ---------------------------------------------------------------------------------
def _longer(shape: tuple[int, ...], axis: int, by: int) -> tuple[int, ...]:
    return tuple(d + by if i == axis else d for i, d in enumerate(shape))


def _given(types: list[Type | None], index: int) -> Type:
    found = types[index]
    assert found is not None
    return found


def _history(node: Node, types: list[Type | None]) -> list[Type]:
    kind, shape = _given(types, 0)
    _keeps(node, types)
    return [(kind, _longer(shape, node.attrs["axis"], node.attrs["frames"])), _given(types, 1)]


def _delay(node: Node, types: list[Type | None]) -> list[Type]:
    _keeps(node, types)
    return [_given(types, 0), _given(types, 1)]


def _keeps(node: Node, types: list[Type | None]) -> None:
    """What is kept has as many frames as the function is told, and is otherwise like the data."""
    (kind, shape), axis, frames = _given(types, 0), node.attrs["axis"], node.attrs["frames"]
    wanted = kind, tuple(frames if i == axis else d for i, d in enumerate(shape))
    if not 0 <= axis < len(shape) or frames < 1 or _given(types, 1) != wanted:
        raise ValueError(f"{frames} frames on axis {axis} of {list(shape)}, kept in {list(_given(types, 1)[1])}")


def _overlap_add(node: Node, types: list[Type | None]) -> list[Type]:
    kind, shape = _given(types, 0)
    _keeps(node, types)
    return [(kind, _longer(shape, node.attrs["axis"], -node.attrs["frames"])), _given(types, 1)]


def _frames(node: Node, types: list[Type | None]) -> list[Type]:
    taken = _given(types, 0)[1][node.attrs["axis"]]
    return [(onnx.TensorProto.INT64, (taken // node.attrs["per"] * node.attrs["num"] // node.attrs["den"],))]


def _spread(node: Node, types: list[Type | None]) -> list[Type]:
    _, shape = _given(types, 0)
    kind, frame = _given(types, 1)
    frames = shape[node.attrs["axis"]] * node.attrs["num"] // node.attrs["den"]
    return [(kind, np.broadcast_shapes(frame, tuple(frames if h else 1 for h in node.attrs["onehot"])))]


def _recurrent(node: Node, types: list[Type | None]) -> list[Type]:
    kind, shape = _given(types, 0)
    first = _given(types, 4)
    count = 6 if node.op == "LSTM" else 5
    shapes = [None if t is None else t[1] for t in types[:count]]
    shapes.insert(4, None)
    peepholes = types[6] if node.op == "LSTM" else None
    check_sizes(node.op, node.attrs, [*shapes, None if peepholes is None else peepholes[1]], [], [])
    return [(kind, (shape[0], *first[1])), first, first][: len(node.outputs)]


_FUNCTIONS: dict[str, Callable[[Node, list[Type | None]], list[Type]]] = {
    "History": _history,
    "Delay": _delay,
    "Frames": _frames,
    "Mask": lambda node, types: [_given(types, 0)],
    "MaskStart": lambda node, types: [_given(types, 0)],
    "MaskEnd": lambda node, types: [_given(types, 0)],
    "Spread": _spread,
    "OverlapAdd": _overlap_add,
    "GRU": _recurrent,
    "LSTM": _recurrent,
    "RNN": _recurrent,
}
