"""Non-negative least squares on the relative error of times, drawn a little towards what an ideal cell would take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from pulse.costmodel.features import Features, prior

SHORT = 200.0  # ns; shorter products weigh less: their call matters more than their kernel


@dataclass
class System:
    """Rows of features and the times they should sum to; all candidates are fitted on one."""

    names: list[str]
    rows: np.ndarray  # (measurements, names)
    times: np.ndarray  # (measurements,) nanoseconds
    groups: np.ndarray  # (measurements,) number of the product each row is about


def system(features: Sequence[Features], times: Sequence[float], groups: Sequence[int]) -> System:
    """The dense system of these features."""
    names = sorted({name for row in features for name in row})
    index = {name: i for i, name in enumerate(names)}
    rows = np.zeros((len(features), len(names)))
    for i, row in enumerate(features):
        for name, value in row.items():
            rows[i, index[name]] = value
    return System(names, rows, np.asarray(times, float), np.asarray(groups))


def merged(wide: System, rename: Callable[[str], str]) -> System:
    """The system with features of the same new name added up."""
    names = sorted({rename(name) for name in wide.names})
    index = {name: i for i, name in enumerate(names)}
    join = np.zeros((len(wide.names), len(names)))
    for i, name in enumerate(wide.names):
        join[i, index[rename(name)]] = 1.0
    return System(names, wide.rows @ join, wide.times, wide.groups)


def solve(
    given: System, chosen: np.ndarray, ridge: float, relative: bool = True, short: float = SHORT
) -> dict[str, float]:
    """Weights per feature.

    Args:
        chosen: how often each row counts, (measurements,); 0 leaves it out.
        ridge: how strongly weights are drawn to `prior`, as a share of what the data say.
        relative: minimise relative errors; else absolute ones in nanoseconds.
    """
    from scipy.optimize import nnls

    used = chosen > 0
    times = given.times[used]
    weight = np.sqrt(chosen[used])
    if relative:
        weight = weight / times * np.sqrt(np.minimum(1.0, times / short))
    rows, goal = given.rows[used] * weight[:, None], times * weight
    normal, right = rows.T @ rows, rows.T @ goal
    ideal = np.array([prior(name) for name in given.names])
    pull = ridge * np.diag(normal) + 1e-9 * len(times)
    normal[np.diag_indices_from(normal)] += pull
    right += pull * ideal
    # nnls on the Cholesky factor of the normal equations, columns scaled to one: the same minimum, a small problem.
    scale = 1 / np.sqrt(np.diag(normal))
    factor = np.linalg.cholesky(normal * scale[:, None] * scale + 1e-12 * np.eye(len(scale)))
    weights, _ = nnls(factor.T, np.linalg.solve(factor, right * scale), maxiter=30 * len(scale))
    return dict(zip(given.names, (weights * scale).tolist(), strict=True))
