"""The manifest: what a pulsed file says about itself, as JSON under `pulse.manifest` in its metadata."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from pulse.errors import PulseError
from pulse.graph.expr import Expr

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
    except (ValueError, KeyError, TypeError) as error:
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
        return Manifest(
            str(data["source"]["name"]),
            str(data["source"]["sha256"]),
            str(data["symbol"]),
            data["pulse"] if data["pulse"] == "dynamic" else _count(data["pulse"]),
            _count(data["granularity"]),
            _count(data.get("length_multiple", 1)),
            [_read_port(p) for p in data["inputs"]],
            [_read_port(p) for p in data["outputs"]],
            [
                StatePort(str(s["input"]), str(s["output"]), tuple(int(d) for d in s["shape"]), int(s["dtype"]))
                for s in data["states"]
            ],
            _name(data["length"]),
            _name(data.get("position")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, SyntaxError, RecursionError) as error:
        raise _invalid(label, error) from None


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{value!r} is no positive count")
    return value


def _name(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{value!r} is no name")
    return value


def _read_port(data: dict[str, Any]) -> Port:
    shape = tuple(d if isinstance(d, str) else int(d) for d in data["shape"])
    axis = data["axis"]
    if axis is not None and not (isinstance(axis, int) and 0 <= axis < len(shape)):
        raise ValueError(f"axis {axis} of {len(shape)}")
    rate = Fraction(data["rate"])
    if rate <= 0 and axis is not None:
        raise ValueError(f"rate {rate}")
    if int(data["delay"]) < 0:
        raise ValueError(f"delay {data['delay']}")
    return Port(
        str(data["name"]), int(data["dtype"]), shape, axis, rate, int(data["delay"]), Expr.parse(str(data["length"]))
    )


def _invalid(label: str, error: object) -> PulseError:
    return PulseError(
        "manifest-invalid",
        node=label,
        required="a complete manifest",
        found=f"{type(error).__name__}: {error}"[:200],
        remedy="convert the source model again",
    )
