"""The cells that forecasts are made of follow what the native kernels do."""

from __future__ import annotations

import pytest
from pulse.costmodel.cells import acceptable, cells, kernel_from_name, panel_heights
from pulse.costmodel.dataset import Limits, read_dataset
from pulse.costmodel.features import Machine, features
from pulse.costmodel.gather import Settings, gather
from pulse.costmodel.shapes import LAYOUTS, Product, sweep

from pulse.engine.isa import available, native
from pulse.engine.pick import LANES, Kernel, kernels

ISAS = [isa for isa in available() if isa != "ref"]
ALL = [kernel for isa in ISAS for kernel in kernels(isa)]


@pytest.mark.parametrize("kernel", ALL, ids=lambda kernel: kernel.name)
def test_names_say_what_kernels_are(kernel: Kernel) -> None:
    assert kernel_from_name(kernel.name) == kernel


@pytest.mark.parametrize("name", ["", "v4_mmm_f32_16", "v9_mmm_f32_16x1", "v4_mmm_f32_16x1k1", "64x1"])
def test_what_is_no_name_of_a_kernel(name: str) -> None:
    with pytest.raises(ValueError, match="no name of a kernel"):
        kernel_from_name(name)


def test_panel_heights_are_those_of_packing() -> None:
    for panel in sorted({kernel.panel for kernel in ALL}):
        for m in range(1, 200):
            assert panel_heights(panel, m) == native().panel_heights(panel, m), (panel, m)


@pytest.mark.parametrize("kernel", ALL, ids=lambda kernel: kernel.name)
def test_cells_cover_each_value_of_c_once(kernel: Kernel) -> None:
    for product in sweep(60, 3, 80):
        if acceptable(kernel, product):
            assert _covered(kernel, product) == product.m * product.n, product


def _covered(kernel: Kernel, product: Product) -> float:
    """Values of C that the cells compute, padding rows left out."""
    total = 0
    for part in cells(kernel, product):
        rows, columns = part.kind.removeprefix("nl").removeprefix("dot").split("k")[0].split("x")
        total += part.count * int(rows) * int(columns)
    if kernel.family == "dot":
        return total
    if kernel.family == "mmm":
        return total - (sum(panel_heights(kernel.panel, product.m)) - product.m) * product.n
    # Rows left over are computed exactly, but for the columns that fill no vector.
    left = product.m % kernel.mr
    return total - (panel_heights(kernel.mr, left)[0] - left) * (product.n % LANES[kernel.isa]) if left else total


def test_cells_are_fresh_once_per_panel() -> None:
    for kernel in ALL:
        for product in sweep(20, 4, 16):
            if kernel.family == "mmm":
                fresh = sum(part.fresh for part in cells(kernel, product))
                assert fresh == len(panel_heights(kernel.panel, product.m))


def test_features_are_positive_and_finite() -> None:
    machine = Machine(Limits(100.0, 100.0, 50.0, 20.0), 32768, 1 << 20)
    for kernel in ALL:
        for product in sweep(20, 5, 40):
            if acceptable(kernel, product):
                assert all(0 < value < 1e12 for value in features(kernel, product, machine).values())


@pytest.mark.parametrize("isa", ISAS)
def test_what_takes_a_layout_is_what_native_code_times(tmp_path, isa: str) -> None:
    products = [Product(m, k, n, layout) for layout in LAYOUTS for m, k, n in ((8, 8, 4), (8, 8, 1), (4, 1, 4))]
    path = tmp_path / "data.txt"
    gather(products, path, [isa], Settings(rounds=2, slice_us=1), lambda *_: True)
    for sample in read_dataset(path).samples:
        timed = [ns == ns for ns in sample.odd]
        assert timed == [acceptable(kernel, sample.product) for kernel in kernels(isa)], sample.product
