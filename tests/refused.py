"""How tests ask for a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pulse
from pulse.diagnostics import CODES


def code(call: Callable[..., Any], *args: Any, **options: Any) -> str:
    """The code of the PulseError that the call raises; there must be a remedy, its own or its diagnostic's."""
    with pytest.raises(pulse.PulseError) as caught:
        call(*args, **options)
    assert caught.value.remedy or CODES[caught.value.code].remedy
    return caught.value.code
