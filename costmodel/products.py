"""The matrix products of a pulsed model at one width, as the native engine runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pulse.costmodel.shapes import ACTS, Product

from pulse.model import PulsedModel


@dataclass(frozen=True)
class Listed:
    """A product, how often one pulse runs it, the nodes it comes from, the kernel at work now and who picked it."""

    product: Product
    count: int
    nodes: tuple[str, ...]
    kernel: str = ""
    picked_by: str = ""


def products(model: PulsedModel, width: int, home: str = "l3") -> list[Listed]:
    """The product steps of the native program for pulses of `width` source frames, most work first.

    Recurrences and depthwise convolutions have native steps of their own, for which there is nothing to pick.

    Raises:
        PulseError: `engine-unsupported` where the native engine does not cover the model.
    """
    from pulse.engine.native.compile import compiled

    counts: Counter[Product] = Counter()
    nodes: dict[Product, list[str]] = {}
    kernels: dict[Product, tuple[str, str]] = {}
    for step in compiled(model).at(width).plan.steps:
        if step.kind != "product":
            continue
        facts = step.facts
        m, k, n = (int(facts[key]) for key in ("m", "k", "n"))
        product = Product(m, k, n, str(facts["layout"]), ACTS[int(str(step.args["act"]))], home)
        counts[product] += int(facts["count"])
        nodes.setdefault(product, []).append(step.node)
        kernels[product] = facts["kernel"], facts["picked_by"]
    listed = [Listed(p, count, tuple(dict.fromkeys(nodes[p])), *kernels[p]) for p, count in counts.items()]
    return sorted(listed, key=lambda item: -item.product.flops * item.count)


def merged(widths: Iterable[Iterable[Listed]]) -> list[Product]:
    """The different products of several widths, each once."""
    return list(dict.fromkeys(item.product for listed in widths for item in listed))
