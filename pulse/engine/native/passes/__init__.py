"""Passes over the net before lowering: each promises what its docstring says and leaves the outputs as they were.

They run in the order of the table. A pass is a function of the net that changes it in place; `ready` checks between
passes that every value has a maker and a type.
"""

from __future__ import annotations

from collections.abc import Callable

from pulse.engine.native.net import Net
from pulse.engine.native.passes.activations import fuse_activations
from pulse.engine.native.passes.affine import fold_affine
from pulse.engine.native.passes.canonical import canonical
from pulse.engine.native.passes.chains import make_chains
from pulse.engine.native.passes.compose import compose
from pulse.engine.native.passes.decompose import decompose
from pulse.engine.native.passes.pointwise import unroll_pointwise
from pulse.engine.native.passes.residual import fold_residual
from pulse.engine.native.passes.simplify import simplify
from pulse.engine.native.passes.starts import take_starts

PASSES: tuple[Callable[[Net], None], ...] = (
    take_starts,
    decompose,
    simplify,
    canonical,
    fold_affine,
    compose,
    unroll_pointwise,
    fold_residual,
    fuse_activations,
    make_chains,
)


def run_passes(net: Net) -> None:
    """All passes in order."""
    for run in PASSES:
        run(net)
        net.prune()
        ready(net, run.__name__)


def ready(net: Net, after: str) -> None:
    """Asserts what every pass must leave behind."""
    known = set(net.constants) | {p.name for p in net.info.inputs} | {s.input for s in net.info.states}
    known |= {net.info.length} if net.info.length else set()
    for node in net.nodes:
        missing = [i for i in node.inputs if i and i not in known]
        assert not missing, f"after {after}: {node.label} reads {missing} before they are made"
        known.update(o for o in node.outputs if o)
        assert all(o in net.types for o in node.outputs if o), f"after {after}: {node.label} has untyped outputs"
    lost = net.results - known
    assert not lost, f"after {after}: nothing makes {sorted(lost)}"
