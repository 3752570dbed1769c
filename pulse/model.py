"""`convert`, `load` and the pulsed model they return."""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings as _warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
from onnx import inliner

from pulse import manifest as mf
from pulse.artefact import check_artefact
from pulse.errors import PulseError, PulseWarning
from pulse.graph.limits import MOST_GRAIN
from pulse.graph.load import Source, read_model
from pulse.source import streaming_part
from pulse.streaming.assemble import Identity, assemble
from pulse.streaming.facts import Value

if TYPE_CHECKING:
    from pulse.engine.stream import Stream as LiveStream


@dataclass(repr=False)
class PulsedModel:
    """A streaming model: an ordinary ONNX model (`proto`) and its manifest.

    Attributes:
        warnings: what was left out at conversion.
        source: the full-signal model, for a fresh conversion.
        traced: likewise, the pulsed value and its fact per value of the source.
        path: the file it was read from, beside which hints are looked for.
        hints: a file of hints that overrides those, or "none".
    """

    proto: onnx.ModelProto
    info: mf.Manifest
    warnings: list[str] = field(default_factory=list)
    source: onnx.ModelProto | None = None
    traced: dict[str, Value] = field(default_factory=dict)
    path: str | None = None
    hints: str | None = None

    def __repr__(self) -> str:
        """`<PulsedModel of enc.onnx, pulse 4: x [1, 4, 40] -> y [1, 4, 10] delay 2>`."""
        sides = (", ".join(map(str, ports)) for ports in (self.inputs, self.outputs))
        return f"<PulsedModel of {self.info.source_name}, pulse {self.pulse}: {' -> '.join(sides)}>"

    @property
    def manifest(self) -> dict[str, Any]:
        """As the file carries it: see docs/format.md."""
        return self.info.as_dict()

    @property
    def inputs(self) -> list[mf.Port]:
        """Name, type, shape in one pulse, stream axis, rate, delay and length of each input."""
        return self.info.inputs

    @property
    def outputs(self) -> list[mf.Port]:
        """Likewise of each output."""
        return self.info.outputs

    @property
    def states(self) -> list[mf.StatePort]:
        """What the graph keeps between pulses: an input and an output each."""
        return self.info.states

    @property
    def granularity(self) -> int:
        """Pulse widths are multiples of so many source frames."""
        return self.info.granularity

    @property
    def symbol(self) -> str:
        """Name of the signal's length in the source model."""
        return self.info.symbol

    @property
    def pulse(self) -> int | str:
        """Frames of source input per call, or "dynamic"."""
        return self.info.pulse

    def flat(self) -> onnx.ModelProto:
        """The model with its functions inlined, for runtimes that have none."""
        return inliner.inline_local_functions(self.proto) if self.proto.functions else self.proto

    def save(self, path: str | os.PathLike[str], flat: bool = False) -> None:
        """Writes the file, whole or not at all. Raises PulseError `output-unwritable`."""
        write_atomically(Path(path), (self.flat() if flat else self.proto).SerializeToString())

    def stream(self, engine: str | None = None, **options: Any) -> LiveStream:
        """A stream at its start. `engine`: "native", "onnxruntime" or "reference"; by default the first that covers the
        model."""
        from pulse.engine.stream import Stream as LiveStream

        return LiveStream(self, engine=engine, **options)


def convert(
    source: Source,
    pulse: int | str = "dynamic",
    *,
    inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] | None = None,
    length_multiple_of: int | None = None,
    hints: str | None = None,
) -> PulsedModel:
    """The streaming form of a full-signal model.

    Args:
        source: path, bytes or ModelProto.
        pulse: frames of source input per call, a multiple of the granularity; or "dynamic".
        inputs: dims per input that override the declared ones, e.g. `{"feat_erb": "1,1,S,32"}`.
        outputs: convert only what these need.
        length_multiple_of: the user's promise about the signal's length.
        hints: a file of kernels to pick, or "none"; by default those beside `source` are taken.

    Raises:
        PulseError: bad input, or a model that cannot stream.
    """
    _check_width(pulse, length_multiple_of)
    proto, label = read_model(source)
    digest = digest_of(proto)
    if is_pulsed(proto):
        raise PulseError(
            "already-pulsed",
            node=label,
            required="a full-signal model",
            found="a pulsed model",
            remedy="convert its source; `pulse check` and `pulse run` take this file as it is",
        )
    found, notes = streaming_part(proto, label, inputs, outputs, length_multiple_of or 1)
    if isinstance(pulse, int) and pulse % found.granularity:
        raise illegal_pulse(pulse, found.granularity)
    kept = [o.name for o in found.graph.outputs]
    model, manifest = assemble(found.walk, found.signature, kept, pulse, Identity(label, digest, found.symbol))
    for note in notes:
        _warnings.warn(note, PulseWarning, stacklevel=2)
    return PulsedModel(model, manifest, notes, proto, dict(found.walk.values), _path(source), hints)


