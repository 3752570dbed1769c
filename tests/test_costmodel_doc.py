"""docs/costmodel.md: its commands exist, and following it works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from pulse.costmodel import table as tables
from pulse.costmodel.pick import find_table

from pulse.cli import main
from pulse.diagnostics import CODES
from pulse.engine.isa import available

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "costmodel.md").read_text(encoding="utf-8")
SHORT = {"gather": "--sweep 60 --wide 10 --rounds 5", "validate": "--count 40 --rounds 6"}


def commands(text: str) -> list[list[str]]:
    """The arguments of every `pulse` command that stands on a line of its own, or within back-ticks."""
    lines = re.findall(r"^ +pulse (.+)$", text, re.MULTILINE)
    lines += [" ".join(found.split()) for found in re.findall(r"`pulse ([^`]+)`", text)]
    return [shlex.split(line, comments=True) for line in lines]


@pytest.mark.parametrize("args", commands(PAGE), ids=" ".join)
def test_every_command_exists_with_its_options(args: list[str]) -> None:
    group: click.Command = main
    with click.Context(main) as context:
        while isinstance(group, click.Group) and args:
            found = group.get_command(context, args[0])
            assert found is not None, args
            group, args = found, args[1:]
        if any(arg.startswith("-") for arg in args):
            known = {name for parameter in group.params for name in parameter.opts}
            assert {arg for arg in args if arg.startswith("-")} <= known


def test_every_code_exists() -> None:
    named = set(re.findall(r"^\| `([a-z]+(?:-[a-z]+)+)` \|", PAGE, re.MULTILINE))
    assert named
    assert named <= set(CODES)


@pytest.mark.skipif(not set(available()) & {"v3", "neon"}, reason="this CPU has too few kernels to choose from")
def test_followed_literally_with_a_short_budget_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(tables, "SHIPPED", tmp_path / "none")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").symlink_to(ROOT / "models")
    section = PAGE.split("## On the machine in front of you")[1].split("\n## ")[0]
    steps = commands(re.sub(r"`[^`]*`", "", section))
    assert [step[1] for step in steps] == ["gather", "fit", "validate", "show"]
    assert all(options in section for options in SHORT.values())
    for step in steps:
        result = CliRunner().invoke(main, [*step, *SHORT.get(step[1], "").split()])
        assert result.exit_code == 0, result.output
    assert find_table(available()[-1])[1] == "cpu table"
    assert "always 64x1" in CliRunner().invoke(main, [*steps[2], "--count", "4", "--rounds", "4"]).output
