"""A pulsed model for the native engine: its weights, and a program per width made on first use."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import onnx

from pulse.engine.failure import unsupported
from pulse.engine.isa import current, native
from pulse.engine.native.lower.context import Unsupported, supported_isa
from pulse.engine.native.lower.program import Layout, lower
from pulse.engine.native.net import build
from pulse.engine.native.passes import run_passes
from pulse.engine.native.plan import Plan, WeightStore
from pulse.engine.pick import Picks
from pulse.errors import PulseError
from pulse.manifest import Manifest

if TYPE_CHECKING:
    from pulse._native import Program, State
    from pulse.model import PulsedModel

# Lowering takes a graph to be whole: one that is not comes to grief in its own way.
_MALFORMED = (
    ArithmeticError, AssertionError, LookupError, MemoryError, StopIteration, TypeError, Unsupported, ValueError,
)  # fmt: skip


@dataclass
class Compiled:
    """One width: the plan with its steps, and the native program made from it."""

    plan: Plan
    layout: Layout
    program: Program


class NativeModel:
    """Shared by all streams of a model."""

    def __init__(
        self,
        proto: onnx.ModelProto,
        info: Manifest,
        isa: str | None = None,
        huge: bool | None = None,
        picker: Picks | None = None,
        weights: str = "f32",
    ) -> None:
        """
        Args:
            huge: whether memory is advised into huge pages; by default unless PULSE_HUGE_PAGES is 0.
            picker: picks the kernels of products; without one they go by the rule.
            weights: what large weights are stored in, "f32" or "bf16".
        """
        self.info = info
        self.picker = picker
        self.isa = current(isa)
        if not supported_isa(self.isa):
            raise PulseError(
                "engine-unsupported",
                node="native",
                required="an instruction set with vector steps",
                found=self.isa,
                remedy="choose --engine onnxruntime",
            )
        self.huge = os.environ.get("PULSE_HUGE_PAGES", "1") != "0" if huge is None else huge
        self._proto = proto
        self.weights = weights
        self._store = WeightStore(self.huge, weights)
        self._widths: dict[int, Compiled] = {}
        self._making = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made anew: native programs stay in their process."""
        return NativeModel, (self._proto, self.info, self.isa, self.huge, self.picker, self.weights)

    def at(self, width: int) -> Compiled:
        """The program for pulses of `width` source frames. Raises PulseError `engine-unsupported`."""
        found = self._widths.get(width)
        if found is not None:
            return found
        with self._making:
            if width not in self._widths:
                try:
                    self._widths[width] = self._compiled(width)
                except _MALFORMED as error:
                    raise unsupported("native", "a graph whose every node is as ONNX defines it", error) from error
            return self._widths[width]

    def _compiled(self, width: int) -> Compiled:
        net = build(self._proto, self.info, width)
        run_passes(net)
        plan, layout = lower(net, self.isa, self._store, self.picker)
        return Compiled(plan, layout, plan.make(*self._store.finish()))

    def with_picker(self, picker: Picks | None) -> NativeModel:
        """The same model, its kernels picked by another."""
        return NativeModel(self._proto, self.info, self.isa, self.huge, picker, self.weights)

    def new_state(self, layout: Layout) -> State:
        """Memory of one stream at its start."""
        made: State = native().State(layout.block, layout.windows, len(layout.scalars))
        return made


_KNOWN = "_native_model"


def compiled(model: PulsedModel, weights: str = "f32") -> NativeModel:
    """The model's native form with weights of a type, made once. Raises PulseError `engine-unsupported`,
    `engine-missing`."""
    from pulse.costmodel.pick import picker

    forms: dict[str, NativeModel] = model.__dict__.setdefault(_KNOWN, {})
    if weights not in forms:
        own = picker(model.path, source=model.info.source_name, hints=model.hints)
        made = NativeModel(model.proto, model.info, own.isa, picker=own, weights=weights)
        made.at(model.info.granularity if model.info.pulse == "dynamic" else int(model.info.pulse))
        forms[weights] = made
    return forms[weights]