def is_pulsed(proto: onnx.ModelProto) -> bool:
    """Whether a model is the result of `convert`."""
    return any(p.key == mf.KEY for p in proto.metadata_props)


READING = {"inputs": "--input", "outputs": "--outputs", "length_multiple_of": "--length-multiple-of"}


def refuse_reading(label: str, options: Mapping[str, Any]) -> None:
    """Raises PulseError `usage` where `options` say how a source is to be read, and the model is a pulsed one.

    That was settled when it was converted: passed over in silence, they would seem to have been followed.
    """
    given = [READING[name] for name in READING if options.get(name) is not None]
    if given:
        raise PulseError(
            "usage",
            node=label,
            required=f"a source model, for {', '.join(given)} to be applied to",
            found="a pulsed model, whose inputs and outputs are settled",
            remedy=f"leave out {', '.join(given)}; or give the source model",
        )


def digest_of(proto: onnx.ModelProto) -> str:
    """SHA-256 of a model, external data included."""
    return hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()


def _check_width(pulse: int | str, multiple: int | None) -> None:
    if pulse != "dynamic" and (type(pulse) is not int or not 1 <= pulse <= MOST_GRAIN):
        raise PulseError(
            "illegal-pulse",
            node="pulse",
            required=f'a number of frames from 1 to {MOST_GRAIN}, or "dynamic"',
            found=repr(pulse),
            remedy="for example --pulse 4",
        )
    if multiple is not None and (type(multiple) is not int or not 1 <= multiple <= MOST_GRAIN):
        raise PulseError(
            "usage",
            node="length_multiple_of",
            required=f"a number of frames from 1 to {MOST_GRAIN}",
            found=repr(multiple),
            remedy="for example --length-multiple-of 8",
        )


def illegal_pulse(pulse: int, granularity: int) -> PulseError:
    lower = pulse // granularity * granularity
    near = [str(w) for w in (lower, lower + granularity) if w]
    return PulseError(
        "illegal-pulse",
        node="pulse",
        required=f"a multiple of {granularity}, the granularity of the model's rates",
        found=str(pulse),
        remedy=f"legal widths are {granularity}, {2 * granularity}, ...; the nearest: {' and '.join(near)}",
    )


def load(source: Source, hints: str | None = None) -> PulsedModel:
    """Reads a pulsed file; `hints` as for `convert`. Raises PulseError where it is none, or of a newer version."""
    proto, label = read_model(source)
    text = next((p.value for p in proto.metadata_props if p.key == mf.KEY), None)
    if text is None:
        raise PulseError(
            "manifest-missing",
            node=label,
            required="a pulsed model, with a manifest",
            found="an ONNX model without one",
            remedy="convert it first: pulse convert MODEL --pulse N",
        )
    info = mf.loads(text, label)
    check_artefact(proto, info, label)
    return PulsedModel(proto, info, path=_path(source), hints=hints)


def _path(source: Source) -> str | None:
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else None


def open_model(
    source: Source, pulse: int | str | None = None, *, dynamic_will_do: bool = False, **options: Any
) -> PulsedModel:
    """A pulsed file as it is, a source converted (dynamic unless a width is given) by the options of `convert`.

    Args:
        dynamic_will_do: take a dynamic file for any width, which the caller then has to run it at.

    Raises:
        PulseError: bad input, a model that cannot stream; for a pulsed file, another width than its own or options
            that say how a source is to be read.
    """
    proto, label = read_model(source)
    if is_pulsed(proto):
        refuse_reading(label, options)
        model = load(source, options.get("hints"))
        if pulse is not None and pulse != model.pulse and not (dynamic_will_do and model.pulse == "dynamic"):
            raise PulseError(
                "illegal-pulse",
                node="pulse",
                required=f"{model.pulse}, the width this file was made for",
                found=str(pulse),
                remedy="convert the source model at the width wanted",
            )
        return model
    return convert(source, pulse if pulse is not None else "dynamic", **options)


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file under a temporary name beside it, then renames: no half-written file is ever seen."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        raise PulseError(
            "output-unwritable",
            node=str(path),
            required="a path that can be written",
            found=getattr(error, "strerror", None) or str(error),
            remedy="choose another place with -o",
        ) from None
