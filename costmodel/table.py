"""Tables: what a fit found for one instruction set on one processor, with where it comes from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pulse.costmodel.cells import kernel_from_name
from pulse.costmodel.dataset import Limits
from pulse.costmodel.features import Machine, features, prior
from pulse.costmodel.files import MALFORMED, parsed, read_bytes
from pulse.costmodel.shapes import HOMES, Product

from pulse.engine.pick import Kernel
from pulse.errors import PulseError

FORMAT = "pulse.table"
VERSION = 1  # of the file and of what features mean: a table of another version cannot be read
SHIPPED = Path(__file__).parent / "tables"


@dataclass(frozen=True)
class Variant:
    """Which weights a fit keeps apart: by layout of the data; a kernel's own tile from the same as a remainder."""

    layout: bool = False
    main: bool = False

    def rename(self, feature: str) -> str:
        """The weight that a feature is multiplied with."""
        kind, *rest = feature.split(" ")
        if kind not in ("run", "start"):
            return feature
        cell, layout, main = rest
        return " ".join([kind, cell, *([layout] if self.layout else []), *([main] if self.main else [])])


@dataclass(frozen=True)
class Fitted:
    """The weights for one home of the weights, how they were chosen, and their regrets on products held out."""

    weights: dict[str, float]
    variant: Variant = Variant()
    candidate: str = ""
    regret: dict[str, Any] = field(default_factory=dict)
    _known: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    def ns(self, kernel: Kernel, product: Product, machine: Machine) -> float:
        """Nanoseconds that the kernel takes for the product."""
        return sum(value * self.weight(name) for name, value in features(kernel, product, machine).items())

    def weight(self, feature: str) -> float:
        """The weight of a feature; one that was never measured counts as an ideal cell's."""
        if feature not in self._known:
            own = self.variant.rename(feature)
            self._known[feature] = self.weights[own] if own in self.weights else prior(own)
        return self._known[feature]


@dataclass(frozen=True)
class Table:
    """Forecasts the time of every kernel of one instruction set."""

    isa: str
    cpu: str
    date: str
    tool: str
    dataset: dict[str, Any]
    machine: Machine
    kernels: list[str]
    homes: dict[str, Fitted]

    def ns(self, kernel: Kernel, product: Product) -> float:
        """Nanoseconds that the kernel takes for the product; for a home not measured, those of the nearest one."""
        fitted = self.homes[self.home(product.home)]
        return fitted.ns(kernel, product, self.machine)

    def home(self, wanted: str) -> str:
        """`wanted` if the table has it, else the home next to it."""
        place = HOMES.index(wanted)
        return min(self.homes, key=lambda home: abs(HOMES.index(home) - place))

    def dumps(self) -> str:
        """The JSON form."""
        value = {
            "format": FORMAT,
            "version": VERSION,
            "isa": self.isa,
            "cpu": self.cpu,
            "date": self.date,
            "tool": self.tool,
            "dataset": self.dataset,
            "machine": asdict(self.machine),
            "kernels": self.kernels,
            "homes": {
                home: {
                    "candidate": f.candidate,
                    "variant": asdict(f.variant),
                    "regret": f.regret,
                    "weights": {name: float(f"{w:.4g}") for name, w in sorted(f.weights.items())},
                }
                for home, f in self.homes.items()
            },
        }
        return json.dumps(value, indent=1) + "\n"


def loads(text: str, label: str) -> Table:
    """Reads a table. Raises PulseError `table-invalid`."""
    try:
        data = json.loads(text)
        if data.get("format") != FORMAT:
            raise _invalid(label, "a file of another kind")
        if data["version"] != VERSION:
            raise _invalid(label, f"a table of version {data['version']}, where this pulse reads version {VERSION}")
        l1, l2 = (int(_number(data["machine"][level])) for level in ("l1", "l2"))
        machine = Machine(Limits(**data["machine"]["limits"]), l1, l2)
        for value in asdict(machine.limits).values():
            _number(value, positive=True)
        homes = {
            home: Fitted(
                {str(name): _number(w) for name, w in entry["weights"].items()},
                Variant(bool(entry["variant"]["layout"]), bool(entry["variant"]["main"])),
                str(entry["candidate"]),
                dict(entry["regret"]),
            )
            for home, entry in data["homes"].items()
        }
        if not homes or not set(homes) <= set(HOMES):
            raise ValueError(f"homes {list(homes)}")
        kernels = [str(name) for name in data["kernels"]]
        if any(kernel_from_name(name).isa != data["isa"] for name in kernels):
            raise ValueError("kernels of another instruction set")
        where = {key: str(data[key]) for key in ("isa", "cpu", "date", "tool")}
        return Table(**where, dataset=dict(data["dataset"]), machine=machine, kernels=kernels, homes=homes)
    except MALFORMED as error:
        raise _invalid(label, f"{type(error).__name__}: {error}"[:200]) from None


def load(path: str | Path) -> Table:
    """The table in a file. Raises PulseError `file-not-found`, `file-unreadable` or `table-invalid`."""
    label = str(path)
    return parsed(read_bytes(path, "a table"), lambda text: loads(text, label), lambda found: _invalid(label, found))


def own_folder() -> Path:
    """Where tables that were fitted on this machine are kept: `pulse/tables` in the user's data folder."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "pulse" / "tables"


def file_name(isa: str, cpu: str) -> str:
    """The name under which a table is kept, e.g. "v4-amd-epyc-family-25-model-17.json"."""
    words = "".join(c if c.isalnum() else " " for c in cpu.lower()).split()
    return "-".join([isa, *words]) + ".json"


def files(isa: str) -> Iterator[Path]:
    """Files that may hold a table of an instruction set, the user's own first."""
    for folder in (own_folder(), SHIPPED):
        if folder.is_dir():
            yield from sorted(p for p in folder.glob(f"{isa}*.json") if p.stem.split("-")[0] == isa)


def _number(value: Any, positive: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise ValueError(f"{value!r} where a number of at least 0 is due")
    if positive and value == 0:
        raise ValueError("0 where a positive number is due")
    return float(value)


def _invalid(label: str, found: str) -> PulseError:
    return PulseError(
        "table-invalid",
        node=label,
        required="a table as `pulse costmodel fit` writes it",
        found=found,
        remedy="fit it again from its data set, or delete it: the table that comes with pulse serves then",
    )
