"""The native engine of one stream: state and buffers, runners per width."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pulse.engine.isa import native
from pulse.engine.native.compile import NativeModel
from pulse.engine.native.lower.program import Layout
from pulse.engine.native.memory import View

MOST = 16  # granules in one pulse: wider ones gain nothing


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
        self._runners: dict[int, Any] = {}
        self.most = MOST * info.granularity
        self._fed = next(p for p in info.inputs if p.axis is not None)
        self._runner(width)
        self.reset()

    @property
    def widths(self) -> list[int]:
        """Source frames of the pulses that are ready to run."""
        return sorted(self._runners)

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
        """Outputs by name, new arrays, for the inputs of one pulse of any legal width."""
        frames = feeds[self._fed.name].shape[self._fed.axis or 0]
        width = frames * self._fed.rate.denominator // self._fed.rate.numerator
        runner = self._runner(width)
        for number, port in enumerate(self._info.inputs):
            runner.bind(number, feeds[port.name])
        results = {}
        for number, port in enumerate(self._info.outputs, len(self._info.inputs)):
            shape = tuple(port.frames(width) if i == port.axis else int(d) for i, d in enumerate(port.shape))
            results[port.name] = np.empty(shape, np.float32)
            runner.bind(number, results[port.name])
        length = self._info.length
        runner.run(int(feeds[length]) if length else 0)
        return results

    def _runner(self, width: int) -> Any:
        found = self._runners.get(width)
        if found is None:
            made = self._model.at(width)
            names = [p.name for p in self._info.inputs], [p.name for p in self._info.outputs]
            found = native().Runner(made.program, self._state, self._model.huge, *names)
            self._runners[width] = found
        return found
