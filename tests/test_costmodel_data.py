"""Data sets: written by native code, read by Python, resumed after any interruption, refused when not our own."""

from __future__ import annotations

import fcntl
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import synthetic_timings as synthetic
from pulse.costmodel.dataset import parse_dataset, read_dataset, write_dataset
from pulse.costmodel.gather import Settings, default_products, gather, isas_of
from pulse.costmodel.shapes import ACTS, HOMES, LAYOUTS, Product, in_homes, read_list, sweep, write_list

from pulse.engine.isa import available
from pulse.errors import PulseError

ISA = available()[-1]
QUICK = Settings(rounds=2, slice_us=1)
pytestmark = pytest.mark.skipif(ISA == "ref", reason="this CPU has the reference kernel only")


def small(count: int = 6) -> list[Product]:
    return in_homes([Product(8 + i, 16, 1 + i % 4) for i in range(count)], ["l2"])


def timed(tmp_path: Path, products: list[Product]) -> Path:
    path = tmp_path / "data.txt"
    gather(products, path, [ISA], QUICK, lambda *_: True)
    return path


def test_what_is_gathered_is_read(tmp_path: Path) -> None:
    products = [*small(), Product(4, 4, 20, "conv", "sigmoid", "l3"), Product(33, 70, 2, "turn", "relu", "cold")]
    data = read_dataset(timed(tmp_path, products))
    assert [s.product for s in data.of(ISA)] == products
    assert all(s.reference_ns > 0 and s.drift >= 0 for s in data.samples)
    assert all(ns > 0 for s in data.samples for ns in s.odd if ns == ns)
    assert data.limits[ISA].flops > 0
    assert data.cpu


def test_what_is_written_is_read() -> None:
    data = synthetic.dataset(small(), synthetic.truth(1), ISA)
    again = parse_dataset(write_dataset(data).encode(), "again")
    assert [str(s.product) for s in again.samples] == [str(s.product) for s in data.samples]
    for ours, theirs in zip(data.samples, again.samples, strict=True):
        assert ours.ns == pytest.approx(theirs.ns, rel=1e-4, nan_ok=True)
    assert (again.cpu, again.kernels, again.limits, again.caches) == (data.cpu, data.kernels, data.limits, data.caches)


def test_gathering_again_times_only_what_is_missing(tmp_path: Path) -> None:
    path = timed(tmp_path, small(4))
    before = path.read_text()
    asked: list[str] = []
    gather(small(6), path, [ISA], QUICK, lambda done, total, gone, left, sample: asked.append(sample) or True)
    assert path.read_text().startswith(before)
    assert [name for name in asked if name] == [f"{ISA} {product}" for product in small(6)[4:]]


def test_progress_tells_how_much_is_left(tmp_path: Path) -> None:
    told: list[tuple[int, int, float, float]] = []
    gather(small(5), tmp_path / "d.txt", [ISA], QUICK, lambda *facts: told.append(facts[:4]) or True)
    assert [done for done, *_ in told] == [0, 1, 2, 3, 4, 5]
    assert {total for _, total, *_ in told} == {5}
    left = [seconds for *_, seconds in told]
    assert left[-1] == 0 < left[0]


