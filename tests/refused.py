"""How tests ask for a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pulse


def code(call: Callable[..., Any], *args: Any, **options: Any) -> str:
    """The code of the PulseError that the call raises; it must come with a remedy."""
    with pytest.raises(pulse.PulseError) as caught:
        call(*args, **options)
    assert caught.value.remedy
    return caught.value.code
