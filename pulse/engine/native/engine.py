"""The native engine of one stream: state and buffers, runners per width."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pulse.engine.arrays import check_pulse, pulse_shape, pulse_width
from pulse.engine.failure import busy, unsupported
from pulse.engine.isa import native
from pulse.engine.native.compile import NativeModel
from pulse.engine.native.lower.program import Layout
from pulse.engine.native.memory import View

if TYPE_CHECKING:
    from pulse._native import Runner

MOST = 16  # granules in one pulse: wider ones gain nothing


@dataclass(frozen=True)
class Bench:
    """What one width needs: the native runner, and the shapes of outputs by name."""

    runner: Runner
    outputs: dict[str, tuple[int, ...]]


class NativeEngine:
    """Runs pulses of any width; the state stays inside."""

    name = "native"

    def __init__(self, model: NativeModel) -> None:
        self._model = model
        info = model.info
        self._info = info
        width = info.granularity if info.pulse == "dynamic" else int(info.pulse)
        self._layout: Layout = model.at(width).layout
        self._state = model.new_state(self._layout)
        self._benches: dict[int, Bench] = {}
        self.most = MOST * info.granularity
        self._fed = next(p for p in info.inputs if p.axis is not None)
        self._bench(width)
        self.reset()

    @property
    def widths(self) -> list[int]:
        """Source frames of the pulses that are ready to run."""
        return sorted(self._benches)

    # -- state -----------------------------------------------------------------------------------------------------
    def reset(self) -> None:
        """Back to the start."""
        self._state.clear()
        self._put_initials()

    def export(self) -> dict[str, np.ndarray]:
        """A copy of every state, as the graph's own state inputs."""
        found = {}
        for state in self._info.states:
            if state.input in self._layout.scalars:
                value = self._state.scalars[self._layout.scalars.index(state.input)]
                found[state.input] = np.array(value, np.int64)
            else:
                found[state.input] = self._array(self._layout.homes[state.input]).copy()
        return found

    def load(self, states: Mapping[str, np.ndarray]) -> None:
        """Takes over what `export` gave, whatever engine that was."""
        self._state.clear()
        self._state.scalars = [int(states[n]) for n in self._layout.scalars]
        for name, home in self._layout.homes.items():
            self._array(home)[...] = states[name]
        position = self._info.position
        if position is not None and int(states[position]) == 0:
            self._put_initials()

    def _put_initials(self) -> None:
        for name, initial in self._layout.initials.items():
            self._array(self._layout.homes[name])[...] = initial

    def _array(self, home: View) -> np.ndarray:
        """A state's memory, valid until the next pulse."""
        if home.buffer.kind == "window":
            memory = self._state.history(home.buffer.index).reshape(-1)
        else:
            memory = self._state.block
        strides = [4 * s for s in home.strides]
        return np.lib.stride_tricks.as_strided(memory[home.offset :], home.shape, strides)

    # -- running ---------------------------------------------------------------------------------------------------
    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name, new arrays, for the inputs of one pulse of any legal width, and the length if it has one."""
        length = int(feeds[self._info.length]) if self._info.length else 0
        inputs = {p.name: feeds[p.name] for p in self._info.inputs}
        frames = inputs[self._fed.name].shape[self._fed.axis or 0]
        return self.pulse(inputs, frames * self._fed.rate.denominator // self._fed.rate.numerator, length)

    def pulse(self, inputs: dict[str, np.ndarray], width: int, length: int = 0) -> dict[str, np.ndarray]:
        """As `run`, for inputs of `width` source frames. Raises PulseError for arrays that do not fit."""
        outputs = self.try_pulse(inputs, width, length)
        if outputs is None:
            check_pulse(inputs, self._info.inputs, width)
            raise AssertionError("arrays that native code refuses and this check does not")
        return outputs

    def try_pulse(self, inputs: dict[str, np.ndarray], width: int, length: int = 0) -> dict[str, np.ndarray] | None:
        """The same; None, and nothing done, for arrays that do not fit."""
        bench = self._bench(width)
        outputs = {name: np.empty(shape, np.float32) for name, shape in bench.outputs.items()}
        try:
            return outputs if bench.runner.run_on(inputs, outputs, length) else None
        except ValueError:
            raise busy() from None

    def bind(self, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> tuple[Runner, int]:
        """Checks arrays for `step`; the native runner of their width and that width. Raises PulseError."""
        width = pulse_width(inputs, self._info)
        check_pulse(inputs, self._info.inputs, width)
        check_pulse(outputs, self._info.outputs, width, written=True)
        return self._bench(width).runner, width

    def blank(self, width: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Zeros for the inputs and outputs of a pulse."""
        made = [{p.name: np.zeros(pulse_shape(p, width), np.float32) for p in ports} for ports in
                (self._info.inputs, self._info.outputs)]  # fmt: skip
        return made[0], made[1]

    def _bench(self, width: int) -> Bench:
        found = self._benches.get(width)
        if found is None:
            made = self._model.at(width)
            ports = [*self._info.inputs, *self._info.outputs]
            try:
                runner: Runner = native().Runner(
                    made.program,
                    self._state,
                    self._model.huge,
                    [p.name for p in ports],
                    [pulse_shape(p, width) for p in ports],
                    len(self._info.inputs),
                )
            except MemoryError as error:
                raise unsupported(self.name, "buffers that fit into memory", error) from None
            found = Bench(runner, {p.name: pulse_shape(p, width) for p in self._info.outputs})
            self._benches[width] = found
        return found
