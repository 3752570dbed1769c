"""ONNX Runtime as an engine, one thread."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime

from pulse.engine.failure import unsupported

# Its fusions of quantised operators make one rounding of two, or round otherwise than the operators themselves.
_EXACT = ("session.disable_double_qdq_remover", "session.disable_quant_qdq")


def session(proto: onnx.ModelProto, optimise: bool = True) -> onnxruntime.InferenceSession:
    """A single-threaded CPU session. Without `optimise` it is the plain oracle: some of ONNX Runtime's fusions reject
    valid graphs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    level = onnxruntime.GraphOptimizationLevel
    for entry in _EXACT:
        options.add_session_config_entry(entry, "1")
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        proto.SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
        enable_fallback=0,  # it would try the same again, and print to stdout
    )


class OnnxRuntimeEngine:
    """Runs the function form; ONNX Runtime inlines the functions when it loads them."""

    name = "onnxruntime"

    def __init__(self, proto: onnx.ModelProto, optimise: bool = True) -> None:
        try:
            try:
                self._session = session(proto, optimise)
            except Exception:  # a fusion that rejects the graph
                self._session = session(proto, optimise=False)
        except Exception as error:  # onnxruntime's own exception types
            raise unsupported(self.name, "a graph that ONNX Runtime loads", error) from None
        self._outputs = [o.name for o in self._session.get_outputs()]

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            results = self._session.run(None, dict(feeds))
        except Exception as error:  # likewise
            raise unsupported(self.name, "a graph that ONNX Runtime runs", error) from None
        return dict(zip(self._outputs, results, strict=True))
