"""What states start as, taken out of the graph."""

from __future__ import annotations

from pulse.engine.native.net import Net
from pulse.graph.ir import Node


def take_starts(net: Net) -> None:
    """Promises that no `Where(position == 0, initial, state)` is left whose `initial` is a constant or an input.

    `net.initials` holds the initial values instead: the engine puts them into the state before the first pulse.
    """
    makers = net.makers()
    states = {s.input for s in net.info.states}
    inputs = {p.name for p in net.info.inputs}
    for node in list(net.nodes):
        if node.op != "Where" or node.domain or node.inputs[2] not in states:
            continue
        condition, initial, state = node.inputs
        if not _at_start(net, makers.get(condition)) or (initial not in net.constants and initial not in inputs):
            continue
        if state in net.initials or any(n is not node and state in n.inputs for n in net.nodes):
            continue
        net.initials[state] = net.constants.get(initial, initial)
        net.nodes.remove(node)
        net.rename(node.outputs[0], state)


def _at_start(net: Net, node: Node | None) -> bool:
    if node is None or node.op != "Equal" or node.inputs[0] != net.info.position:
        return False
    zero = net.constants.get(node.inputs[1])
    return zero is not None and zero.size == 1 and not zero.any()
