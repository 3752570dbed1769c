"""The frame of the command line: help, exit statuses, messages, JSON, `explain`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from pulse import PulseError, PulseWarning
from pulse.cli import COMMANDS, main
from pulse.cli.failures import guarded
from pulse.diagnostics import CODES

ROOT = Path(__file__).resolve().parent.parent
ENV = os.environ | {"PYTHONPATH": str(ROOT)}


def pulse(*args: str) -> Result:
    return CliRunner().invoke(main, args)


def process(*args: str, **more: object) -> subprocess.CompletedProcess[str]:
    options = {"capture_output": True, "text": True, "env": ENV, "timeout": 60} | more
    return subprocess.run([sys.executable, "-m", "pulse.cli", *args], check=False, **options)  # type: ignore[call-overload]


def fail_with(error: BaseException) -> object:
    raise error


def test_help_lists_every_command() -> None:
    result = pulse("--help")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in COMMANDS)


def test_no_arguments_is_help() -> None:
    assert pulse().stdout == pulse("--help").stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help(name: str) -> None:
    result = pulse(name, "--help")
    assert result.exit_code == 0, result.output
    assert "Usage: pulse " + name in result.stdout


def test_help_imports_only_click() -> None:
    done = process("--help", env=ENV | {"PYTHONPROFILEIMPORTTIME": "1"})
    imported = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "click" in imported
    assert not imported & {"numpy", "onnx", "rich", "scipy", "onnxruntime", "sounddevice"}


@pytest.mark.parametrize("code", CODES)
def test_explain_every_code(code: str) -> None:
    result = pulse("explain", code)
    assert result.exit_code == 0
    entry = CODES[code]
    assert result.stdout.startswith(f"{code}: {entry.what}\n")
    assert " ".join(entry.remedy.split()) in " ".join(result.stdout.split())


def test_explain_all_as_json_is_the_table() -> None:
    result = pulse("explain", "--all", "--json")
    assert [row["code"] for row in json.loads(result.stdout)] == list(CODES)
    assert set(json.loads(result.stdout)[0]) == {"code", "exit_status", "what", "why", "example", "remedy"}


def test_explain_forgives_case_and_underscores() -> None:
    assert pulse("explain", "Illegal_Pulse").stdout == pulse("explain", "illegal-pulse").stdout


def test_explain_suggests_a_close_match() -> None:
    result = pulse("explain", "reduce-over-strem")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "did you mean `reduce-over-stream`" in result.stderr


def test_explain_needs_a_code() -> None:
    assert pulse("explain").exit_code == 2
    assert pulse("explain", "usage", "--all").exit_code == 2


@pytest.mark.parametrize("args", [["--bogus"], ["no-such-command"], ["explain", "--bogus"], ["explain", "a", "b"]])
def test_usage_errors(args: list[str]) -> None:
    result = pulse(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert "--help` lists what it takes" in result.stderr


def test_usage_error_as_json() -> None:
    result = pulse("explain", "--bogus", "--json")
    assert result.exit_code == 2
    error = json.loads(result.stdout)["error"]
    assert error["code"] == "usage"
    assert error["node"] == "pulse explain"
    assert "--bogus" in error["found"]


REFUSAL = PulseError("reduce-over-stream", node="ReduceMean_3", required="axes off the stream", found="axis 2")


def test_a_refusal_reads_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(lambda: fail_with(REFUSAL)) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0] == f"error: {CODES['reduce-over-stream'].what}: `ReduceMean_3`"
    assert lines[1:3] == ["  required: axes off the stream", "  found: axis 2"]
    assert lines[3] == f"  to do: {CODES['reduce-over-stream'].remedy}"
    assert lines[4] == "  more: `pulse explain reduce-over-stream`"


def test_a_refusal_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(lambda: fail_with(REFUSAL), as_json=True) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    assert json.loads(captured.out) == {"error": REFUSAL.as_dict() | {"remedy": CODES["reduce-over-stream"].remedy}}


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (PulseError("illegal-pulse", remedy="take 2, 4, 6"), 2, "to do: take 2, 4, 6"),
        (FileNotFoundError(2, "No such file or directory", "enc.onnx"), 2, "does not exist: `enc.onnx`"),
        (PermissionError(13, "Permission denied", "enc.onnx"), 2, "found: Permission denied"),
        (OSError(28, "No space left on device", "out.onnx"), 2, "`pulse explain output-unwritable`"),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
        (ZeroDivisionError("division\nby zero"), 70, "this is a bug in pulse, please report it"),
    ],
)
def test_exit_status_and_message(
    error: BaseException, status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(lambda: fail_with(error)) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_a_bug_shows_its_traceback_on_demand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSE_DEBUG", "1")
    assert guarded(lambda: fail_with(ZeroDivisionError("x"))) == 70
    assert "Traceback" in capsys.readouterr().err


def test_warnings_are_told_once_and_only_ours(capsys: pytest.CaptureFixture[str]) -> None:
    def call() -> None:
        warnings.warn("output `h` is no stream and was dropped", PulseWarning, stacklevel=2)
        warnings.warn("output `h` is no stream and was dropped", PulseWarning, stacklevel=2)
        warnings.warn("overflow", RuntimeWarning, stacklevel=2)

    assert guarded(call) == 0
    assert capsys.readouterr().err == "warning: output `h` is no stream and was dropped\n"


def test_closed_pipe_is_quiet() -> None:
    read, write = os.pipe()
    os.close(read)
    done = process("explain", "--all", capture_output=False, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 141


def test_no_colour_in_a_pipe() -> None:
    assert "\x1b" not in process("explain", "softmax").stderr


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_on_a_terminal_unless_refused(env: dict[str, str], coloured: bool) -> None:
    master, slave = os.openpty()
    base = {key: value for key, value in ENV.items() if key != "NO_COLOR"}
    process("explain", "softmax", env=base | env, capture_output=False, stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    assert (b"\x1b[" in os.read(master, 4096)) == coloured
    os.close(master)
