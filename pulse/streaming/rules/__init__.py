"""One rule file per family of ops. A rule turns a node of the source into its streaming form.

A rule is a function `(context, node, inputs) -> outputs` over `Value`s, registered for the op names it covers. Inputs
which are the same all along the signal come to it as streams, unless it is registered with `uniform=True`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from pulse.graph.ir import Node
from pulse.streaming.context import Context
from pulse.streaming.facts import Value

Inputs = Sequence[Value | None]
Function = Callable[[Context, Node, Inputs], list[Value]]


@dataclass(frozen=True)
class Rule:
    function: Function
    uniform: bool


RULES: dict[str, Rule] = {}


def rule(*ops: str, uniform: bool = False) -> Callable[[Function], Function]:
    """Registers a function as the rule of these ops."""

    def register(function: Function) -> Function:
        for op in ops:
            assert op not in RULES, op
            RULES[op] = Rule(function, uniform)
        return function

    return register


def load_rules() -> dict[str, Rule]:
    """All rules, their files imported."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return RULES
