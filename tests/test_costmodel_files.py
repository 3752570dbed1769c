"""Files of the cost model that are damaged in any way are refused by their code, whoever reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pulse.costmodel import hints, table
from pulse.costmodel.constraints import read_constraints
from pulse.costmodel.dataset import parse_dataset, read_dataset
from pulse.costmodel.pick import find_table
from refused import code

from pulse.errors import PulseWarning

READERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "hints": (hints.load, "hints-invalid"),
    "table": (table.load, "table-invalid"),
    "constraints": (read_constraints, "constraints-invalid"),
    "data set": (read_dataset, "dataset-corrupt"),
}
DAMAGED = {
    "empty": "",
    "no JSON": "{",
    "another value": "3",
    "a list of it": "[3]",
    "lists without end": "[" * 100_000,
    "objects without end": '{"format":' * 100_000,
    "a number of too many digits": "9" * 5000,
    "no text": b"\xff\xfe",
}
BEYOND = (float("inf"), float("nan"), 10**400, -1, 0, "much", None, [1.0])  # where a time or a weight is due


@pytest.mark.parametrize(("read", "wanted"), READERS.values(), ids=READERS.keys())
@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_files(tmp_path: Path, read: Callable[[Path], Any], wanted: str, content: str | bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert code(read, path) == wanted


@pytest.mark.parametrize("read", [reader for reader, _ in READERS.values()], ids=READERS.keys())
def test_paths_that_cannot_be_read(tmp_path: Path, read: Callable[[Any], Any]) -> None:
    assert code(read, tmp_path / "absent") == "file-not-found"
    assert code(read, tmp_path) == "file-unreadable"
    assert code(read, "a\0b") == "file-unreadable"


@pytest.mark.parametrize("number", BEYOND, ids=lambda number: str(number)[:9])
def test_numbers_out_of_bounds(tmp_path: Path, number: object) -> None:
    path = tmp_path / "file.json"
    shipped = next(p for p in table.SHIPPED.glob("*.json"))
    for level in ("l1", "flops"):
        data = json.loads(shipped.read_text())
        machine = data["machine"]
        (machine if level == "l1" else machine["limits"])[level] = number
        path.write_text(json.dumps(data))
        if (level, number) != ("l1", 0):  # a cache that the system says nothing of
            assert code(table.load, path) == "table-invalid"
    kernel = "v3_mmm_f32_8x1"
    product = {"m": 8, "k": 8, "n": 1, "layout": "frame", "act": "none", "panels": {"8": [kernel, number]}}
    entry = dict.fromkeys(("cpu", "isa", "date", "tool", "home"), "") | {"kernels": [kernel], "products": [product]}
    path.write_text(json.dumps({"format": hints.FORMAT, "version": hints.VERSION, "entries": [entry]}))
    assert code(hints.load, path) == "hints-invalid"


@pytest.mark.parametrize("line", ["kernels", "limits", "kernels ", "limits  v3"])
def test_header_lines_of_a_data_set_without_their_values(line: str) -> None:
    first = (table.SHIPPED / "zen4.data.txt").read_text().split("\n", 1)[0]
    assert code(parse_dataset, f"{first}\n{line}\nsamples\n".encode(), "data") == "dataset-corrupt"


def test_a_damaged_table_of_ones_own_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", os.fspath(tmp_path))
    (tmp_path / "pulse" / "tables").mkdir(parents=True)
    (tmp_path / "pulse" / "tables" / "v3.json").write_text(DAMAGED["lists without end"])
    with pytest.warns(PulseWarning, match="passed over"):
        found, by = find_table("v3", "no such CPU")
    assert found is not None
    assert by == "isa table"
