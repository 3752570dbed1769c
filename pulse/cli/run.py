"""`pulse run MODEL IN OUT`: arrays or sound files through a stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulse.cli import options
from pulse.cli.output import shape_text
from pulse.errors import PulseError
from pulse.targets import file_target

if TYPE_CHECKING:
    import numpy as np

    from pulse.model import PulsedModel


@click.command("run")
@options.model_argument
@click.argument("source", metavar="IN", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@click.option(
    "--pulse", "width", type=options.Width(), metavar="N|dynamic", help="Width. [default: the model's, or dynamic]"
)
@click.option("--chunk", type=click.IntRange(1), metavar="N", help="Frames per push. [default: all; of sound 4096]")
@click.option("--rate", type=click.IntRange(1), help="Sound: the model's samples per second. [default: the file's]")
@click.option("--frontend", metavar="SPEC", help="Sound: features of the model, e.g. stft:512,256,sqrt-hann.")
@click.option("--downmix", is_flag=True, help="Sound: run the mean of the channels, not each channel.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Sound: files at a time, for a folder or glob.")
@options.source_options
@options.hints_option
@options.engine_option
@options.weights_option
def command(
    model: str,
    source: str,
    target: str,
    width: int | str | None,
    chunk: int | None,
    inputs: tuple[str, ...],
    outputs: list[str] | None,
    length_multiple_of: int | None,
    hints: str | None,
    engine: str | None,
    weights: str,
    rate: int | None,
    frontend: str | None,
    downmix: bool,
    jobs: int,
) -> int:
    """Stream IN through MODEL and write what comes out to OUT.

    Arrays: IN is a .npz whose keys are the model's inputs; for a model with one input also a .npz with one array, or a
    .npy. OUT is a .npz (or a .npy, for one output).

    Sound: IN is a sound file, OUT a .wav, or a .npz of all outputs. Each channel has a stream of its own. IN may be a
    folder or a quoted glob; OUT is a folder then.
    """
    from pulse.model import open_model

    pulsed = open_model(
        model,
        pulse=width,
        inputs=options.input_shapes(inputs),
        outputs=outputs,
        length_multiple_of=length_multiple_of,
        hints=hints,
    )
    if Path(source).is_file():
        file_target(Path(target), Path(model), Path(source))
    if Path(source).suffix.lower() in (".npz", ".npy"):
        run_arrays(pulsed, source, target, chunk, engine, weights)
        return 0
    from pulse.cli.run_sound import run_sound
    from pulse.live.files import FileOptions

    return run_sound(pulsed, source, target, FileOptions(frontend, rate, downmix, chunk, engine, weights), jobs)


def run_arrays(
    pulsed: PulsedModel, source: str, target: str, chunk: int | None, engine: str | None, weights: str = "f32"
) -> None:
    """A file of arrays through a stream, into another."""
    from pulse.cli.arrays import read_arrays, write_arrays

    if Path(target).suffix.lower() not in (".npz", ".npy"):
        wanted = "a name that ends in .npz or .npy, since IN holds arrays"
        raise PulseError("output-unwritable", node=target, required=wanted, remedy="give OUT such a name")
    arrays = read_arrays(Path(source), [port.name for port in pulsed.inputs])
    results = streamed(pulsed, arrays, chunk, engine, weights)
    write_arrays(Path(target), results)
    shapes = ", ".join(f"{name} {shape_text(array.shape)}" for name, array in results.items())
    click.echo(f"wrote {target}: {shapes}", err=True)


def streamed(
    pulsed: PulsedModel, arrays: dict[str, np.ndarray], chunk: int | None, engine: str | None, weights: str = "f32"
) -> dict[str, np.ndarray]:
    """Push `arrays` through a new stream, `chunk` source frames at a time; each output's frames joined on its axis."""
    import numpy as np

    moving = {port.name: port for port in pulsed.inputs if port.axis is not None and port.name in arrays}
    frames = 0
    for name, port in moving.items():
        if arrays[name].ndim != len(port.shape):
            raise PulseError(
                "wrong-shape", node=name, required=shape_text(port.shape), found=shape_text(arrays[name].shape)
            )
        frames = max(frames, -(-arrays[name].shape[port.axis or 0] // port.rate))
    step = chunk or max(frames, 1)
    stream = pulsed.stream(engine=engine, weights=weights)
    pieces: dict[str, list[np.ndarray]] = {port.name: [] for port in pulsed.outputs}
    given = {name: array for name, array in arrays.items() if name not in moving}
    for start in range(0, max(frames, 1), step):
        for name, port in moving.items():
            span = slice(port.frames(start), port.frames(start + step))
            given[name] = arrays[name][(slice(None),) * (port.axis or 0) + (span,)]
        for name, piece in stream.push(given).items():
            pieces[name].append(piece)
        given = {}
    for name, piece in stream.flush().items():
        pieces[name].append(piece)
    return {port.name: np.concatenate(pieces[port.name], axis=port.axis or 0) for port in pulsed.outputs}
