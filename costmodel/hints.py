"""Hints: kernels measured to be best for the products of one model on one CPU, in a small file beside the model.

The file is MODEL.hints.json (enc.onnx.hints.json beside enc.onnx); for an artefact also that of its source in the same
folder. It has one entry per CPU and instruction set.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulse.costmodel.cells import kernel_from_name
from pulse.costmodel.files import parsed, read_bytes
from pulse.costmodel.shapes import ACTS, LAYOUTS, Product

from pulse.errors import PulseError, PulseWarning

FORMAT = "pulse.hints"
VERSION = 1
ENDING = ".hints.json"

Key = tuple[int, int, int, str, str]


@dataclass(frozen=True)
class Hint:
    """For one product: the best kernel per panel height with its nanoseconds, and how often a pulse runs it."""

    product: Product
    panels: dict[int, tuple[str, float]]
    count: int = 1

    @property
    def best(self) -> tuple[str, float]:
        """The best kernel of all and its nanoseconds."""
        return min(self.panels.values(), key=lambda pair: pair[1])


@dataclass(frozen=True)
class Hints:
    """Hints for one CPU, instruction set and list of kernels. `times`, of every kernel, are not kept in the file."""

    cpu: str
    isa: str
    kernels: list[str]
    date: str = ""
    tool: str = ""
    home: str = "l3"
    found: dict[Key, Hint] = field(default_factory=dict)
    times: dict[Key, dict[str, float]] = field(default_factory=dict, compare=False)

    def kernel(self, product: Product, panel: int | None = None) -> str | None:
        """The kernel to take, or None where nothing was measured for this product (and panel height)."""
        hint = self.found.get(key_of(product))
        if hint is None:
            return None
        if panel is None:
            return hint.best[0]
        return hint.panels[panel][0] if panel in hint.panels else None

    def ns(self, product: Product, panel: int | None = None) -> float | None:
        """What that kernel took."""
        hint = self.found.get(key_of(product))
        if hint is None or (panel is not None and panel not in hint.panels):
            return None
        return hint.best[1] if panel is None else hint.panels[panel][1]


def key_of(product: Product) -> Key:
    """What a hint is looked up by; where the weights come from is the model's affair."""
    return product.m, product.k, product.n, product.layout, product.act


def beside(model: str | Path) -> Path:
    """Where the hints of a model are written."""
    return Path(f"{model}{ENDING}")


def find(model: str | Path | None, source: str = "", asked: str | Path | None = None) -> list[Hints]:
    """All entries of the hints to use: those of the file `asked`, of none, or of what lies beside the model.

    Warns:
        PulseWarning: a file beside the model that cannot be read.

    Raises:
        PulseError: `hints-invalid`, `file-not-found` or `file-unreadable` for the file `asked`.
    """
    if asked is not None:
        return [] if str(asked) == "none" else load(asked)
    if model is None:
        return []
    places = [beside(model)]
    if source:
        places.append(beside(Path(model).parent / Path(source).name))
    for path in places:
        if path.is_file():
            try:
                return load(path)
            except PulseError as error:
                warnings.warn(f"the hints in {path} are left out: {error.found}", PulseWarning, stacklevel=3)
                return []
    return []


def usable(entries: Sequence[Hints], cpu: str, isa: str, kernels: Sequence[str]) -> Hints | None:
    """The entry for this CPU, instruction set and kernels; None, with one warning that says why, where none is."""
    of_cpu = [entry for entry in entries if entry.cpu == cpu]
    of_isa = [entry for entry in of_cpu if entry.isa == isa]
    for entry in of_isa:
        if list(kernels) == entry.kernels:
            return entry
    if of_isa:
        why = "they were made with another list of kernels"
    elif of_cpu:
        why = f"they are for instruction set {', '.join(entry.isa for entry in of_cpu)}, not {isa}"
    else:
        why = f"they are for {'; '.join(dict.fromkeys(entry.cpu for entry in entries))}, not {cpu}"
    warnings.warn(f"hints are left out: {why}; `pulse tune` makes new ones", PulseWarning, stacklevel=3)
    return None


def load(path: str | Path) -> list[Hints]:
    """The entries of a file. Raises PulseError `hints-invalid`, `file-not-found` or `file-unreadable`."""

    def invalid(found: str) -> PulseError:
        return PulseError(
            "hints-invalid",
            node=str(path),
            required="hints as `pulse tune` writes them",
            found=found,
            remedy="make them again: `pulse tune MODEL`; or do without: `--hints none`",
        )

    return parsed(read_bytes(path, "a file of hints"), _loads, invalid)


def _loads(text: str) -> list[Hints]:
    data = json.loads(text)
    if data.get("format") != FORMAT:
        raise ValueError("a file of another kind")
    if data["version"] != VERSION:
        raise ValueError(f"version {data['version']}, where this pulse reads {VERSION}")
    entries = [_read(entry) for entry in data["entries"]]
    if not entries:
        raise ValueError("no entry")
    return entries


def _read(entry: dict[str, Any]) -> Hints:
    kernels = [str(name) for name in entry["kernels"]]
    found = {}
    for item in entry["products"]:
        m, k, n = (_count(item[key]) for key in ("m", "k", "n"))
        product = Product(m, k, n, str(item["layout"]), str(item["act"]))
        if product.layout not in LAYOUTS or product.act not in ACTS:
            raise ValueError(f"layout {product.layout}, act {product.act}")
        panels = {}
        for height, (name, ns) in item["panels"].items():
            if name not in kernels or kernel_from_name(name).panel != int(height):
                raise ValueError(f"kernel {name} in panels of {height}")
            if not 0 < float(ns) < float("inf"):
                raise ValueError(f"{ns!r} where a positive number is due")
            panels[int(height)] = (str(name), float(ns))
        if not panels:
            raise ValueError(f"no kernel for {product}")
        found[key_of(product)] = Hint(product, panels, _count(item.get("count", 1)))
    cpu, isa, date, tool, home = (str(entry[key]) for key in ("cpu", "isa", "date", "tool", "home"))
    return Hints(cpu, isa, kernels, date, tool, home, found)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{value!r} where a number of at least 1 is due")
    return value


def dumps(entries: Sequence[Hints], model: str) -> str:
    """The JSON form."""
    listed = [
        {
            "cpu": entry.cpu,
            "isa": entry.isa,
            "date": entry.date,
            "tool": entry.tool,
            "home": entry.home,
            "kernels": entry.kernels,
            "products": [
                {
                    "m": hint.product.m,
                    "k": hint.product.k,
                    "n": hint.product.n,
                    "layout": hint.product.layout,
                    "act": hint.product.act,
                    "count": hint.count,
                    "kernel": hint.best[0],
                    "ns": hint.best[1],
                    "panels": {str(height): list(pair) for height, pair in sorted(hint.panels.items())},
                }
                for hint in entry.found.values()
            ],
        }
        for entry in entries
    ]
    return json.dumps({"format": FORMAT, "version": VERSION, "model": model, "entries": listed}, indent=1) + "\n"
