"""The types of the native module say what it has: every function, class, method and property, and their parameters."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import pulse

_native = pytest.importorskip("pulse._native", reason="the native module is not built")
WRITTEN = Path(pulse.__file__).with_name("_native.pyi")


def written() -> dict[str, list[str] | None]:
    """Parameters by qualified name, as the .pyi has them; None for a property."""
    found: dict[str, list[str] | None] = {}
    for node in ast.parse(WRITTEN.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = parameters(node)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    found[f"{node.name}.{member.name}"] = None if member.decorator_list else parameters(member)
    return found


def parameters(node: ast.FunctionDef) -> list[str]:
    args = node.args
    names = [a.arg for a in (*args.posonlyargs, *args.args)]
    return [*names, *(["*"] if args.kwonlyargs else []), *(a.arg for a in args.kwonlyargs)]


def bound() -> dict[str, list[str] | None]:
    """The same as the module tells it."""
    found: dict[str, list[str] | None] = {}
    for name in dir(_native):
        member = getattr(_native, name)
        if isinstance(member, type):
            for inner, value in vars(member).items():
                if inner == "__init__" or not inner.startswith("__"):
                    found[f"{name}.{inner}"] = None if isinstance(value, property) else told(value)
        elif not name.startswith("__"):
            found[name] = told(member)
    return found


def told(function: Any) -> list[str]:
    """Parameter names from a signature such as `def time(self, length: int, repeats: int = 3) -> float`."""
    (signature, *_), *others = function.__nb_signature__
    assert not others, "one form of each function"
    inside = signature[signature.index("(") + 1 : signature.rindex(") ->")]
    while (plain := re.sub(r"\([^()]*\)|\[[^][]*\]", "", inside)) != inside:
        inside = plain
    return [part.partition(":")[0].strip() for part in inside.split(",") if part.strip() not in ("", "/")]


def test_the_types_are_those_of_the_module() -> None:
    assert written() == bound()
