"""Which input of a model takes the sound or its features, which output gives sound, and how their axes are laid out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import onnx

from pulse.errors import PulseError
from pulse.live.spec import FrontEnd, LogMel, Stft
from pulse.manifest import Port

MOST_CHANNELS = 8
LEAST_RATE = Fraction(1, 8)
"""An output with fewer frames per sample than this is no waveform, whatever its shape: a detector's, most likely."""


@dataclass(frozen=True)
class Layout:
    """How `[time, *sizes]` lies in a port: `axes[i]` is the port's axis of the i-th of these."""

    shape: tuple[int | str, ...]
    axes: tuple[int, ...]
    flat: bool = False
    """The two parts of a complex number lie after one another on the axis of bins."""

    def pack(self, frames: np.ndarray) -> np.ndarray:
        """`[time, *sizes]` as the port takes it."""
        if self.flat:
            frames = np.concatenate([frames[..., 0], frames[..., 1]], axis=1)
        order = np.argsort(self.axes)
        shape = [frames.shape[self.axes.index(i)] if i in self.axes else 1 for i in range(len(self.shape))]
        return np.ascontiguousarray(frames.transpose(*order).reshape(shape))

    def unpack(self, array: np.ndarray) -> np.ndarray:
        """The port's array as `[time, *sizes]`."""
        rest = [i for i in range(array.ndim) if i not in self.axes]
        frames = array.transpose(*self.axes, *rest).reshape([array.shape[i] for i in self.axes])
        return np.stack(np.split(frames, 2, axis=1), axis=-1) if self.flat else frames


@dataclass(frozen=True)
class Wiring:
    """How a model is connected to sound.

    Attributes:
        source: the input that takes sound or features, `into` its layout.
        channels: channels of sound the model takes at once.
        sound: the output that gives sound (or a spectrum or mask of the front end), `out_of` its layout; or None.
        out_channels: channels it gives.
        shown: the other outputs.
        constants: zeros for inputs without a stream axis.
    """

    source: Port
    into: Layout
    channels: int
    sound: Port | None
    out_of: Layout | None
    out_channels: int
    shown: tuple[Port, ...]
    constants: dict[str, np.ndarray] = field(default_factory=dict)


def wire(inputs: Sequence[Port], outputs: Sequence[Port], front: FrontEnd) -> Wiring:
    """Connects a model's ports. Raises PulseError frontend-mismatch."""
    moving = [port for port in inputs if port.axis is not None]
    if len(moving) != 1:
        raise _mismatch(
            moving,
            "one input that streams",
            f"{len(moving)} of them",
            "compute the features in your own code and give them as a .npz, or push them into `model.stream()`",
        )
    source = moving[0]
    if source.dtype != onnx.TensorProto.FLOAT:
        raise _mismatch(moving, "an input of float32", onnx.TensorProto.DataType.Name(source.dtype).lower())
    constants = {p.name: np.zeros([int(d) for d in p.shape], _dtype(p)) for p in inputs if p.axis is None}
    wanted: list[tuple[int, ...]]
    if isinstance(front, Stft):
        bins = front.size // 2 + 1
        wanted = [(bins, 2), (2 * bins,)] if front.features == "ri" else [(bins,)]
    elif isinstance(front, LogMel):
        wanted = [(front.bands,)]
    else:
        wanted = [()] + [(count,) for count in range(2, MOST_CHANNELS + 1)]
    into = _first_layout(source, wanted)
    if into is None:
        raise _mismatch(moving, _takes(source), _gives(front))
    channels = _dims(source)[into.axes[1]] if front is None and len(into.axes) > 1 else 1
    sound, out_of = _sound(source, outputs, front)
    out_channels = _dims(sound)[out_of.axes[1]] if sound and out_of and not front and len(out_of.axes) > 1 else 1
    shown = tuple(port for port in outputs if port is not sound)
    return Wiring(source, into, channels, sound, out_of, out_channels, shown, constants)


def _sound(source: Port, outputs: Sequence[Port], front: FrontEnd) -> tuple[Port | None, Layout | None]:
    if isinstance(front, LogMel):
        return None, None
    for port in outputs:
        if port.dtype != onnx.TensorProto.FLOAT or port.axis is None:
            continue
        rate = port.rate / source.rate
        if isinstance(front, Stft):
            bins = front.size // 2 + 1
            as_complex: list[tuple[int, ...]] = [(bins, 2), (2 * bins,)]
            as_real: list[tuple[int, ...]] = [(bins,)]
            sizes = as_real if front.output in ("mask", "magnitude") else as_complex
            sizes = as_complex + as_real if front.output is None else sizes
            layout = _first_layout(port, sizes) if rate == 1 else None
        else:
            sizes = [()] + [(count,) for count in range(2, MOST_CHANNELS + 1)]
            layout = _first_layout(port, sizes) if rate >= LEAST_RATE else None
        if layout is not None:
            return port, layout
    return None, None


def _first_layout(port: Port, wanted: Sequence[tuple[int, ...]]) -> Layout | None:
    for sizes in wanted:
        flat = len(sizes) == 1 and (sizes[0] // 2, 2) in wanted
        layout = _layout(port, sizes, flat)
        if layout is not None:
            return layout
    return None


def _layout(port: Port, sizes: tuple[int, ...], flat: bool) -> Layout | None:
    dims, axis = _dims(port), port.axis or 0
    large = {i: dim for i, dim in enumerate(dims) if i != axis and dim != 1}
    if sorted(large.values()) != sorted(size for size in sizes if size != 1):
        return None
    axes = [axis]
    for size in sizes:
        axes.append(next(i for i, dim in large.items() if dim == size and i not in axes))
    return Layout(port.shape, tuple(axes), flat)


def _dims(port: Port) -> list[int]:
    return [1 if i == port.axis else int(dim) for i, dim in enumerate(port.shape)]


def _dtype(port: Port) -> np.dtype:
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(port.dtype))


def _takes(port: Port) -> str:
    shown = ", ".join("S" if i == port.axis else str(dim) for i, dim in enumerate(port.shape))
    return f"features of shape [{shown}]"


def _gives(front: FrontEnd) -> str:
    if isinstance(front, Stft):
        return f"{front.size // 2 + 1} bins" + (" in two parts (ri)" if front.features == "ri" else "")
    return f"{front.bands} bands" if isinstance(front, LogMel) else "the waveform itself, since no --frontend is given"


def _mismatch(ports: Sequence[Port], required: str, found: str, remedy: str = "") -> PulseError:
    names = ", ".join(p.name for p in ports)
    return PulseError("frontend-mismatch", node=names, required=required, found=found, remedy=remedy)
