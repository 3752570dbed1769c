"""Models from ONNX text, for tests that show one graph."""

from __future__ import annotations

import re

import numpy as np
import onnx
from onnx import numpy_helper, parser

INTEGER = re.compile("([sv])(m?)([0-9]+|start|end)")


def from_text(text: str, opset: int = 17, seed: int = 0) -> onnx.ModelProto:
    """The model of a graph in ONNX text. Float inputs whose names start with `w` become seeded constants.

    A node is named by `[name]` before it; those without get the name of their first output. Integers are written `s2`
    (the scalar 2), `v2` (the same as [1]), `sm1` (-1), `vend` and `vstart` (beyond either end of an axis).
    """
    header = f'<ir_version: {8 if opset < 19 else 10}, opset_import: ["" : {opset}]>'
    model = parser.parse_model(f"{header} net {text}")
    rng = np.random.default_rng(seed)
    graph = model.graph
    for entry in [i for i in graph.input if i.name.startswith("w")]:
        shape = [d.dim_value for d in entry.type.tensor_type.shape.dim]
        array = rng.standard_normal(shape).astype(np.float32) / max(np.sqrt(np.prod(shape[1:], dtype=int)), 1)
        graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), entry.name))
        graph.input.remove(entry)
    known = {i.name for i in graph.initializer}
    for node in graph.node:
        node.name = node.name or node.output[0]
        for name in node.input:
            written = INTEGER.fullmatch(name)
            if written and name not in known:
                known.add(name)
                graph.initializer.append(numpy_helper.from_array(_integer(*written.groups()), name))
    return model


def _integer(kind: str, minus: str, digits: str) -> np.ndarray:
    value = {"end": 2**63 - 1, "start": -(2**63) + 1}.get(digits)
    if value is None:
        value = -int(digits) if minus else int(digits)
    return np.array(value if kind == "s" else [value], np.int64)
