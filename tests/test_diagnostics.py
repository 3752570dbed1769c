"""The table of diagnostics is complete: every code raised is explained, every code explained is raised."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulse.cli.failures import report
from pulse.diagnostics import CODES, THEMES, closest, exit_status
from pulse.errors import PulseError

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [path for folder in ("pulse", "costmodel") for path in sorted((ROOT / folder).rglob("*.py"))]


def raised() -> Iterator[tuple[Path, int, str]]:
    """Each literal code given to PulseError, with its place; a conditional expression gives several."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "PulseError":
                code = node.args[0] if node.args else next(k.value for k in node.keywords if k.arg == "code")
                for part in ast.walk(code):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield path, node.lineno, part.value


def literals() -> set[str]:
    """Every string literal outside the table itself; codes may reach PulseError by way of a helper."""
    return {
        node.value
        for path in SOURCES
        if "diagnostics" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_code_raised_is_in_the_table() -> None:
    missing = [f"{path.relative_to(ROOT)}:{line}: {code}" for path, line, code in raised() if code not in CODES]
    assert not missing, "codes without an entry in pulse/diagnostics:\n" + "\n".join(missing)


# Raised by parts still to come.
AWAITED = {"loop-over-stream", "shapes-invalid", "splits-stream-axis"}


def test_every_code_in_the_table_is_raised() -> None:
    unused = set(CODES) - literals() - AWAITED
    assert not unused, f"codes that nothing raises: {', '.join(sorted(unused))}"


def test_no_code_appears_twice() -> None:
    assert sum(len(entries) for entries in THEMES.values()) == len(CODES)


@pytest.mark.parametrize("entry", CODES.values(), ids=CODES.keys())
def test_entry_is_complete(entry) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", entry.code)
    assert entry.exit_status in (1, 2)
    for field in ("what", "why", "example", "remedy"):
        assert getattr(entry, field).strip() == getattr(entry, field) != "", field
    assert not entry.what.endswith("."), "the headline is one sentence without a full stop"
    assert entry.why.endswith(".")
    assert entry.remedy.endswith((".", "`"))
    assert "\n" not in entry.example


def test_exit_status_of_refusals_and_of_bad_input() -> None:
    assert exit_status("reduce-over-stream") == 1
    assert exit_status("not-onnx") == 2
    assert exit_status("no-such-code") == 2


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("reduce-over-strem", "reduce-over-stream"),
        ("softmax", "softmax-over-stream"),
        ("softmx", "softmax-over-stream"),
        ("quantization", "dynamic-quantisation"),
        ("ILLEGAL_PULSE", "illegal-pulse"),
    ],
)
def test_closest_finds_what_was_meant(typed: str, meant: str) -> None:
    assert closest(typed)[0] == meant


def test_closest_finds_nothing_for_nonsense() -> None:
    assert closest("zzzz") == []


@pytest.mark.parametrize("code", CODES)
def test_remedies_read_as_phrases_in_messages(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    report(PulseError(code))
    told = next(line for line in capsys.readouterr().err.splitlines() if "to do: " in line).split("to do: ")[1]
    assert told.endswith(".") == (". " in told)
    assert not told[0].isupper() or ". " in told
    assert told.lower().rstrip(".") == CODES[code].remedy.lower().rstrip(".")


def test_the_page_is_current() -> None:
    spec = importlib.util.spec_from_file_location("make_diagnostics", ROOT / "docs" / "make_diagnostics.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run `python docs/make_diagnostics.py`"
