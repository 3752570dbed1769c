"""The walk: every node of the source gets its streaming form, in order, from the facts of its inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import lcm

import numpy as np
import onnx

from pulse.errors import PulseError
from pulse.graph.expr import Expr, NotAffine
from pulse.graph.fold import fold
from pulse.graph.functions import function_body
from pulse.graph.ir import Graph, Node, captured, closed
from pulse.graph.limits import TooLarge, numbers
from pulse.graph.signature import Input
from pulse.streaming.context import Context
from pulse.streaming.emit import Emitter
from pulse.streaming.facts import Const, Fact, Poison, Static, Stream, Uniform, Value
from pulse.streaming.rules import load_rules

RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}


MALFORMED = (ValueError, LookupError, TypeError, AssertionError, ArithmeticError, StopIteration)


@dataclass
class Analysis:
    """What the walk found: a value per name of the source, and the graph emitted on the way."""

    values: dict[str, Value]
    context: Context
    granularity: int
    order: list[str] = field(default_factory=list)  # streams, as they came: what `inspect` prints
    obstacles: list[Poison] = field(default_factory=list)
    delivered: set[str] = field(default_factory=set)  # output names already given out

    @property
    def emit(self) -> Emitter:
        return self.context.emit


def analyse(graph: Graph, inputs: list[Input], promise: int = 1) -> Analysis:
    """Walks the graph, again if the rates found ask for a larger granularity. Needs at least one input that streams."""
    granularity = 1
    while True:
        found = _Walk(graph, inputs, granularity, promise).run()
        if found.granularity == granularity:
            return found
        granularity = found.granularity


class _Walk:
    def __init__(self, graph: Graph, inputs: list[Input], granularity: int, promise: int) -> None:
        self.graph, self.inputs = graph, inputs
        reserved = [p.name for p in graph.inputs]
        self.emit = Emitter(reserved, [p.name for p in graph.outputs])
        self.context = Context(self.emit, graph.opset, granularity, promise)
        self.rules = load_rules()
        self.values: dict[str, Value] = {"": Value(Const(np.zeros(0), 0))}
        self.context.outer = self.values
        self.analysis = Analysis(self.values, self.context, granularity)

    def run(self) -> Analysis:
        for item in self.inputs:
            try:
                numbers([1 if i == item.axis else d for i, d in enumerate(item.shape)], "a frame")
            except TooLarge as error:
                raise too_large(item.name, error) from None
            if item.axis is None:
                self.values[item.name] = Value(Static(item.dtype, item.shape), item.name)
                continue
            rate = item.length.slope
            fact = Stream(item.dtype, item.shape, item.axis, rate, 0, item.length)
            self.values[item.name] = Value(fact, item.name)
        clock = next(i for i in self.inputs if i.axis is not None)
        self.emit.set_clock(clock.name, clock.axis or 0, clock.factor)
        for name, array in self.graph.constants.items():
            self.values[name] = Value(Const(array, onnx.helper.np_dtype_to_tensor_dtype(array.dtype)), name)
        for node in self.graph.nodes:
            self.visit(node)
        streams = [v.fact for v in self.values.values() if isinstance(v.fact, Stream)]
        self.analysis.granularity = lcm(1, *(s.rate.denominator for s in streams))
        return self.analysis

    def visit(self, node: Node) -> None:
        """One node; what it cannot be is recorded in its outputs, for whoever needs them."""
        self.context.label = node.label
        try:
            inputs = [self.value(name, node) if name else None for name in node.inputs]
            poison = next((v.fact for v in inputs if v is not None and isinstance(v.fact, Poison)), None)
            if poison is None and node.op in ("If", "Loop", "Scan"):
                outer = [self.value(n, node) for n in captured(node)]
                poison = next((v.fact for v in outer if isinstance(v.fact, Poison)), None)
            if poison is not None:
                # What is made of a dropped kind (a last state) is of that kind only as long as no stream joins it.
                mixed = any(v is not None and isinstance(v.fact, (Stream, Uniform)) for v in inputs)
                fact = Poison(poison.error, poison.droppable and not mixed)
                outputs = [Value(fact)] * len(node.outputs)
            else:
                outputs = [self.context.settle(v) for v in self.apply(node, inputs)]
        except PulseError as error:
            outputs = self.obstacle(node, error, error.code in ("last-state", "from-the-end"))
        except NotAffine as error:
            outputs = self.obstacle(node, self.not_affine(node, error))
        except (TooLarge, MemoryError) as error:
            outputs = self.obstacle(node, too_large(node.label, error))
        except MALFORMED as error:
            # A rule takes a node to be as ONNX defines it: one that is not comes to grief in its own way.
            outputs = self.obstacle(node, malformed(node, error))
        for name, value in zip(node.outputs, outputs, strict=False):
            if name:
                self.values[name] = value
                if isinstance(value.fact, Stream):
                    self.analysis.order.append(name)

    def obstacle(self, node: Node, error: PulseError, droppable: bool = False) -> list[Value]:
        """The outputs of a node that cannot stream."""
        fact = Poison(error, droppable)
        self.analysis.obstacles.append(fact)
        return [Value(fact)] * len(node.outputs)

    def value(self, name: str, node: Node) -> Value:
        if name not in self.values:
            raise PulseError(
                "invalid-model",
                node=node.label,
                required="inputs that come from somewhere",
                found=f"`{name}`, which nothing produces",
                remedy="export the model again",
            )
        return self.values[name]

    @staticmethod
    def not_affine(node: Node, error: NotAffine) -> PulseError:
        square = "*" in str(error)
        return PulseError(
            "attention-unbounded" if square else "depends-on-length",
            node=node.label,
            required="sizes and values that grow with the signal's length at most in proportion",
            found=str(error)[:200],
            remedy="a stream has no length until it ends: leave this part out of the streaming model",
        )

    def apply(self, node: Node, inputs: list[Value | None]) -> list[Value]:
        facts = [None if v is None else v.fact for v in inputs]
        if node.op in RANDOM:
            raise PulseError(
                "stateful-random",
                node=node.label,
                required="operators whose result follows from their inputs",
                found=node.op,
                remedy="make the noise outside the model and give it as an input",
            )
        if node.op in ("Shape", "Size"):
            return [_shape(node, inputs[0])]
        if node.op == "If":
            return self.branch(node, inputs[0])
        if all(f is None or isinstance(f, Const) for f in facts) and not self.reads_streams(node):
            try:
                return self.known(node, facts)  # type: ignore[arg-type]
            except (LookupError, NotAffine):
                if node.op not in self.rules:
                    raise
        elif not any(_follows_signal(f) for f in facts) and not self.reads_streams(node):
            return self.static(node, inputs)
        return self.streaming(node, inputs)

    def reads_streams(self, node: Node) -> bool:
        if node.op not in ("Loop", "Scan"):
            return False
        return any(not isinstance(self.value(n, node).fact, (Const, Static)) for n in captured(node))

    def known(self, node: Node, facts: list[Const | None]) -> list[Value]:
        arrays = [None if f is None else f.value for f in facts]
        dtypes = [0 if f is None else f.dtype for f in facts]
        outer = {n: self.value(n, node).fact for n in captured(node)}
        constants = {n: f.value for n, f in outer.items() if isinstance(f, Const) and not f.symbolic}
        attrs = {k: closed(v, constants) if isinstance(v, onnx.GraphProto) else v for k, v in node.attrs.items()}
        run = Node(node.op, node.inputs, node.outputs, attrs, node.name)
        try:
            results = fold(run, arrays, dtypes, self.graph.opset)
        except ValueError as error:
            if isinstance(error, (NotAffine, TooLarge)):
                raise
            raise Context.misfit(node, error) from None
        return [Value(Const.of(a, t), n) for (a, t), n in zip(results, node.outputs, strict=True)]

    def static(self, node: Node, inputs: list[Value | None]) -> list[Value]:
        found = self.context.shapes(node, inputs)
        names = self.emit.node(
            node.op, [self.context.use(v) for v in inputs], node.attrs, node.outputs, label=node.name
        )
        return [Value(Static(t, s), n) for (t, s), n in zip(found, names, strict=True)]

    def streaming(self, node: Node, inputs: list[Value | None]) -> list[Value]:
        rule = self.rules.get(node.op)
        if rule is None:
            body = function_body(node, [None if v is None else v.fact for v in inputs], self.graph.opset)
            if body:
                return self.expand(node, body, inputs)
            raise PulseError(
                "no-rule",
                node=node.label,
                required="an operator with a streaming form",
                found=f"{node.op} on the signal",
                remedy="leave this output out with --outputs, or express the operator by others",
            )
        if not rule.uniform:
            inputs = [
                self.context.materialise(v) if v is not None and isinstance(v.fact, Uniform) else v for v in inputs
            ]
        if any(v is not None and isinstance(v.fact, Static) for v in inputs):
            # What is known at run time only cannot be part of a prefix.
            inputs = [self.at_zero(v) for v in inputs]
        return rule.function(self.context, node, inputs)

    def expand(self, node: Node, body: list[Node], inputs: list[Value | None]) -> list[Value]:
        """The nodes of the operator's standard definition, in its place."""
        errors = len(self.analysis.obstacles)
        for inner in body:
            self.visit(inner)
            if len(self.analysis.obstacles) > errors:
                error = self.analysis.obstacles.pop().error
                error.node = node.label
                raise error
        return [self.values[n] if n else self.values[""] for n in node.outputs]

    def at_zero(self, value: Value | None) -> Value | None:
        if value is not None and isinstance(value.fact, Stream) and value.fact.delay < 0:
            return self.context.align(value, 0)
        return value

    def branch(self, node: Node, condition: Value | None) -> list[Value]:
        """An If whose condition is known is the branch it takes."""
        if condition is None or not isinstance(condition.fact, Const) or condition.fact.symbolic:
            raise PulseError(
                "depends-on-length",
                node=node.label,
                required="a condition that is known at conversion",
                found="one that depends on the signal",
                remedy="export the model without control flow",
            )
        taken = "then_branch" if condition.fact.value.reshape(-1)[0] else "else_branch"
        body: onnx.GraphProto = node.attrs[taken]
        outer = dict(self.values)
        for tensor in body.initializer:
            array = onnx.numpy_helper.to_array(tensor)
            self.values[tensor.name] = Value(Const.of(array), tensor.name)
        for proto in body.node:
            self.visit(Node.from_proto(proto))
        results = [self.value(o.name, node) for o in body.output]
        inner = set(self.values) - set(outer)
        self.values.update(outer)
        for name in inner:
            del self.values[name]
        self.analysis.order = [name for name in self.analysis.order if name not in inner]
        return results


