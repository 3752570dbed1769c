"""Drawing parts of a model at random. All raise IndexError where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

Rng = np.random.Generator


def pick(rng: Rng, items: Any) -> Any:
    """One of a sequence. IndexError if it is empty."""
    return items[int(rng.integers(len(items)))] if len(items) else [][0]


def some_graph(model: onnx.ModelProto, rng: Rng) -> onnx.GraphProto:
    """The graph, or one inside it."""
    inner = [a.g for n in model.graph.node for a in n.attribute if a.HasField("g")]
    return pick(rng, inner) if inner and rng.random() < 0.5 else model.graph


def some_node(model: onnx.ModelProto, rng: Rng) -> onnx.NodeProto:
    """A node of a graph, or of a function."""
    if model.functions and rng.random() < 0.3:
        return pick(rng, pick(rng, model.functions).node)
    return pick(rng, some_graph(model, rng).node)


def drop_one(items: Any, rng: Rng) -> None:
    del items[int(rng.integers(len(items)))]
