"""The manifest: what a pulsed file says about itself, as JSON under `pulse.manifest` in its metadata."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from onnx import TensorProto, helper

from pulse.errors import PulseError
from pulse.graph.expr import Expr, most_ahead
from pulse.graph.limits import MOST_GRAIN, frames, grain, numbers

KEY = "pulse.manifest"
VERSION = 1


@dataclass(frozen=True)
class Port:
    """An input or output of a pulsed model. `shape` is that of one pulse; `axis` is None for an input without a signal.

    Output frames come `delay` frames (of its own rate) late; `length` is how many there are in all, in the signal's
    length `S`.
    """

    name: str
    dtype: int
    shape: tuple[int | str, ...]
    axis: int | None
    rate: Fraction
    delay: int
    length: Expr

    def __str__(self) -> str:
        """`emb [1, 4, 64]`, with the delay where there is one."""
        late = f" delay {self.delay}" if self.delay else ""
        return f"{self.name} [{', '.join(map(str, self.shape))}]{late}"

    def frames(self, source: int) -> int:
        """Frames of this port for that many source frames."""
        return source * self.rate.numerator // self.rate.denominator


@dataclass(frozen=True)
class StatePort:
    """A state pair: input, output which is its next value, shape, ONNX element type. All start as zeros."""

    input: str
    output: str
    shape: tuple[int, ...]
    dtype: int


@dataclass(frozen=True)
class Manifest:
    """Everything a driver of the file needs besides the graph itself."""

    source_name: str
    source_sha256: str
    symbol: str
    pulse: int | str
    granularity: int
    length_multiple: int
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    states: list[StatePort] = field(default_factory=list)
    length: str | None = None
    position: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The JSON form; keys are stable, more may be added."""
        return {
            "version": VERSION,
            "source": {"name": self.source_name, "sha256": self.source_sha256},
            "symbol": self.symbol,
            "pulse": self.pulse,
            "granularity": self.granularity,
            "length_multiple": self.length_multiple,
            "inputs": [_port(p) for p in self.inputs],
            "outputs": [_port(p) for p in self.outputs],
            "states": [{**asdict(s), "shape": list(s.shape)} for s in self.states],
            "length": self.length,
            "position": self.position,
        }

    def dumps(self) -> str:
        return json.dumps(self.as_dict())


def _port(port: Port) -> dict[str, Any]:
    return {
        "name": port.name,
        "dtype": port.dtype,
        "shape": list(port.shape),
        "axis": port.axis,
        "rate": f"{port.rate.numerator}/{port.rate.denominator}",
        "delay": port.delay,
        "length": str(port.length),
    }


def loads(text: str, label: str) -> Manifest:
    """Reads a manifest. Raises PulseError for a newer version and for anything malformed."""
    try:
        data = json.loads(text)
        version = data["version"]
        if isinstance(version, int) and version < 1:
            raise ValueError(f"version {version}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _invalid(label, error) from None
    if not isinstance(version, int) or version > VERSION:
        raise PulseError(
            "manifest-newer",
            node=label,
            required=f"a manifest of version {VERSION} or older",
            found=f"version {version}",
            remedy="upgrade pulse, or convert the source model again with this version",
        )
    try:
        info = Manifest(
            _text(data["source"]["name"]),
            _text(data["source"]["sha256"]),
            _text(data["symbol"]),
            data["pulse"] if data["pulse"] == "dynamic" else _count(data["pulse"]),
            _count(data["granularity"]),
            _count(data.get("length_multiple", 1)),
            [_read_port(p) for p in data["inputs"]],
            [_read_port(p) for p in data["outputs"]],
            [
                StatePort(_text(s["input"]), _text(s["output"]), _sizes(s["shape"]), _dtype(s["dtype"]))
                for s in data["states"]
            ],
            None if data["length"] is None else _text(data["length"]),
            None if data.get("position") is None else _text(data["position"]),
        )
        _check(info)
        return info
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, SyntaxError, RecursionError) as error:
        raise _invalid(label, error) from None