def malformed(node: Node, error: Exception) -> PulseError:
    """A node whose attributes or inputs are not what its operator needs."""
    return PulseError(
        "invalid-model",
        node=node.label,
        required=f"attributes and inputs that fit {node.op}",
        found=f"{type(error).__name__}: {error}"[:200],
        remedy="export the model again; if it runs in ONNX Runtime as it is, report this with the model",
    )


def too_large(node: str, error: Exception) -> PulseError:
    """A stream that would need more room than any has."""
    limit = error if isinstance(error, TooLarge) else TooLarge("what fits into memory", "more")
    return PulseError(
        "state-too-large",
        node=node,
        required=limit.required,
        found=limit.found,
        remedy="check the sizes in the model: kernels, dilations, strides, pads, shapes",
    )


def _follows_signal(fact: Fact | None) -> bool:
    """A stream, or a size that depends on the signal's length."""
    return isinstance(fact, (Stream, Uniform)) or (isinstance(fact, Const) and fact.symbolic)


def _shape(node: Node, value: Value | None) -> Value:
    assert value is not None
    dims = value.fact.dims  # type: ignore[union-attr]
    start, end = node.attrs.get("start", 0), node.attrs.get("end", len(dims))
    if node.op == "Size":
        total = Expr.of(1)
        for d in dims:
            total = total * d
        array = np.array(total, dtype=object)
    else:
        array = np.empty(len(dims[start:end]), dtype=object)
        array[:] = dims[start:end]
    return Value(Const.of(array, onnx.TensorProto.INT64), node.outputs[0])
