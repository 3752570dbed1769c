"""The official ONNX backend node tests through import and export: unchanged in meaning, and folded to what they expect.

Every case of the suite is run, in chunks that xdist can share. Refused may only be what pulse does not take by design:
other domains than ONNX's own, values that are no tensors of numbers, opsets before 7.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from pulse.engine.ort import session
from pulse.engine.reference_ops import repaired
from pulse.errors import PulseError
from pulse.graph.export import to_model
from pulse.graph.expr import Expr
from pulse.graph.fold import fold
from pulse.graph.ir import Graph
from pulse.graph.load import read_model, to_graph, to_one_opset
from pulse.streaming.facts import Const

CHUNKS = 4
EXACT = (np.int64, np.int32, np.float32, np.float64)  # types that sizes are computed in
EXCLUDED = {
    "test_bernoulli": "random: the suite itself compares shapes only",
    "test_range_bfloat16_type_positive_delta_expanded": "onnx.reference stacks the scalars of a Loop as columns, and "
    "ONNX Runtime takes no bfloat16 from numpy",
    "test_if_opt": "its output is an optional sequence, which no graph of tensors delivers",
    "test_image_decoder": "needs an image library, and has no part in audio",
}
REFUSALS = {
    "unknown-op": "an operator of another domain",
    "opset-unsupported": "opsets 1 to 6, no ONNX opset at all, and the Scan of opset 8",
    "invalid-model": "an input that is a sequence, an optional, or of strings",
}


@cache
def cases() -> dict[str, Any]:
    """The suite's cases by name, tensors as arrays."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators overflow on purpose
        found = load_model_tests(kind="node")
    return {c.name: c for c in found if not c.name.startswith(tuple(EXCLUDED))}


def data(case: Any) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Inputs by name and expected outputs."""
    for inputs, outputs in case.data_sets:
        names = [i.name for i in case.model.graph.input]
        yield dict(zip(names, map(_array, inputs), strict=False)), [_array(o) for o in outputs]


def _array(value: Any) -> Any:
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


@cache
def imported(name: str) -> Graph | PulseError:
    """The graph of a case, or why it is refused."""
    try:
        return to_graph(to_one_opset(*read_model(cases()[name].model.SerializeToString())), name)
    except PulseError as error:
        return error


def differs(want: Any, got: Any, case: Any) -> str:
    """What is wrong with an output; "" if nothing is."""
    if isinstance(want, list) or isinstance(got, list):
        if not (isinstance(want, list) and isinstance(got, list)) or len(want) != len(got):
            return "not the same sequence"
        return next((d for w, g in zip(want, got, strict=True) if (d := differs(w, g, case))), "")
    want, got = np.asarray(want), np.asarray(got)
    if want.dtype.kind in "OUS":  # strings
        same = want.shape == got.shape and (want.astype(str) == got.astype(str)).all()
        return "" if same else "other strings"
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    near = np.isclose(got.astype(wide), want.astype(wide), case.rtol, case.atol, equal_nan=True)
    return "" if near.all() else f"{np.count_nonzero(~near)} of {near.size} elements differ"


def by_reference(model: onnx.ModelProto, opset: int, feeds: dict[str, Any]) -> list[Any]:
    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(model, new_ops=repaired(opset)).run(None, feeds))


def by_onnxruntime(model: onnx.ModelProto, opset: int, feeds: dict[str, Any]) -> list[Any]:
    return list(session(model, optimise=False).run(None, feeds))


ENGINES: tuple[Callable[[onnx.ModelProto, int, dict[str, Any]], list[Any]], ...] = (by_reference, by_onnxruntime)


def evaluated(case: Any, graph: Graph) -> str:
    """How the exported graph fails in both engines; "" if one of them gives what the suite expects."""
    model = to_model(graph)
    if all(o.type.tensor_type.HasField("shape") for o in model.graph.output):
        onnx.checker.check_model(model)
    notes = []
    for run in ENGINES:
        try:
            found = [(o, run(model, graph.opset, feeds)) for feeds, o in data(case)]
        except Exception as error:  # what an engine lacks, it says in its own way
            notes.append(f"{type(error).__name__}: {error}"[:200])
            continue
        wrong = [d for want, got in found for d in (differs(w, g, case) for w, g in zip(want, got, strict=True)) if d]
        if not wrong:
            return ""
        notes.append(wrong[0])
    return "; ".join(notes)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_import_and_export_keep_the_meaning(chunk: int) -> None:
    failures = {}
    for name, case in list(cases().items())[chunk::CHUNKS]:
        graph = imported(name)
        if isinstance(graph, Graph) and (problem := evaluated(case, graph)):
            failures[name] = problem
    assert not failures


def test_only_what_is_no_tensor_graph_of_onnx_is_refused() -> None:
    refused: dict[str, list[str]] = {}
    for name, case in cases().items():
        error = imported(name)
        if isinstance(error, Graph):
            continue
        refused.setdefault(error.code, []).append(name)
        domains = {n.domain for n in case.model.graph.node}
        opset = next((o.version for o in case.model.opset_import if not o.domain), 0)
        kinds = [i.type.tensor_type.elem_type for i in case.model.graph.input]  # 0 where it is no tensor
        tensors = all(k not in (TensorProto.UNDEFINED, TensorProto.STRING) for k in kinds)
        assert domains != {""} or opset < 7 or not tensors or name == "test_scan_sum", f"{name}: {error}"
    assert set(refused) == set(REFUSALS)


# ---- folding


def folded(graph: Graph, feeds: dict[str, Any], symbolic: bool) -> list[tuple[np.ndarray, int]] | None:
    """Outputs of a graph all of whose inputs are known; None where folding says that it cannot.

    `symbolic`: numbers come as expressions, as sizes do that depend on the signal.
    """
    values: dict[str, tuple[np.ndarray, int]] = {}
    for name, array in {**graph.constants, **feeds}.items():
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        if symbolic and array.dtype in EXACT and np.isfinite(array).all():
            array = np.asarray(np.frompyfunc(lambda v: Expr.of(Fraction(v)), 1, 1)(array), dtype=object)
        values[name] = array, kind
    for node in graph.nodes:
        known = [values[i] if i else None for i in node.inputs]
        try:
            with np.errstate(all="ignore"):
                made = fold(
                    node, [None if k is None else k[0] for k in known], [0 if k is None else k[1] for k in known],
                    graph.opset,
                )  # fmt: skip
        except (LookupError, ValueError):  # NotAffine is a ValueError
            return None
        values.update(zip(node.outputs, made, strict=True))
    return [values[o.name] for o in graph.outputs]


@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "expressions"])
def test_folding_gives_what_the_suite_expects_or_says_that_it_cannot(symbolic: bool) -> None:
    failures, ops = {}, set()
    for name, case in cases().items():
        graph = imported(name)
        if isinstance(graph, PulseError) or name.endswith("_expanded"):
            continue
        for feeds, expected in data(case):
            if symbolic and not any(a.dtype in EXACT and a.size <= 400 for a in feeds.values()):
                continue
            found = folded(graph, feeds, symbolic)
            if found is None:
                continue
            wrong = [differs(w, Const.of(a, t).value, case) for w, (a, t) in zip(expected, found, strict=True)]
            if any(wrong):
                failures[name] = next(w for w in wrong if w)
            ops |= {n.op for n in graph.nodes}
    assert not failures
    assert len(ops) >= (20 if symbolic else 150), sorted(ops)
