"""Sanity constraints: on this product, one of these kernels, or none of those. They choose among candidate fits.

A JSON file: a list of objects with `product` ("M K N LAYOUT ACT HOME"), `one_of` or `none_of` (patterns of kernel names
such as "*_nl_*"), and optionally `isas` and `why`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pulse.costmodel.cells import acceptable
from pulse.costmodel.features import Machine
from pulse.costmodel.files import parsed, read_bytes
from pulse.costmodel.shapes import Product
from pulse.costmodel.table import Fitted

from pulse.engine.pick import Kernel
from pulse.errors import PulseError

DEFAULT = Path(__file__).parent / "constraints.json"


@dataclass(frozen=True)
class Constraint:
    """On `product` the pick must match one of the patterns in `one_of`, and none of those in `none_of`."""

    product: Product
    one_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    isas: tuple[str, ...] = ()

    def keeps(self, name: str) -> bool:
        """Whether a kernel may be picked."""
        wanted = not self.one_of or any(fnmatchcase(name, pattern) for pattern in self.one_of)
        return wanted and not any(fnmatchcase(name, pattern) for pattern in self.none_of)

    def __str__(self) -> str:
        rule = f"one of {', '.join(self.one_of)}" if self.one_of else f"none of {', '.join(self.none_of)}"
        return f"{self.product}: {rule}"


def read_constraints(path: str | Path) -> list[Constraint]:
    """Read a file of constraints. Raises PulseError `constraints-invalid`, `file-not-found` or `file-unreadable`."""

    def invalid(found: str) -> PulseError:
        return PulseError(
            "constraints-invalid",
            node=str(path),
            required='a list such as [{"product": "32 9 96 channel none l2", "one_of": ["*_nl_*"]}]',
            found=found,
        )

    return parsed(read_bytes(path, "a file of constraints"), _loads, invalid)


def _loads(text: str) -> list[Constraint]:
    entries = json.loads(text)
    if not isinstance(entries, list):
        raise ValueError("no list")
    return [_read(entry) for entry in entries]


def _read(entry: dict[str, Any]) -> Constraint:
    unknown = set(entry) - {"product", "one_of", "none_of", "isas", "why"}
    if unknown:
        raise ValueError(f"unknown key {', '.join(sorted(unknown))}")
    lists: dict[str, tuple[str, ...]] = {}
    for key in ("one_of", "none_of", "isas"):
        value = entry.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError(f"{key} is no list of names")
        lists[key] = tuple(value)
    if not lists["one_of"] and not lists["none_of"]:
        raise ValueError("neither one_of nor none_of")
    return Constraint(Product.parse(entry["product"]), **lists)


def broken(
    constraints: Sequence[Constraint],
    kernels: Sequence[Kernel],
    fitted: Fitted,
    machine: Machine,
    home: str,
) -> list[str]:
    """What a fit would pick against the constraints on products of this home, in words."""
    found = []
    for rule in constraints:
        product = rule.product
        if product.home != home or (rule.isas and kernels[0].isa not in rule.isas):
            continue
        forecast: dict[str, float] = {}
        for kernel in kernels:
            if acceptable(kernel, product):
                forecast[kernel.name] = fitted.ns(kernel, product, machine)
        pick = min(forecast, key=lambda name: forecast[name])
        if not rule.keeps(pick):
            found.append(f"{rule}, but {pick} is picked")
    return found
