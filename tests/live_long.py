"""A minute of live sound at each of several widths, on an idle machine: `python tests/live_long.py [SECONDS]`.

Plays noise to a private sound server, runs `pulse mic` with the spectral gate, and requires that no deadline is missed,
that the recording is the offline stream, and that the latency is the one reported. Then a width chosen by itself
while other processes hog the machine. Ends with status 1 if anything is not so.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from live_nets import GATE, RATE, gate, identity, speechlike, through
from live_server import Server, find, lag, missing
from scipy.io import wavfile

from pulse.live.chain import Chain

HOGS = 6
HOG = """
import contextlib, os
with contextlib.suppress(PermissionError):
    os.nice(-20)  # or else the system lets the stream go first
while True: pass
"""


def run(server: Server, folder: Path, model: Path, seconds: float, *args: object, hogs: int = 0) -> dict[str, Any]:
    """One command over its whole time; its numbers, and what was measured from outside."""
    record, source = folder / "out.wav", folder / "in.wav"
    sound = speechlike(seconds, seed=7)[0]
    with server.listening() as heard:
        running = server.mic(
            model, "--seconds", seconds, "--json", "--record", record, "--record-input", source, *args
        ).listens()
        with server.playing(sound), contextlib.ExitStack() as stack:
            if hogs:
                time.sleep(2)
                for _ in range(hogs):
                    process = subprocess.Popen([sys.executable, "-c", HOG])
                    stack.callback(process.kill)
                time.sleep(4)
                stack.close()
            status, out, err = running.ended(seconds + 60)
    if status:
        raise SystemExit(err)
    told: dict[str, Any] = json.loads(out)
    given, made = wavfile.read(source)[1], wavfile.read(record)[1]
    if model == GATE:
        offline = through(Chain(gate(), rate=RATE), given[None], (4096,))[0]
    else:
        offline = given
    told["error"] = float(np.abs(made - offline).max())
    start = find(sound[:RATE], given)
    told["exact_in"] = bool(np.array_equal(given[start : start + RATE], sound[:RATE]))
    went_in, came_out = heard[0]
    last = int(np.nonzero(came_out)[0][-1]) - RATE
    told["measured_ms"] = (
        1000 * lag(went_in[last - 2 * RATE : last], came_out[last - 2 * RATE : last + RATE], RATE) / RATE
    )
    return told


def row(name: str, told: dict[str, Any]) -> str:
    compute, latency = told["compute_us"], told["latency_ms"]
    return (
        f"{name:24} {told['seconds']:6.1f} s  missed {told['missed']:3}  dry {told['dry']:3}  "
        f"overflows {told['overflows']}  lost {told['lost_ms']:.0f} ms  concealed {told['concealed_ms']:.0f}  "
        f"late {told['late_ms']:.0f}  corrected {told['corrections_ms']:.0f}  widths {told['width_changes']}  "
        f"compute {compute['median'] / 1e3:.2f}/{compute['p99'] / 1e3:.2f}/{compute['max'] / 1e3:.2f} ms  "
        f"latency {latency['total']:.1f} told, {told['measured_ms']:.1f} measured  error {told['error']:.0e}"
    )


def main() -> int:
    if missing():
        raise SystemExit(f"cannot run: {missing()}")
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    bad = 0
    with tempfile.TemporaryDirectory() as name, contextlib.closing(Server(RATE)) as server:
        folder = Path(name)
        same = folder / "same.onnx"
        onnx.save(identity([1, 1, "S"]), same)
        for model in (same, GATE):
            for width in (160, 640):
                told = run(server, folder, model, seconds, "--pulse", width)
                good = told["missed"] == told["dry"] == told["overflows"] == 0 and told["exact_in"]
                good &= told["error"] < 1e-6 and told["measured_ms"] <= told["latency_ms"]["total"] + 1
                bad += not good
                print(row(f"{model.stem} {width}", told), "" if good else "  <- not so", flush=True)
        told = run(server, folder, GATE, max(seconds / 2, 25), "--pulse", "auto", "--no-realtime", hogs=HOGS)
        # Whoever gets no time at all loses sound, which is counted; without a loss the recording is the offline stream.
        good = told["width_changes"] > 0 and (told["lost_ms"] > 0 or told["error"] < 1e-6)
        bad += not good
        print(row(f"auto under {HOGS} hogs", told), "" if good else "  <- not so")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
