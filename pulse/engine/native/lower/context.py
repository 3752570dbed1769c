"""What lowering keeps: where every value lies, and the steps so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from pulse.engine.isa import native
from pulse.engine.native.lower.wishes import Wishes
from pulse.engine.native.memory import Buffer, View, dense, dense_size
from pulse.engine.native.net import Net
from pulse.engine.native.passes.views import is_view
from pulse.engine.native.plan import INTEGER_OPS, Field, Plan, Ref, Step, WeightStore
from pulse.engine.pick import Picks
from pulse.errors import PulseError
from pulse.graph.ir import Node
from pulse.streaming.functions import DOMAIN

INTEGERS = (TensorProto.INT64, TensorProto.INT32)
MASKS = ("Mask", "MaskStart", "MaskEnd")
SLIDING = ("History", "Delay")


class Unsupported(Exception):
    """No native form; the message says of what."""


class Context:
    """Values and their views; `step` appends to the plan."""

    def __init__(self, net: Net, isa: str, weights: WeightStore, picker: Picks | None = None) -> None:
        """`picker` picks the kernels of products; without one they go by the rule."""
        self.net = net
        self.picker = picker
        self.isa = isa
        self.lanes = {"v2": 4, "v3": 8, "v4": 16, "neon": 4}[isa]
        self.weights = weights
        self.plan = Plan(isa)
        self.views: dict[str, View] = {}
        self.slots: dict[str, int] = {}
        self.homes: dict[str, View] = {}  # states in the block, or the frames of a window before the pulse
        self.window_of: dict[str, int] = {}  # number of the window that keeps a state
        self.block = Buffer("state", 0)
        self.wishes = Wishes(net)
        self.uses = net.uses()
        self._windows: dict[str, View] = {}  # by the name of what History or Delay makes
        self._label = ""

    # -- steps -----------------------------------------------------------------------------------------------------
    def at(self, node: Node) -> None:
        """Steps from here on belong to this node."""
        self._label = node.name or node.outputs[0]

    def step(self, kind: str, args: dict[str, Field], tail: Sequence[Field] = (), **facts: object) -> None:
        self.plan.steps.append(Step(kind, self._label, args, list(tail), facts))

    def copy(self, source: View, target: View, when: int | None = None) -> None:
        """target = source, element by element."""
        if 0 in source.shape:
            return
        assert source.unit == target.unit
        if source.unit > 1:
            source, target = elementary(source), elementary(target)
        dims = merged(source.shape, target.strides, source.strides)
        if len(dims) > 5:
            raise Unsupported("a copy of more than five axes")
        dims = [(1, 0, 0)] * (5 - len(dims)) + dims
        # The innermost of target last; before it the innermost of source, so that a transpose is seen as one.
        inner = min(range(4), key=lambda i: (dims[i][0] == 1, dims[i][2] or 1 << 40))
        if dims[inner][2] == 1:
            dims.insert(3, dims.pop(inner))
        args: dict[str, Field] = {"x": ref(source), "y": ref(target), "when": when}
        for i, (count, y, x) in enumerate(dims):
            args |= {f"n{i}": count, f"x{i}": x, f"y{i}": y}
        self.step("copy", args)

    # -- values ----------------------------------------------------------------------------------------------------
    def view(self, name: str) -> View:
        """Where a value lies; constants come to lie among the weights, scalars as tensors in the arena."""
        if name in self.slots and name not in self.views:
            made = self.fresh(self.net.shape(name), unit=self.unit(name))
            op = INTEGER_OPS.index("from_slot" if made.unit > 1 else "truth_of_slot")
            args: dict[str, Field] = {
                "op": op,
                "slot": self.slots[name],
                "y": ref(made),
                "x": None,
                "z": None,
                "w": None,
            }
            self.step("integers", args | {f"n{i}": 1 for i in range(4)})
            self.views[name] = made
        if name not in self.views:
            array, unit = self.net.constants[name], self.unit(name)
            stored = array.astype(np.int64).reshape(-1).view(np.float32) if unit > 1 else array.astype(np.float32)
            self.views[name] = dense(self.weights.put(stored), array.shape, range(array.ndim), unit=unit)
        return self.views[name]

    def constant(self, array: np.ndarray) -> View:
        buffer = self.weights.put(np.asarray(array, np.float32))
        return dense(buffer, np.shape(array), range(np.ndim(array)))

    def unit(self, name: str) -> int:
        """Floats that one element of a value takes: integers are int64."""
        return 2 if self.net.types[name][0] in INTEGERS else 1

    def fresh(
        self,
        shape: Sequence[int],
        order: Sequence[int] | None = None,
        margins: Sequence[tuple[int, int]] | None = None,
        unit: int = 1,
    ) -> View:
        """Memory for the rest of a pulse; with margins, memory of its own whose margins stay zero."""
        lasting = any(any(m) for m in margins or ())
        buffer = Buffer("arena", dense_size(shape, margins) * unit, lasting=lasting)
        self.plan.buffers.append(buffer)
        return dense(buffer, shape, order if order is not None else range(len(shape)), margins, unit=unit)

    def out(self, name: str, order: Sequence[int] | None = None) -> View:
        """Where to put a value: where its reader wants it if that can be, else in the order wished for or given."""
        found = self.target(name)
        if found is None:
            shape, order = self.net.shape(name), self.wishes.orders.get(name, order)
            found = self.fresh(shape, order, self.wishes.margins.get(name), self.unit(name))
        self.views[name] = found
        return found

    def put(self, name: str, view: View) -> None:
        """The value is this view, or a copy of it where it is wanted elsewhere."""
        target = self.target(name)
        if target is not None and not target.same_place(view):
            self.copy(view, target)
            view = target
        self.views[name] = view

    def target(self, name: str) -> View | None:
        """The place in an output, a window or a joined value that a value ends up in."""
        for port in self.plan.ports[len(self.net.info.inputs) :]:
            if self.net.info.outputs[port.index - len(self.net.info.inputs)].name == name:
                return dense(port, self.net.shape(name), range(len(self.net.shape(name))))
        for use in self.uses.get(name, ()):
            found = self._through(name, use)
            if found is not None:
                return found
        return None

    def _through(self, name: str, use: Node) -> View | None:
        shape = self.net.shape(name)
        if use.domain == DOMAIN and use.op in SLIDING and use.inputs[0] == name:
            return self.window(use)[1]
        if use.domain == DOMAIN and use.op in MASKS and len(self.uses[name]) == 1 and name not in self.net.results:
            return self.target(use.outputs[0])
        if use.op == "Concat" and not use.domain:
            whole = self.views.get(use.outputs[0])
            if whole is None:
                whole = self.out(use.outputs[0])
            axis, start = use.attrs["axis"] % len(shape), 0
            for other in use.inputs:
                if other == name:
                    return whole.slice(axis, start, shape[axis])
                start += self.net.shape(other)[axis]
        if is_view(use):
            found = self.target(use.outputs[0])
            if found is not None:
                if use.op == "Transpose":
                    return found.transpose([int(i) for i in np.argsort(use.attrs["perm"])])
                return found.reshape(shape)
        return None

    # -- windows ---------------------------------------------------------------------------------------------------
    def window(self, node: Node) -> tuple[View, View]:
        """Of a History or Delay: all frames, and those of this pulse. The frames before are the state."""
        axis, kept = node.attrs["axis"], node.attrs["frames"]
        shape = self.net.shape(node.inputs[0])
        whole = self._windows.get(node.outputs[0])
        if whole is None:
            state = node.inputs[1]
            if state not in self.window_of:
                raise Unsupported(f"a history that starts as {state}, which is computed")
            index = self.window_of[state]
            margins = self.wishes.margins.get(node.outputs[0]) or ((0, 0),) * len(shape)
            margins = tuple((0, 0) if i == axis else m for i, m in enumerate(margins))
            long = tuple(d + kept if i == axis else d for i, d in enumerate(shape))
            order = (axis, *(i for i in range(len(shape)) if i != axis))
            frame = dense_size(long, margins) // long[axis]
            buffer = Buffer("window", long[axis] * frame, index=index)
            whole = dense(buffer, long, order, margins)
            self._windows[node.outputs[0]] = whole
            self.plan.windows[index], self.plan.advances[index] = buffer, shape[axis]
            self.homes[state] = whole.slice(axis, 0, kept)
        return whole, whole.slice(axis, kept, shape[axis])

    # -- scalars ---------------------------------------------------------------------------------------------------
    def slot(self, name: str) -> int:
        """The slot of an integer or a truth known before the pulse runs."""
        if name in self.slots:
            return self.slots[name]
        value = self.net.constants.get(name)
        if value is None or value.size != 1:
            raise Unsupported(f"{name}, integers that are computed")
        return self.plan.scalars.constant(int(value.reshape(-1)[0]))


def ref(view: View) -> Ref:
    """The start of a view."""
    return Ref(view.buffer, view.offset)


def elementary(view: View) -> View:
    """Each element as the floats it is made of, along one more axis."""
    return View(view.buffer, view.offset, (*view.shape, view.unit), (*view.strides, 1))


def merged(shape: Sequence[int], *strides: Sequence[int]) -> list[tuple[int, ...]]:
    """Loops over a shape, (count, stride of each operand), the first operand's innermost last; as few as possible."""
    dims = [(d, *s) for d, *s in zip(shape, *strides, strict=True) if d != 1]
    dims.sort(key=lambda d: [-abs(s) for s in d[1:]])
    found: list[tuple[int, ...]] = []
    for dim in dims:
        if found and all(a == b * dim[0] for a, b in zip(found[-1][1:], dim[1:], strict=True)):
            found[-1] = (found[-1][0] * dim[0], *dim[1:])
        else:
            found.append(dim)
    return found or [(1, *[0] * len(strides))]


def supported_isa(isa: str) -> bool:
    return isa in ("v2", "v3", "v4", "neon") and isa in list(native().isas())


def refuse(node: Node, what: str) -> PulseError:
    return PulseError(
        "engine-unsupported",
        node=node.label,
        required="operators that the native engine has",
        found=what,
        remedy="choose --engine onnxruntime for this model",
    )
