"""Paths and profiles that all tests share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
sys.path.insert(0, str(TESTS))  # `nets` and `oracle` are imported by name


def find_shared() -> Path | None:
    """The folder of published models, kept beside the repository or named by PULSE_SHARED."""
    named = os.environ.get("PULSE_SHARED")
    candidates = [Path(named)] if named else [parent / "shared" for parent in TESTS.parents[1:3]]
    return next((c for c in candidates if (c / "models").is_dir()), None)


pytest_plugins = ("cli_fixtures",)


@pytest.fixture(scope="session")
def shared() -> Path:
    folder = find_shared()
    if folder is None:
        pytest.skip("no published models here: set PULSE_SHARED to the folder that holds them")
    return folder
