"""The widths of a sweep: those that the model can take, and those that it cannot, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pulse.errors import PulseError
from pulse.graph.load import Source, read_model
from pulse.model import PulsedModel, convert, illegal_pulse, is_pulsed, load, refuse_reading

DEFAULT = (1, 2, 4, 8, 16)  # times the granularity
LONGEST_MS = 10_000.0  # a pulse that takes longer to fill is no live width
MOST_FRAMES = 1 << 20


def models(
    source: Source, pulses: Sequence[int] | None, frame_ms: float | None, options: Mapping[str, Any]
) -> tuple[dict[int, PulsedModel], list[dict[str, Any]]]:
    """The model at every width it can take, by width, and the widths left out: `{"pulse", "code", "why", "legal"}`.

    Raises:
        PulseError: the model cannot stream at all, or `illegal-pulse` where it can take none of the widths.
    """
    proto, label = read_model(source)
    pulsed = load(source, options.get("hints")) if is_pulsed(proto) else None
    if pulsed is not None:
        refuse_reading(label, options)
    if pulsed is not None and pulsed.pulse != "dynamic":
        wanted = list(pulses or [int(pulsed.pulse)])
        errors = [_other_width(w, int(pulsed.pulse)) for w in wanted if w != pulsed.pulse]
        return _answer({int(pulsed.pulse): pulsed} if pulsed.pulse in wanted else {}, errors, [int(pulsed.pulse)])
    dynamic = pulsed or convert(source, "dynamic", **options)
    grain = dynamic.granularity
    made: dict[int, PulsedModel] = {}
    errors = []
    for width in _each(pulses or [grain * factor for factor in DEFAULT]):
        try:
            _check(width, grain, frame_ms)
            made[width] = pulsed or convert(source, width, **options)
        except PulseError as error:
            if error.code != "illegal-pulse":
                raise
            errors.append((width, error))
    return _answer(made, errors, [grain * factor for factor in DEFAULT])


def _each(widths: Iterable[int]) -> list[int]:
    return sorted(set(widths))


def _check(width: int, grain: int, frame_ms: float | None) -> None:
    if isinstance(width, bool) or not isinstance(width, int) or width < 1 or width % grain:
        if isinstance(width, int) and width >= 1:
            raise illegal_pulse(width, grain)
        raise PulseError("illegal-pulse", node="pulses", required="whole numbers above 0", found=repr(width))
    if width > MOST_FRAMES or (frame_ms is not None and width * frame_ms > LONGEST_MS):
        found = f"{width} frames" + ("" if frame_ms is None else f", {width * frame_ms / 1000:.3g} s")
        raise PulseError(
            "illegal-pulse",
            node="pulses",
            required=f"pulses of at most {LONGEST_MS / 1000:.0f} s and {MOST_FRAMES} frames: a stream is to be live",
            found=found,
            remedy="sweep smaller widths",
        )


def _other_width(width: int, own: int) -> tuple[int, PulseError]:
    error = PulseError(
        "illegal-pulse",
        node="pulses",
        required=f"{own}, the width this file was made for",
        found=str(width),
        remedy="sweep the source model",
    )
    return width, error


def _answer(
    made: dict[int, PulsedModel], errors: list[tuple[int, PulseError]], legal: list[int]
) -> tuple[dict[int, PulsedModel], list[dict[str, Any]]]:
    if not made:
        raise errors[0][1]
    return made, [
        {"pulse": width, "code": error.code, "why": f"required: {error.required}; {error.remedy}", "legal": legal}
        for width, error in errors
    ]
