"""What callers hand over, checked in words before anything runs on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pulse.errors import PulseError
from pulse.manifest import Manifest, Port
from pulse.streaming.emit import np_type


def pulse_shape(port: Port, width: int) -> tuple[int, ...]:
    """Shape of a port in a pulse of `width` source frames."""
    return tuple(port.frames(width) if i == port.axis else int(d) for i, d in enumerate(port.shape))


def check_pulse(arrays: Any, ports: Sequence[Port], width: int, written: bool = False) -> None:
    """Raises PulseError for arrays that are not one pulse of these ports; `written`: they are to be written to."""
    kind = "output" if written else "input"
    known = [port.name for port in ports]
    if not isinstance(arrays, dict):
        raise PulseError(
            "missing-input",
            node=kind,
            required=f"a dict from {kind} name to array",
            found=type(arrays).__name__,
            remedy=f"give {{name: array}} for {', '.join(known)}",
        )
    for name in arrays:
        if name not in known:
            raise wrong_name(name, known, kind)
    for port in ports:
        if port.name not in arrays:
            raise missing([port.name], known, arrays, f"give every {kind} with every pulse")
        _check(port, arrays[port.name], pulse_shape(port, width), written)


def wrong_name(name: object, known: Iterable[str], kind: str = "input") -> PulseError:
    """For an array under a name that is none of the model's."""
    return PulseError(
        "wrong-name",
        node=str(name),
        required=f"one of the {kind}s {', '.join(known)}",
        found=f"`{name}`",
        remedy=f"use the model's {kind} names",
    )


def missing(names: Sequence[str], known: Iterable[str], given: Iterable[str], remedy: str) -> PulseError:
    """For arrays that were not given, beside those `given`."""
    return PulseError(
        "missing-input",
        node=", ".join(names),
        required=f"arrays for {', '.join(known)}",
        found=f"arrays for {', '.join(given) or 'nothing'}",
        remedy=remedy,
    )


def check_type(port: Port, array: Any) -> None:
    """Raises PulseError `wrong-dtype` for what is no numpy array of the port's type."""
    wanted = np_type(port.dtype)
    if not isinstance(array, np.ndarray) or array.dtype != wanted:
        raise PulseError(
            "wrong-dtype",
            node=port.name,
            required=f"a numpy array of {wanted}",
            found=str(array.dtype) if isinstance(array, np.ndarray) else type(array).__name__,
            remedy=f"convert it, as in array.astype('{wanted}')",
        )


def _check(port: Port, array: Any, shape: tuple[int, ...], written: bool) -> None:
    check_type(port, array)
    if array.shape != shape:
        raise PulseError(
            "wrong-shape",
            node=port.name,
            required=f"shape {shape}, one pulse",
            found=f"shape {array.shape}",
            remedy="give whole pulses of one width; `push` takes any number of frames",
        )
    if not array.flags.c_contiguous or (written and not array.flags.writeable):
        raise PulseError(
            "wrong-shape",
            node=port.name,
            required="a contiguous array" + (" that can be written to" if written else ""),
            found="a read-only array" if array.flags.c_contiguous else f"strides {array.strides}",
            remedy=f"numpy.ascontiguousarray(array) for inputs, numpy.empty({shape}, '{array.dtype}') for outputs",
        )


def pulse_width(inputs: Any, info: Manifest) -> int:
    """Source frames of a pulse, by its first streaming input. Raises PulseError where that is no legal pulse."""
    port = next(p for p in info.inputs if p.axis is not None)
    least = info.granularity if info.pulse == "dynamic" else int(info.pulse)
    array = inputs.get(port.name) if isinstance(inputs, Mapping) else None
    if not isinstance(array, np.ndarray) or array.ndim != len(port.shape):
        check_pulse(inputs, info.inputs, least)
    assert array is not None
    frames = int(array.shape[port.axis or 0])
    width, rest = divmod(frames * port.rate.denominator, port.rate.numerator)
    legal = width % least == 0 if info.pulse == "dynamic" else width == least
    if rest or not legal or not width:
        raise PulseError(
            "frames-mismatch",
            node=port.name,
            required=f"one pulse: {f'a multiple of {least}' if info.pulse == 'dynamic' else least} source frames",
            found=f"{frames} frames",
            remedy="give whole pulses; `push` takes any number of frames",
        )
    return width
