"""Odd values in the manifest of a pulsed file."""

from __future__ import annotations

import json
from typing import Any

import onnx

from mutants.bytewise import flip
from mutants.draw import Rng, pick

JSON_VALUES = (
    None, True, -1, 0, 1, 3, 10**9, 2**70, 1.5, "", "x", "0/1", "1/0", "-1/2", "3/7", "S*S", "2*S", "1e9", "dynamic",
    "S//0", "max(0,S)", "__import__('os')", "(" * 300, [], [1], [1, 2, 3, 4, 5], ["P", 1], {}, {"a": 1}, 1e400,
)  # fmt: skip


def odd_manifest(model: onnx.ModelProto, rng: Rng) -> None:
    """One value somewhere in the JSON."""
    entry = pick(rng, [p for p in model.metadata_props if p.key == "pulse.manifest"])
    if rng.random() < 0.15:
        entry.value = flip(entry.value.encode(), rng).decode("utf-8", "replace")
        return
    data = json.loads(entry.value)
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        for key in list(keys):
            places.append((value, key))
            walk(value[key])

    walk(data)
    holder, key = pick(rng, places)
    how = int(rng.integers(6))
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, list):
        holder.append(holder[key])
    elif how == 2:
        value = pick(rng, places)
        holder[key] = value[0][value[1]] if value[0] is not holder[key] else None
    else:
        holder[key] = pick(rng, JSON_VALUES)
    entry.value = json.dumps(data) if rng.random() < 0.9 else json.dumps([data])
