"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pulse.errors import PulseError

if TYPE_CHECKING:
    from pulse.model import PulsedModel

Command = TypeVar("Command", bound=Callable[..., Any])


class Width(click.ParamType):
    """A pulse width: a whole number of source frames above 0, or `dynamic`."""

    name = "N|dynamic"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value == "dynamic" or isinstance(value, int):
            return value  # type: ignore[no-any-return]
        if not str(value).isdecimal() or int(value) == 0:
            self.fail(f"{value!r} is neither a whole number of frames above 0 nor `dynamic`.", param, ctx)
        return int(value)


class Widths(click.ParamType):
    """Several pulse widths, separated by commas."""

    name = "N,N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int | str]:
        if isinstance(value, list):
            return value
        return [Width().convert(part.strip(), param, ctx) for part in value.split(",")]


class Names(click.ParamType):
    """Names separated by commas."""

    name = "NAME,NAME,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        if isinstance(value, list):
            return value
        names = [part.strip() for part in value.split(",")]
        if not all(names):
            self.fail(f"{value!r} has an empty name in it.", param, ctx)
        return names


def input_shapes(values: Iterable[str]) -> dict[str, str] | None:
    """`("x=1,1,S,32", ...)` as `{"x": "1,1,S,32", ...}`; None where nothing was given."""
    shapes: dict[str, str] = {}
    for value in values:
        name, equals, shape = value.rpartition("=")  # exporters put `=` into names, never into shapes
        if not equals or not name or not shape:
            raise PulseError("bad-input-spec", node=f"--input {value}", required="NAME=D1,D2,...", found=value)
        if name in shapes:
            raise PulseError("bad-input-spec", node=f"--input {value}", required="one shape per input", found="two")
        shapes[name] = shape
    return shapes or None


def milliseconds(frame_ms: float | None, rate: int | None, hop: int | None) -> float | None:
    """Milliseconds of one source frame, from the values of `frame_options`; None where unknown."""
    if frame_ms is not None and rate is not None:
        raise click.UsageError("Give --frame-ms or --rate, not both.")
    if hop is not None and rate is None:
        raise click.UsageError("--hop needs --rate.")
    return frame_ms if rate is None else 1000 * (hop or 1) / rate


def delay_ms(delay: int | None, rate: Fraction | None, frame: float | None) -> float | None:
    """Milliseconds by which a stream of `rate` frames per source frame lags, its delay being in its own frames."""
    if delay is None or not rate or frame is None:  # a rate of 0: an input without stream axis
        return None
    return float(delay / rate) * frame


def model_argument(command: Command) -> Command:
    """MODEL: a source model or a pulsed one."""
    return click.argument("model", type=click.Path())(command)


def source_options(command: Command) -> Command:
    """`--input`, `--outputs` and `--length-multiple-of`: how the source model is to be read."""
    for option in (
        click.option(
            "--length-multiple-of",
            type=click.IntRange(1),
            metavar="N",
            help="Promise that the signal's length is a multiple of N frames.",
        ),
        click.option(
            "--outputs", type=Names(), help="Keep these outputs only, and what they need; names separated by commas."
        ),
        click.option(
            "--input",
            "inputs",
            multiple=True,
            metavar="NAME=SHAPE",
            help="Shape of an input, S being the stream axis, e.g. x=1,1,S,32. Once per input.",
        ),
    ):
        command = option(command)
    return command


def frame_options(command: Command) -> Command:
    """`--frame-ms`, `--rate`, `--hop`: how long a source frame lasts."""
    for option in (
        click.option("--hop", type=click.IntRange(1), help="Samples per source frame, with --rate. [default: 1]"),
        click.option("--rate", type=click.IntRange(1), help="Samples per second, in place of --frame-ms."),
        click.option(
            "--frame-ms",
            type=click.FloatRange(0, min_open=True),
            help="Milliseconds per source frame, to give delays in ms.",
        ),
    ):
        command = option(command)
    return command


def pulses_option(command: Command) -> Command:
    """`--pulses`: the widths whose products count; `widths_of` reads them."""
    return click.option(
        "--pulses", type=Widths(), help="Widths of the model. [default: 1,2,4,8 times its granularity]"
    )(command)


def widths_of(model: PulsedModel, asked: Iterable[int | str] | None) -> list[int]:
    """The width of a pulsed file of fixed width; else the numbers asked for, or what `pulses_option` promises."""
    if model.pulse != "dynamic":
        return [int(model.pulse)]
    if asked is None:
        return [count * model.granularity for count in (1, 2, 4, 8)]
    return [width for width in asked if isinstance(width, int)]


def engine_option(command: Command) -> Command:
    """`--engine`: what runs the model."""
    return click.option(
        "--engine", metavar="NAME", help="native, onnxruntime or reference. [default: the first that covers the model]"
    )(command)


def weights_option(command: Command) -> Command:
    """`--weights`: what the native engine stores weights in."""
    return click.option(
        "--weights",
        type=click.Choice(["f32", "bf16"]),
        default="f32",
        show_default=True,
        help="Storage of large weights: bf16 takes half the memory and is less exact; native engine only.",
    )(command)


def hints_option(command: Command) -> Command:
    """`--hints`: which kernels to take, in place of the file beside the model."""
    return click.option(
        "--hints", metavar="FILE|none", help="Kernels to pick, from `pulse tune`. [default: MODEL.hints.json, if there]"
    )(command)


def json_option(command: Command) -> Command:
    """`--json`: data for programs in place of tables."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON in place of tables.")(command)
