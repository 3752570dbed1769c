"""What a table's picks cost over the best kernel, on products it has never seen, next to other ways to pick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pulse.costmodel.cells import acceptable, kernel_from_name
from pulse.costmodel.dataset import Dataset, Timed
from pulse.costmodel.fit import fit_absolute
from pulse.costmodel.regret import Regret, by_shape, by_width, regrets, summary
from pulse.costmodel.rules import always_highest, counting, exact_width
from pulse.costmodel.shapes import Product, in_homes, sweep
from pulse.costmodel.table import Table

ROUNDS = 15
COUNT = 240  # fresh products, log-uniform, n up to 16
SEED = 20001  # unlike that of gather
# Products that people reported as mispicked elsewhere.
REPORTED = (
    Product(64, 384, 1, "frame"),
    Product(32, 128, 1, "frame"),
    Product(1, 256, 1, "frame"),
    Product(32, 9, 96, "channel"),
)

Choose = Callable[[Timed], int]


@dataclass(frozen=True)
class Column:
    """One way to pick, with its regrets."""

    name: str
    found: list[Regret]


def fresh_products(
    models: Sequence[Product], homes: Sequence[str], count: int = COUNT, seed: int = SEED
) -> list[Product]:
    """Products to validate on: a sweep of another seed, those of models, and the reported ones."""
    chosen = dict.fromkeys([*REPORTED, *models, *sweep(count, seed, 16)])
    return list(dict.fromkeys(in_homes(chosen, homes)))


def unseen(samples: Sequence[Timed], learnt: Dataset | None) -> list[Timed]:
    """The samples of products that a table's data set does not hold, in whatever layout or home."""
    if learnt is None:
        return list(samples)
    known = {(s.product.m, s.product.k, s.product.n) for s in learnt.samples}
    return [s for s in samples if (s.product.m, s.product.k, s.product.n) not in known]


def columns(samples: Sequence[Timed], timed: Dataset, tables: dict[str, Table], learnt: Dataset | None) -> list[Column]:
    """Regrets of each table, of an absolute fit of the first one's features, and of fixed rules.

    Args:
        tables: by the name of their column; the first is the one under test.
        learnt: the data set it was fitted on, for the absolute fit; without it that column is left out.
    """
    isa = samples[0].isa
    kernels = [kernel_from_name(name) for name in timed.kernels[isa]]

    def by(table: Table) -> Choose:
        def choose(sample: Timed) -> int:
            known = [i for i, k in enumerate(kernels) if k.name in table.kernels and acceptable(k, sample.product)]
            return min(known, key=lambda i: table.ns(kernels[i], sample.product))

        return choose

    ways: dict[str, Choose] = {name: by(table) for name, table in tables.items()}
    first = next(iter(tables.values()), None)
    if first is not None and learnt is not None:
        ways["absolute fit"] = by(fit_absolute(learnt, first))
    ways["counting rule"] = lambda sample: counting(kernels, sample.product)
    ways["exact NR"] = lambda sample: exact_width(kernels, sample.product)
    ways["always 64x1"] = lambda sample: always_highest(kernels, sample.product)
    return [Column(name, regrets(samples, choose)) for name, choose in ways.items()]


def over_limit(found: Sequence[Regret], timed: Dataset, isa: str) -> list[float]:
    """Time of each pick over its product's limit: multiply-adds at peak, or weights at the bandwidth of their home."""
    most = timed.limits[isa]
    return [
        r.chosen_ns / max(r.product.flops / most.flops, r.product.weight_bytes / most.bandwidth(r.product.home))
        for r in found
    ]


def report(
    samples: Sequence[Timed], timed: Dataset, tables: dict[str, Table], learnt: Dataset | None
) -> dict[str, Any]:
    """The regrets of all ways by home, width and shape, as in `--json`."""
    result: dict[str, Any] = {"isa": samples[0].isa, "products": len(samples), "homes": {}}
    for home in sorted({s.product.home for s in samples}):
        ways = columns([s for s in samples if s.product.home == home], timed, tables, learnt)
        picks = ways[0].found
        classes: dict[str, dict[str, list[Regret]]] = {
            "all": {"all": picks},
            "n": by_width(picks),
            "shape": by_shape(picks),
        }
        rows = []
        for kind, groups in classes.items():
            for label, members in groups.items():
                wanted = {r.product for r in members}
                row: dict[str, Any] = {"class": label if kind == "all" else f"{kind} {label}", "count": len(members)}
                row["ways"] = {
                    way.name: summary(r.ratio for r in way.found if r.product in wanted).as_dict() for way in ways
                }
                row["over_limit"] = summary(over_limit(members, timed, result["isa"])).as_dict()
                rows.append(row)
        worst = sorted(picks, key=lambda r: -r.ratio)[:8]
        names = timed.kernels[result["isa"]]
        result["homes"][home] = {
            "rows": rows,
            "noisy": sum(s.drift > 0.05 for s in samples if s.product.home == home),
            "worst": [
                {
                    "product": str(r.product),
                    "regret": round(r.ratio, 3),
                    "picked": names[r.chosen],
                    "picked_ns": r.chosen_ns,
                    "best": names[r.best],
                    "best_ns": r.best_ns,
                }
                for r in worst
            ],
        }
    return result
