"""onnx.reference as an engine: slow, always there, the oracle where ONNX Runtime is not installed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import inliner
from onnx.reference import ReferenceEvaluator

from pulse.engine.failure import unsupported
from pulse.engine.reference_ops import repaired


class ReferenceEngine:
    """Runs the graph op by op in numpy, its functions inlined: inside them onnx.reference takes no mended operators."""

    name = "reference"

    def __init__(self, proto: onnx.ModelProto) -> None:
        try:
            opset = next(o.version for o in proto.opset_import if o.domain in ("", "ai.onnx"))
            flat = inliner.inline_local_functions(proto) if proto.functions else proto
            self._evaluator = ReferenceEvaluator(flat, new_ops=repaired(opset))
            self._outputs = list(self._evaluator.output_names)
        except Exception as error:  # of any kind, for a graph that is not whole
            raise unsupported(self.name, "a graph that onnx.reference loads", error) from None

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            with np.errstate(all="ignore"):
                results = self._evaluator.run(None, dict(feeds))
        except Exception as error:  # the ops raise whatever numpy raises
            raise unsupported(self.name, "a graph that onnx.reference runs", error) from None
        return dict(zip(self._outputs, (np.asarray(r) for r in results), strict=True))
