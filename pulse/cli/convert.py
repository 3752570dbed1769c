"""`pulse convert MODEL --pulse N|dynamic`: a full-signal model becomes a streaming one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulse.cli import options
from pulse.cli.output import print_json, print_table, shape_text
from pulse.errors import PulseError
from pulse.targets import file_target

if TYPE_CHECKING:
    from pulse.model import PulsedModel


@click.command("convert")
@options.model_argument
@click.option(
    "--pulse",
    "width",
    required=True,
    type=options.Width(),
    metavar="N|dynamic",
    help="Source frames per call, or dynamic; `pulse sweep` tells which is best.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="Where to write. [default: STEM.pulseN.onnx beside MODEL, or STEM.pulsedyn.onnx]",
)
@options.source_options
@click.option("--no-check", is_flag=True, help="Skip the comparison with the full-signal model.")
@click.option("--flat", is_flag=True, help="Inline the functions, for runtimes without them (tract, OpenVINO).")
@options.frame_options
@options.json_option
def command(
    model: str,
    width: int | str,
    output: str | None,
    inputs: tuple[str, ...],
    outputs: list[str] | None,
    length_multiple_of: int | None,
    no_check: bool,
    flat: bool,
    frame_ms: float | None,
    rate: int | None,
    hop: int | None,
    as_json: bool,
) -> None:
    """Turn the full-signal MODEL into its streaming form, some source frames at a time.

    The stream is compared with the full-signal model on random signals before anything is written.
    """
    frame = options.milliseconds(frame_ms, rate, hop)
    target = Path(output) if output else default_output(Path(model), width)
    file_target(target, Path(model))
    from pulse.model import convert

    pulsed = convert(
        model,
        pulse=width,
        inputs=options.input_shapes(inputs),
        outputs=outputs,
        length_multiple_of=length_multiple_of,
    )
    checked = None if no_check else verified(pulsed)
    pulsed.save(target, flat=flat)
    if as_json:
        print_json(summary(pulsed, target, frame, checked))
    else:
        print_summary(pulsed, target, frame, checked)


def default_output(source: Path, width: int | str) -> Path:
    """`enc.pulse4.onnx` or `enc.pulsedyn.onnx` beside `enc.onnx`."""
    return source.parent / f"{source.stem}.pulse{'dyn' if width == 'dynamic' else width}.onnx"


def verified(pulsed: PulsedModel) -> dict[str, Any]:
    """The result of the check; raises PulseError `mismatch` if the stream differs from the full-signal model."""
    from pulse.check import check

    result = check(pulsed)
    for row in result["widths"]:
        if not row["ok"]:
            raise PulseError(
                "mismatch",
                node=row["first_bad_node"] or "",
                required="the frames of the full-signal model",
                found=f"an error of {row['max_error']:.3g} at pulse {row['pulse']}",
            )
    return result


def summary(pulsed: PulsedModel, target: Path, frame: float | None, checked: dict[str, Any] | None) -> dict[str, Any]:
    """What was made, for `--json`."""

    def port(item: Any) -> dict[str, Any]:
        return {
            "name": item.name,
            "shape": list(item.shape),
            "axis": item.axis,
            "rate": item.rate,
            "delay": item.delay,
            "delay_ms": options.delay_ms(item.delay, item.rate, frame),
        }

    return {
        "output": str(target),
        "pulse": pulsed.pulse,
        "symbol": pulsed.symbol,
        "granularity": pulsed.granularity,
        "length_multiple": pulsed.info.length_multiple,
        "inputs": [port(item) for item in pulsed.inputs],
        "outputs": [port(item) for item in pulsed.outputs],
        "states": len(pulsed.states),
        "state_bytes": state_bytes(pulsed),
        "warnings": [str(warning) for warning in pulsed.warnings],
        "check": checked,
    }


def print_summary(pulsed: PulsedModel, target: Path, frame: float | None, checked: dict[str, Any] | None) -> None:
    """What was made, for people."""
    made = summary(pulsed, target, frame, checked)
    columns = ["", "name", "shape", "axis", "rate", "delay", *(["delay ms"] if frame else [])]
    rows = [
        [kind, port["name"], shape_text(port["shape"])]
        + [None if port["axis"] is None else port[key] for key in ("axis", "rate", "delay", "delay_ms")]
        for kind, ports in (("in", made["inputs"]), ("out", made["outputs"]))
        for port in ports
    ]
    print_table(columns, [row[: len(columns)] for row in rows])
    grain = pulsed.granularity
    click.echo(f"state: {made['state_bytes']:,} bytes in {made['states']} arrays")
    click.echo(f"legal widths: {'any' if grain == 1 else f'multiples of {grain}'}")
    if pulsed.info.length_multiple > 1:
        click.echo(f"signal lengths: multiples of {pulsed.info.length_multiple}")
    if checked:
        worst = max((row["max_error"] for row in checked["widths"]), default=0.0)
        click.echo(f"checked: equal to the full-signal model, largest error {worst:.2g}")
    click.echo(f"written: {target}")


def state_bytes(pulsed: PulsedModel) -> int:
    """Bytes that one stream keeps between calls."""
    from pulse.streaming.emit import np_type

    return sum(math.prod(state.shape) * np_type(state.dtype).itemsize for state in pulsed.states)
