"""pulse-gather, the executable without Python for boards: built for this machine, and for 64-bit Arm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pulse.costmodel.cells import acceptable, kernel_from_name
from pulse.costmodel.dataset import Dataset, read_dataset
from pulse.costmodel.fit import fit
from pulse.costmodel.shapes import Product, in_homes, sweep, write_list

ROOT = Path(__file__).resolve().parent.parent
QUICK = ("--rounds", "2", "--slice-us", "1")
COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"


def build(folder: Path, *options: str) -> Path:
    """pulse-gather, built without Python. Skips where there is no toolchain."""
    beside = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    cmake, ninja = shutil.which("cmake", path=beside), shutil.which("ninja", path=beside)
    if cmake is None or not (ninja or shutil.which("make")):
        pytest.skip("no cmake here")
    generator = ("-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}") if ninja else ()
    subprocess.run(
        [cmake, "-S", ROOT, "-B", folder, "-DPULSE_GATHER=ON", *generator, *options], check=True, capture_output=True
    )
    subprocess.run([cmake, "--build", folder, "--parallel", "2"], check=True, capture_output=True)
    return folder / "pulse-gather"


def gathered(command: list[str | Path], folder: Path, products: list[Product]) -> Dataset:
    shapes, data = folder / "shapes.txt", folder / "data.txt"
    shapes.write_text(write_list(products))
    for expected in (products[: len(products) // 2], products):  # the second run goes on where the first ended
        (folder / "part.txt").write_text(write_list(expected))
        subprocess.run([*command, folder / "part.txt", data, *QUICK], check=True, capture_output=True, timeout=240)
        assert len(read_dataset(data).samples) == len(expected)
    return read_dataset(data)


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("native"))


def test_what_the_executable_writes_is_fitted_here(native: Path, tmp_path: Path) -> None:
    data = gathered([native], tmp_path, in_homes(sweep(60, 5, 16), ["l2"]))
    (isa,) = data.kernels
    table, _ = fit(data, isa, resamples=0)
    product = Product(64, 64, 3, home="l2")
    takers = [kernel for kernel in map(kernel_from_name, table.kernels) if acceptable(kernel, product)]
    assert all(table.ns(kernel, product) > 0 for kernel in takers)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((), "usage"),
        (("missing.txt", "d.txt"), "missing.txt cannot be read"),
        (("bad.txt", "d.txt"), "bad.txt, line 2: `64x384x1` is no sample"),
        (("empty.txt", "d.txt"), "empty.txt lists no sample"),
        (("good.txt", "nowhere/d.txt"), "output-unwritable"),
        (("good.txt", "bad.txt"), "dataset-corrupt"),
        (("good.txt", "d.txt", "--isa", "v9"), "`v9`"),
        (("good.txt", "d.txt", "--rounds", "0"), "--rounds 0"),
        (("good.txt", "d.txt", "--rounds"), "--rounds"),
        (("good.txt", "d.txt", "--core", "5000"), "core-unavailable"),
    ],
)
def test_bad_input_is_told(native: Path, tmp_path: Path, args: tuple[str, ...], told: str) -> None:
    (tmp_path / "good.txt").write_text("8 8 1 frame none l2\n")
    (tmp_path / "bad.txt").write_text("# sizes\n64x384x1\n")
    (tmp_path / "empty.txt").write_text("# nothing\n")
    done = subprocess.run([native, *args], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / "d.txt").exists()


def test_for_64_bit_arm_under_an_emulator(tmp_path: Path) -> None:
    if not shutil.which(COMPILER) or not shutil.which(EMULATOR):
        pytest.skip(f"{COMPILER} or {EMULATOR} is not installed")
    options = ("-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", f"-DCMAKE_CXX_COMPILER={COMPILER}")
    executable = build(tmp_path / "arm", *options)
    kind = executable.read_bytes()[:20]
    assert kind[:4] == b"\x7fELF"
    assert kind[18] == 0xB7, "not built for aarch64"
    products = [
        *in_homes(sweep(44, 6, 4), ["l2"]),
        Product(8, 8, 5, "conv", "relu", "l3"),
        Product(4, 4, 1, home="cold"),
    ]
    small = [product for product in products if product.flops < 200_000]
    data = gathered([EMULATOR, executable], tmp_path, small)
    assert list(data.kernels) == ["neon"]
    assert all(ns > 0 for sample in data.samples for ns in sample.ns if ns == ns)