def test_a_callback_can_stop_and_raise(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    gather(small(), path, [ISA], QUICK, lambda done, *_: done < 2)
    assert len(read_dataset(path).samples) == 2

    def interrupt(done: int, *_: object) -> bool:
        if done == 4:
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        gather(small(), path, [ISA], QUICK, interrupt)
    assert len(read_dataset(path).samples) == 4


def test_killed_at_ten_random_moments_it_ends_complete(tmp_path: Path) -> None:
    products = in_homes(sweep(70, 11, 16), ["l2", "l3"])
    shapes, path = tmp_path / "shapes.txt", tmp_path / "data.txt"
    shapes.write_text(write_list(products))
    command = [sys.executable, "-m", "pulse.cli", "costmodel", "gather", "--shapes", str(shapes), "-o", str(path)]
    command += ["--isa", ISA, "--rounds", "3", "--slice-us", "10"]
    draw = random.Random(0)
    kept = 0
    for _ in range(10):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        start = path.stat().st_size if path.exists() else 0
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and process.poll() is None:
            if path.exists() and path.stat().st_size > start:
                break
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if path.exists():
            lines = path.read_text().split("samples\n", 1)[-1].count("\n")
            assert lines >= kept, "finished samples were lost"
            kept = lines
    assert kept > 0
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    data = read_dataset(path)
    assert sorted(map(str, (s.product for s in data.samples))) == sorted(map(str, products))
    assert not path.with_name(path.name + ".new").exists()


def test_half_a_line_at_the_end_is_dropped_and_timed_again(tmp_path: Path) -> None:
    path = timed(tmp_path, small(3))
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    assert len(read_dataset(path).samples) == 2
    gather(small(3), path, [ISA], QUICK, lambda *_: True)
    assert len(read_dataset(path).samples) == 3
    assert path.read_bytes().startswith(whole[: whole.rstrip().rfind(b"\n")])


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    whole = timed(tmp_path, small(3)).read_bytes()
    draw = random.Random(1)
    start = whole.index(b"samples\n") + 8
    for _ in range(200):
        at = draw.randrange(start, len(whole) - 1)
        changed = bytearray(whole)
        changed[at] ^= 1 << draw.randrange(7)
        with pytest.raises(PulseError, match=r"dataset-corrupt at `changed, line \d+`"):
            parse_dataset(bytes(changed), "changed")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("hello\n", 1),
        ("pulse-dataset 2\n", 1),
        ("pulse-dataset 1\ncpu X\n", 3),
        ("pulse-dataset 1\ncpu X\nsamples\n", 3),
        ("pulse-dataset 1\ncpu X\ncaches 1 2 3\nkernels v4 a\nlimits v4 flops 0\nsamples\n", 6),
    ],
)
def test_what_is_no_data_set(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "data.txt"
    path.write_text(text)
    with pytest.raises(PulseError) as caught:
        read_dataset(path)
    assert caught.value.code == "dataset-corrupt"
    assert caught.value.node == f"{path}, line {line}"


def test_gather_leaves_foreign_files_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(PulseError, match="dataset-corrupt"):
        gather(small(), path, [ISA], QUICK, lambda *_: True)
    assert path.read_text() == "my notes\n"


def test_other_settings_do_not_mix(tmp_path: Path) -> None:
    path = timed(tmp_path, small(2))
    before = path.read_bytes()
    with pytest.raises(PulseError, match="dataset-foreign"):
        gather(small(3), path, [ISA], Settings(rounds=3, slice_us=1), lambda *_: True)
    path.write_bytes(before.replace(b"cpu ", b"cpu Other ", 1))
    with pytest.raises(PulseError, match="dataset-foreign"):
        gather(small(3), path, [ISA], QUICK, lambda *_: True)


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "data.txt", tmp_path):
        with pytest.raises(PulseError, match="output-unwritable"):
            gather(small(1), path, [ISA], QUICK, lambda *_: True)


def test_two_runs_do_not_share_a_file(tmp_path: Path) -> None:
    path = timed(tmp_path, small(2))
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(PulseError, match="output-unwritable"):
            gather(small(3), path, [ISA], QUICK, lambda *_: True)
    assert len(read_dataset(path).samples) == 2


def test_a_core_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PulseError, match="core-unavailable"):
        gather(small(1), tmp_path / "d.txt", [ISA], Settings(2, 1, core=1000), lambda *_: True)


def test_products_beyond_bounds(tmp_path: Path) -> None:
    with pytest.raises(PulseError, match="shapes-invalid"):
        gather([Product(1 << 15, 1 << 15, 1)], tmp_path / "d.txt", [ISA], QUICK, lambda *_: True)


def test_lists_of_products() -> None:
    products = [Product(1, 2, 3, layout, act, home) for layout in LAYOUTS for act in ACTS for home in HOMES]
    assert read_list(write_list(products), "here") == products
    for line in ("1 2 3", "1 2 0 frame none l3", "1 2 3 frame none l4", "1 2 3 frame none l3 more", "a b c d e f"):
        with pytest.raises(PulseError) as caught:
            read_list(f"# comment\n\n{line}\n", "list.txt")
        assert caught.value.code == "shapes-invalid"
        assert caught.value.node == "list.txt, line 3"


def test_sweeps_are_seeded_and_cover_the_widths() -> None:
    products = default_products()
    assert products == default_products()
    assert len(set(products)) == len(products)
    ns = [p.n for p in products if p.home == "l2"]
    assert all(ns.count(n) >= 40 for n in (1, 2, 3, 4))
    assert max(ns) > 500
    assert {p.layout for p in products} == set(LAYOUTS)


def test_names_of_instruction_sets() -> None:
    assert isas_of(ISA) == [ISA]
    assert "ref" not in isas_of(None)
    with pytest.raises(PulseError, match="usage"):
        isas_of("v9")
    with pytest.raises(PulseError, match="usage"):
        gather(small(1), "never.txt", ["ref"], QUICK, lambda *_: True)
