"""Many sound files through one model, in several processes.

Workers are started with a pipe as their standard input and end when it does: if the command is killed, so are they,
after the file at hand, and every file is written whole or not at all.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pulse.errors import PulseError
from pulse.live.audiofile import is_audio
from pulse.live.files import FileOptions, FileRunner, Report

if TYPE_CHECKING:
    from pulse.model import PulsedModel

Pair = tuple[Path, Path]


@dataclass(frozen=True)
class Outcome:
    """One file: its report, or why there is none."""

    source: Path
    report: Report | None
    error: PulseError | None


def is_batch(source: str) -> bool:
    """Whether a name means several files: a folder, or a pattern that no file is called by."""
    return os.path.isdir(source) or (glob.has_magic(source) and not os.path.exists(source))


def pairs(source: str, target: Path, suffix: str) -> list[Pair]:
    """Each sound file of a folder (subfolders too) or glob, and the file it becomes below `target`.

    Raises PulseError file-not-found where there is none, output-unwritable where two would become one.
    """
    if os.path.isdir(source):
        root, found = Path(source), [p for p in sorted(Path(source).rglob("*")) if p.is_file() and is_audio(p)]
    else:
        found = [Path(name) for name in sorted(glob.glob(source, recursive=True)) if is_audio(Path(name))]
        root = Path(os.path.commonpath([path.parent for path in found])) if found else Path()
    if not found:
        raise PulseError("file-not-found", node=source, required="at least one sound file", found="none")
    listed = [(path, (target / path.relative_to(root)).with_suffix(suffix)) for path in found]
    first: dict[Path, Path] = {}
    for path, out in listed:
        if out in first:
            raise PulseError(
                "output-unwritable",
                node=str(out),
                required="a name for each file",
                found=f"{first[out].name} and {path.name}",
                remedy="give a glob that takes only one of them, such as 'IN/*.wav'",
            )
        first[out] = path
    return listed


def run_batch(
    model: PulsedModel, options: FileOptions, files: list[Pair], jobs: int, done: Callable[[Outcome], None]
) -> None:
    """Runs every file, `jobs` at a time; `done` is told of each as it ends, from this thread."""
    if jobs == 1 or len(files) == 1:
        runner = FileRunner(model, options)
        for pair in files:
            done(_outcome(runner, pair))
        return
    waiting: queue.SimpleQueue[Pair] = queue.SimpleQueue()
    for pair in files:
        waiting.put(pair)
    ended: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
    setting = (model.proto.SerializeToString(), model.path, model.hints, options)
    workers = [_Worker(setting, waiting, ended) for _ in range(min(jobs, len(files)))]
    try:
        for _ in files:
            outcome = ended.get()
            if isinstance(outcome, BaseException):
                raise outcome
            done(outcome)
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process, and the thread that hands it files."""

    def __init__(self, setting: Any, waiting: queue.SimpleQueue[Pair], ended: queue.SimpleQueue) -> None:
        code = "from pulse.live.batch import serve; serve()"
        env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, start_new_session=True
        )
        self._setting, self._waiting, self._ended = setting, waiting, ended
        threading.Thread(target=self._feed, daemon=True).start()

    def stop(self) -> None:
        """Ends the process, whatever it does."""
        self._process.kill()
        self._process.wait()

    def _feed(self) -> None:
        pair: Pair | None = None
        try:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            _send(self._process.stdin, self._setting)
            while True:
                pair = self._waiting.get(block=False)
                _send(self._process.stdin, pair)
                self._ended.put(pickle.load(self._process.stdout))
        except queue.Empty:
            return
        except (OSError, EOFError) as error:  # the process died: out of memory, most likely
            node = str(pair[0]) if pair else ""
            self._ended.put(PulseError("file-unreadable", node=node, found=f"a worker process ended: {error}"))


def serve() -> None:
    """A worker process: a model, then pairs of files, until standard input ends."""
    from pulse.model import load

    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not end up among the answers
    data, path, hints, options = pickle.load(sys.stdin.buffer)
    # With the model's own path, beside which hints are looked for.
    runner = FileRunner(replace(load(data, hints), path=path), options)
    with contextlib.suppress(BrokenPipeError):  # the command was killed
        for pair in _received(sys.stdin.buffer):
            _send(out, _outcome(runner, pair))


def _outcome(runner: FileRunner, pair: Pair) -> Outcome:
    source, target = pair
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        found = error.strerror or str(error)
        return Outcome(source, None, PulseError("output-unwritable", node=str(target.parent), found=found))
    try:
        return Outcome(source, runner.run(source, target), None)
    except PulseError as error:
        return Outcome(source, None, error)
    except OSError as error:
        found = error.strerror or str(error)
        return Outcome(source, None, PulseError("file-unreadable", node=str(source), found=found))


def _send(pipe: BinaryIO | Any, value: Any) -> None:
    pickle.dump(value, pipe)
    pipe.flush()


def _received(pipe: BinaryIO | Any) -> Iterator[Pair]:
    while True:
        try:
            yield pickle.load(pipe)
        except EOFError:
            return
