"""Ways to spoil a model: its bytes, its fields, its manifest; and what is spoilt."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from mutants.bases import Base, bases
from mutants.bytewise import BYTES
from mutants.draw import Rng
from mutants.manifest import odd_manifest
from mutants.structure import (
    clear_field,
    cycle,
    drop_item,
    drop_of_node,
    duplicate,
    odd_function,
    odd_version,
    other_op,
    rename,
    shuffle,
)
from mutants.values import new_attribute, odd_attribute, odd_initializer, odd_integers, odd_shape, odd_type, wrong_type

__all__ = ["Base", "bases", "mutant_of"]

FIELDS: tuple[Callable[[onnx.ModelProto, Rng], None], ...] = (
    drop_item, drop_item, drop_of_node, drop_of_node, clear_field, clear_field, duplicate, shuffle, rename, rename,
    cycle, odd_attribute, odd_attribute, odd_attribute, odd_attribute, wrong_type, new_attribute, new_attribute,
    other_op, other_op, odd_shape, odd_shape, odd_type, odd_initializer, odd_initializer, odd_integers, odd_integers,
    odd_integers, odd_version, odd_function, odd_manifest, odd_manifest, odd_manifest,
)  # fmt: skip


def mutant_of(data: bytes, rng: Rng) -> bytes:
    """One to three mutations of a file."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        spoil = BYTES if rng.random() < 0.12 else FIELDS
        change = spoil[rng.integers(len(spoil))]
        if spoil is BYTES:
            data = change(data, rng)  # type: ignore[operator]
            continue
        model = onnx.ModelProto()
        try:
            model.ParseFromString(data)
            change(model, rng)  # type: ignore[operator]
            data = model.SerializeToString()
        except Exception:
            pass  # nothing there to change, or broken by the mutation before
    return data
