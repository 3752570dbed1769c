"""Pools whose last window hangs over the end of an axis that does not stream: ceil_mode holds there as along time."""

from __future__ import annotations

import pytest
from nets.text import from_text
from oracle import assert_streams


@pytest.mark.parametrize("attributes", ["", ", pads=[0, 1, 0, 0]", ", pads=[1, 0, 1, 0]", ", count_include_pad=1"])
@pytest.mark.parametrize("kernel", ["[1, 2]", "[2, 2]"])
@pytest.mark.parametrize("kind", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("bands", [16, 17])
def test_ceil_mode_over_bands(kind: str, kernel: str, bands: int, attributes: str) -> None:
    if "count" in attributes and kind == "MaxPool":
        attributes = ", pads=[0, 1, 0, 1]"
    if "[1, 0" in attributes and kernel == "[1, 2]":
        attributes = ""
    pool = f"{kind}<kernel_shape={kernel}, strides=[1, 2], ceil_mode=1{attributes}>"
    model = from_text(f"(float[1,3,S,{bands}] x) => (float y) {{ y = {pool}(x) }}")
    assert_streams(model, widths=(1, 3, "dynamic"), lengths=(2, 3, 9), min_length=2)
