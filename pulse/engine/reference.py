"""onnx.reference as an engine: slow, always there, the oracle where ONNX Runtime is not installed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from pulse.engine.reference_ops import repaired


class ReferenceEngine:
    """Runs the function form op by op in numpy."""

    name = "reference"

    def __init__(self, proto: onnx.ModelProto) -> None:
        opset = next(o.version for o in proto.opset_import if o.domain in ("", "ai.onnx"))
        self._evaluator = ReferenceEvaluator(proto, new_ops=repaired(opset))
        self._outputs = list(self._evaluator.output_names)

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        with np.errstate(all="ignore"):
            results = self._evaluator.run(None, dict(feeds))
        return dict(zip(self._outputs, (np.asarray(r) for r in results), strict=True))
