"""The panel: drawn by a process of its own, which reads one JSON snapshot a line and so cannot disturb the stream."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType

BARS = " ▁▂▃▄▅▆▇█"
HISTORY = 48
MOST_METERS = 12
LOWEST_DB = -60.0


class Panel:
    """The panel's process, seen from the stream."""

    def __init__(self, title: str, terminal: TextIO) -> None:
        env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-c", "from pulse.live.panel import draw; draw()", title]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=terminal, stderr=terminal, env=env)
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)

    def show(self, snapshot: dict[str, Any]) -> None:
        """Hands a snapshot over; never waits, and drops it if the panel is behind."""
        if self._process.stdin:
            with contextlib.suppress(OSError):
                os.write(self._process.stdin.fileno(), json.dumps(snapshot).encode() + b"\n")

    def close(self) -> None:
        """Ends the panel; its last state stays on the screen."""
        if self._process.stdin:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()


def draw() -> None:
    """The process: draws what standard input brings until it ends."""
    from rich.console import Console
    from rich.live import Live

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the stream ends first, then this
    histories: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=HISTORY))
    with Live(console=Console(), auto_refresh=False) as live:
        for line in sys.stdin:
            with contextlib.suppress(ValueError):  # a line cut short by a full pipe
                live.update(rendered(sys.argv[1], json.loads(line), histories), refresh=True)


def rendered(title: str, told: dict[str, Any], histories: dict[str, deque[float]]) -> RenderableType:
    """One snapshot as a panel; `histories` keeps the past of each meter."""
    from rich.panel import Panel as Frame
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name in ("in", "out") if told["hearing"] else ("in",):
        level = told["level_db"][name]
        table.add_row(name, _bar((level - LOWEST_DB) / -LOWEST_DB, 30), f"{level:6.1f} dB")
    for label, value in meters(told["outputs"]):
        histories[label].append(value)
        past = "".join(BARS[round(min(max(v, 0), 1) * 8)] for v in histories[label])
        table.add_row(label, _bar(value, 30), f"{value:.3g}", past)
    lines = Table.grid(padding=(0, 0))
    lines.add_row(table)
    lines.add_row("")
    for line in summary_lines(told):
        trouble = line.startswith("missed") and (told["missed"] or told["overflows"] or told["dry"])
        lines.add_row(Text(line, style="bold red" if trouble else ""))
    hint = "d: dry or processed   q: end" if told["hearing"] else "q: end"
    return Frame(lines, title=title, subtitle=hint, title_align="left", subtitle_align="left")


def meters(outputs: dict[str, list[float]]) -> list[tuple[str, float]]:
    """Label and value of each number to show: all of a small output, the largest of a big one."""
    found: list[tuple[str, float]] = []
    for name, values in outputs.items():
        if len(values) == 1:
            found.append((name, values[0]))
        elif len(values) <= MOST_METERS:
            found += [(f"{name}[{i}]", value) for i, value in enumerate(values)]
        else:
            top = max(range(len(values)), key=values.__getitem__)
            found += [(f"{name} max, at {top}", values[top]), (f"{name} mean", sum(values) / len(values))]
    return found[:MOST_METERS]


def summary_lines(told: dict[str, Any]) -> list[str]:
    """The numbers of a snapshot, in words."""
    latency, compute, load = told["latency_ms"], told["compute_us"], told["cpu_load"]
    parts = " + ".join(f"{name} {latency[name]:.1f}" for name in ("device", "buffering", "model", "compute"))
    hearing = f", hearing {told['hearing']}" if told["hearing"] else ""
    priority = "real-time" if told["realtime"] else "normal"
    frames, width = told["pulse"]["frames"], told["pulse"]["ms"]
    return [
        f"pulse    {frames} frames, {width:.1f} ms{hearing}",
        f"latency  {latency['total']:.1f} ms = {parts}",
        f"load     {load['model']:.1%} model, {load['process']:.1%} whole program, {priority} priority",
        f"compute  median {compute['median'] / 1e3:.2f} ms, p99 {compute['p99'] / 1e3:.2f}, "
        f"worst {compute['max'] / 1e3:.2f} of {width:.1f}",
        f"missed   {told['missed']} deadlines, {told['concealed_ms']:.0f} ms concealed; {told['overflows']} overflows, "
        f"{told['lost_ms']:.0f} ms lost; {told['dry']} times dry",
    ]


def plain_line(told: dict[str, Any]) -> str:
    """A snapshot on one line, where there is no terminal."""
    level, latency = told["level_db"], told["latency_ms"]
    heard = f" out {level['out']:.1f} dB" if told["hearing"] else ""
    shown = "".join(f" {label} {value:.3g}" for label, value in meters(told["outputs"]))
    return (
        f"{told['seconds']:.1f} s: in {level['in']:.1f} dB{heard}, pulse {told['pulse']['ms']:.1f} ms, "
        f"latency {latency['total']:.1f} ms, load {told['cpu_load']['model']:.1%}, "
        f"worst {told['compute_us']['max'] / 1e3:.2f} ms, missed {told['missed']}, "
        f"concealed {told['concealed_ms']:.0f} ms, overflows {told['overflows']}{';' if shown else ''}{shown}"
    )


def _bar(share: float, width: int) -> str:
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    bar = "█" * (eighths // 8) + ("▏▎▍▌▋▊▉"[eighths % 8 - 1] if eighths % 8 else "")
    return bar.ljust(width)