def _check(info: Manifest) -> None:
    """What every conversion holds to, and a driver relies on. Raises ValueError."""
    names = [p.name for p in info.inputs] + [s.input for s in info.states] + [info.length or ""]
    made = [p.name for p in info.outputs] + [s.output for s in info.states]
    if len(set(names)) < len(names) or len(set(made)) < len(made):
        raise ValueError("a name twice")
    if not any(p.axis is not None for p in info.inputs) or not info.outputs:
        raise ValueError("no streaming input, or no output")
    if info.pulse != "dynamic" and int(info.pulse) % info.granularity:
        raise ValueError(f"a pulse of {info.pulse} at a granularity of {info.granularity}")
    if info.position is not None and not any((s.input, s.shape) == (info.position, ()) for s in info.states):
        raise ValueError(f"position {info.position!r} is no scalar state")
    for port in (*info.inputs, *info.outputs):
        _check_port(port, info, port in info.outputs)


def _check_port(port: Port, info: Manifest, output: bool) -> None:
    still = [d for i, d in enumerate(port.shape) if i != port.axis]
    if any(isinstance(d, str) for d in still):
        raise ValueError(f"`{port.name}` has an open size beside the signal's")
    if 0 in numbers([int(d) for d in still], "a frame"):
        raise ValueError(f"`{port.name}` has empty frames")
    if port.axis is None:
        if output:
            raise ValueError(f"output `{port.name}` has no stream axis")
        return
    grain(port.rate, "a rate")
    frames(port.delay, "a delay")
    if info.granularity % port.rate.denominator:
        raise ValueError(f"`{port.name}` has a rate of {port.rate} at a granularity of {info.granularity}")
    if info.pulse != "dynamic" and port.shape[port.axis] != int(info.pulse) * port.rate:
        raise ValueError(f"`{port.name}` has {port.shape[port.axis]} frames in a pulse of {info.pulse}")
    # Frames leave once they are certain to exist, and the tail has an end.
    grain(port.length.period, "a pattern of lengths")
    signals = port.length.trials()
    tail = int((port.length.at(signals) - signals * port.rate.numerator // port.rate.denominator).max())
    if port.length.slope != port.rate or most_ahead(port.rate, port.length, info.granularity) > port.delay:
        raise ValueError(
            f"`{port.name}` has a length of {port.length} at a rate of {port.rate} and a delay of {port.delay}"
        )
    frames(tail, "a tail")


def _count(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= MOST_GRAIN:
        raise ValueError(f"{value!r} is no count from 1 to {MOST_GRAIN}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is no name")
    return value


def _dtype(value: Any) -> int:
    if type(value) is not int or value == TensorProto.STRING:
        raise ValueError(f"{value!r} is no element type of numbers")
    helper.tensor_dtype_to_np_dtype(value)
    return value


def _sizes(value: Any) -> tuple[int, ...]:
    if not all(type(d) is int and d >= 0 for d in value):
        raise ValueError(f"{value!r} is no shape")
    return numbers(value, "a state")


def _read_port(data: dict[str, Any]) -> Port:
    shape = tuple(d if isinstance(d, str) else _sizes([d])[0] for d in data["shape"])
    axis = data["axis"]
    if axis is not None and not (type(axis) is int and 0 <= axis < len(shape)):
        raise ValueError(f"axis {axis} of {len(shape)}")
    rate = Fraction(_text(data["rate"]))
    if rate <= 0 and axis is not None:
        raise ValueError(f"rate {rate}")
    if type(data["delay"]) is not int or data["delay"] < 0:
        raise ValueError(f"delay {data['delay']}")
    length = Expr.parse(_text(data["length"]))
    return Port(_text(data["name"]), _dtype(data["dtype"]), shape, axis, rate, data["delay"], length)


def _invalid(label: str, error: object) -> PulseError:
    return PulseError(
        "manifest-invalid",
        node=label,
        required="a complete manifest",
        found=f"{type(error).__name__}: {error}"[:200],
        remedy="convert the source model again",
    )
