"""`pulse mic MODEL`: talk through a model, with deadlines that are watched."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

import click

from pulse.cli import options

if TYPE_CHECKING:
    from pulse.live.session import LiveOptions, Session

TERMINATED = 143  # as a shell reports SIGTERM
TURN = 0.1  # seconds between looks at the stream


class LiveWidth(click.ParamType):
    """A pulse width in source frames, or `auto`."""

    name = "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value == "auto" or isinstance(value, int):
            return value  # type: ignore[no-any-return]
        if not str(value).isdecimal() or int(value) == 0:
            self.fail(f"{value!r} is neither a whole number of frames above 0 nor `auto`.", param, ctx)
        return int(value)


@click.command("mic")
@click.argument("model", type=click.Path(), required=False)
@click.option("--list-devices", is_flag=True, help="List microphones and loudspeakers, and end.")
@click.option("--device", metavar="MIC[,OUT]", help="Numbers or parts of names. [default: the system's]")
@click.option("--rate", type=click.IntRange(1), default=16000, show_default=True, help="The model's rate in Hz.")
@click.option("--device-rate", type=click.IntRange(1), help="The devices' rate in Hz. [default: the model's]")
@click.option("--pulse", type=LiveWidth(), help="Source frames per pulse. [default: some 10 ms]")
@click.option("--frontend", metavar="SPEC", help="Features of the model, e.g. stft:512,256,sqrt-hann.")
@click.option("--margin", type=click.FloatRange(1), default=10, show_default=True, help="Ms a pulse may be late.")
@click.option("--record", type=click.Path(path_type=Path), metavar="OUT.wav", help="Keep what the model makes.")
@click.option("--record-input", type=click.Path(path_type=Path), metavar="IN.wav", help="Keep what it is given.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="End after so long.")
@click.option("--no-ui", is_flag=True, help="Say nothing until the end.")
@click.option("--no-realtime", is_flag=True, help="Do not ask for real-time priority.")
@options.source_options
@options.engine_option
@options.weights_option
@options.json_option
def command(
    model: str | None,
    list_devices: bool,
    device: str | None,
    rate: int,
    device_rate: int | None,
    pulse: int | str | None,
    frontend: str | None,
    margin: float,
    record: Path | None,
    record_input: Path | None,
    seconds: float | None,
    no_ui: bool,
    no_realtime: bool,
    inputs: tuple[str, ...],
    outputs: list[str] | None,
    length_multiple_of: int | None,
    engine: str | None,
    weights: str,
    as_json: bool,
) -> int:
    """Run MODEL on the microphone: hear what it makes, or see its outputs.

    A key switches between dry and processed sound (d) and ends (q). Latency is told by where it is spent, and late
    pulses are counted and concealed. --json prints all numbers at the end.
    """
    from pulse.live.quiet import quiet_stderr

    if list_devices:
        with quiet_stderr():
            _list_devices(as_json)
        return 0
    if model is None:
        raise click.UsageError("Missing argument 'MODEL'.")
    from pulse.live.session import LiveOptions
    from pulse.model import open_model

    pulsed = open_model(
        model, inputs=options.input_shapes(inputs), outputs=outputs, length_multiple_of=length_multiple_of
    )
    live = LiveOptions(
        frontend, rate, device, device_rate, pulse, margin / 1000, engine, record, record_input, seconds,
        not no_realtime, weights=weights,
    )  # fmt: skip
    with quiet_stderr() as terminal:
        return _run(pulsed, live, Path(model).name, terminal, no_ui, as_json)


def _run(pulsed: Any, live: LiveOptions, title: str, terminal: TextIO, no_ui: bool, as_json: bool) -> int:
    from pulse.cli.output import print_json
    from pulse.live.panel import summary_lines
    from pulse.live.quiet import unhurried_python
    from pulse.live.session import Session

    status = 0

    def terminate(number: int, frame: FrameType | None) -> None:
        nonlocal status
        status = TERMINATED
        raise KeyboardInterrupt

    session = Session(pulsed, live)
    previous = signal.signal(signal.SIGTERM, terminate)
    try:
        with unhurried_python():
            session.start()
            try:
                _watch(session, title, terminal, no_ui)
            except KeyboardInterrupt:
                pass
            finally:
                session.finish()
        session.check()
        if as_json:
            print_json(session.snapshot())
    finally:
        signal.signal(signal.SIGTERM, previous)
        told = session.snapshot()
        if not as_json:
            for line in [f"{told['seconds']:.1f} s, {told['pulses']} pulses", *summary_lines(told)]:
                click.echo(line, err=True)
        for path in (live.record_input, live.record):
            if path and path.exists():
                click.echo(f"recorded {path}", err=True)
    return status


def _watch(session: Session, title: str, terminal: TextIO, no_ui: bool) -> None:
    """Shows the stream and obeys keys until it ends."""
    from pulse.live.keys import single_keys

    show, close = _display(f"{title} · {session.chain.engine} · {session.stats.rate} Hz", terminal, no_ui)
    try:
        with single_keys() as key:
            while session.running:
                pressed = key(TURN)
                if pressed in ("d", " ") and session.snapshot()["hearing"]:
                    session.toggle()
                elif pressed in ("q", "\x04"):
                    return
                session.check()
                show(session.snapshot())
    finally:
        close()


def _display(title: str, terminal: TextIO, no_ui: bool) -> tuple[Callable[[dict[str, Any]], None], Callable[[], None]]:
    """Panel on a terminal, a line a second elsewhere."""
    from pulse.live.panel import Panel, plain_line

    if no_ui:
        return lambda told: None, lambda: None
    if terminal.isatty():
        panel = Panel(title, terminal)
        return panel.show, panel.close
    due = time.monotonic()
    click.echo(title, err=True)

    def line(told: dict[str, Any]) -> None:
        nonlocal due
        if told["pulses"] and time.monotonic() >= due:
            due += 1
            click.echo(plain_line(told), err=True)

    return line, lambda: None


def _list_devices(as_json: bool) -> None:
    from pulse.cli.output import print_json, print_table
    from pulse.errors import PulseError
    from pulse.live.devices import listed

    devices = listed()
    if as_json:
        print_json(devices)
        return
    if not devices:
        raise PulseError("no-microphone", required="a sound device", found="none")
    rows = [
        (d["index"], d["name"], d["system"], d["inputs"], d["outputs"], d["rate"], ", ".join(d["default"]))
        for d in devices
    ]
    print_table(("device", "name", "system", "in", "out", "Hz", "default for"), rows)
    sys.stdout.flush()
