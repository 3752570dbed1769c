"""Results are moved into place, which must not put a file where a device, a pipe, a link or the input was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from nets import from_text

import pulse
from pulse.cli import main
from pulse.cli.arrays import write_arrays
from pulse.live.atomic import whole_file
from pulse.live.recorder import Recorder

CONV = from_text("(float[1,4,S] x, float[4,4,3] w1) => (float y) { y = Conv<pads=[1,1]>(x, w1) }")


def whole(path: Path) -> None:
    with whole_file(path) as file:
        file.write(b"sound")


def record(path: Path) -> None:
    recorder = Recorder(path, 16000, 1)
    recorder.put(np.zeros((1, 8), np.float32))
    recorder.finish()


WRITERS: dict[str, Callable[[Path], object]] = {
    "model": lambda path: pulse.convert(CONV, 4).save(path),
    "arrays": lambda path: write_arrays(path, {"y": np.zeros(3)}),
    "sound": whole,
    "recording": record,
}


@pytest.fixture(params=WRITERS)
def write(request: pytest.FixtureRequest) -> Callable[[Path], object]:
    return WRITERS[request.param]


def found(call: Callable[[], object]) -> str:
    with pytest.raises(pulse.PulseError) as caught:
        call()
    assert caught.value.code == "output-unwritable"
    return caught.value.found


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_stays_one(write: Callable[[Path], object], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for path in (pipe, tmp_path / "link"):
        assert found(lambda path=path: write(path)) == "a device, pipe or socket"
    assert pipe.is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]


def test_a_folder_is_no_file(write: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path, Path(".")):
        assert found(lambda path=path: write(path)) == "a folder"
    assert not os.listdir(tmp_path)


def test_a_link_is_followed(write: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far" / "real")
    for _ in range(2):  # the file is not there, and is
        write(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "far" / "real").stat().st_size > 0
    (tmp_path / "round").symlink_to("round")
    assert "symbolic links" in found(lambda: write(tmp_path / "round"))
    assert sorted(os.listdir(tmp_path)) == ["far", "link", "round"]
    assert os.listdir(tmp_path / "far") == ["real"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.onnx").write_bytes(CONV.SerializeToString())
    np.savez(tmp_path / "in.npz", x=np.zeros((1, 4, 9), np.float32))
    (tmp_path / "link.npz").symlink_to("in.npz")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "run m.onnx in.npz in.npz",
        "run m.onnx in.npz link.npz",
        "run m.onnx link.npz in.npz",
        "run m.onnx in.npz m.onnx",
        "run m.onnx in.npz .",
        "convert m.onnx --pulse 4 -o m.onnx",
        "convert m.onnx --pulse 4 -o .",
    ],
)
def test_what_is_read_is_not_written(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 2, result.output
    assert "the output cannot be written there" in result.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("path", [".", "..", "/"])
def test_a_folder_is_no_model(path: str) -> None:
    result = CliRunner().invoke(main, ["convert", path, "--pulse", "4"])
    assert result.exit_code == 2
    assert "Is a directory" in result.stderr


@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="the system has no such device")
@pytest.mark.timeout(30)
def test_a_device_without_end_is_not_read() -> None:
    with pytest.raises(pulse.PulseError) as caught:
        pulse.convert("/dev/zero")
    assert caught.value.code == "file-unreadable"


@pytest.mark.skipif(os.name != "posix", reason="the shell closes the streams")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-"])
@pytest.mark.parametrize("command", ["inspect m.onnx", "run m.onnx in.npz out.npz", "convert m.onnx --pulse 4"])
def test_closed_streams_do_no_harm(command: str, closed: str, folder: Path) -> None:
    program = f"'{sys.executable}' -m pulse.cli {command} {closed}"
    done = subprocess.run([shutil.which("sh") or "sh", "-c", program], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no device that is always full")
@pytest.mark.parametrize("args", [("explain", "no-rule"), ("explain", "no-rule", "--json"), ("explain", "x", "--json")])
def test_a_full_disk_behind_stdout_is_told_on_stderr(args: tuple[str, ...]) -> None:
    """A diagnostic as JSON, which goes to stdout, cannot be written there either."""
    command = [sys.executable, "-m", "pulse.cli", *args]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
