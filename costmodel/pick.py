"""Which kernel for which product: hint, table for this CPU, table for this instruction set, rule, in this order.

A `Picker` belongs to one loaded model; there is no global state.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pulse.costmodel import hints as hint_files
from pulse.costmodel import table as tables
from pulse.costmodel.cells import acceptable
from pulse.costmodel.hints import Hints
from pulse.costmodel.shapes import Product
from pulse.costmodel.table import Table

from pulse.engine import pick as rule
from pulse.engine.isa import current, native
from pulse.engine.pick import kernels
from pulse.errors import PulseError, PulseWarning


@dataclass(frozen=True)
class Choice:
    """A kernel, who picked it ("hint", "cpu table", "isa table" or "rule") and the time it should take, if known."""

    kernel: str
    by: str
    ns: float | None = None


@dataclass
class Picker:
    """Picks kernels for the products of one model.

    Attributes:
        isa: instruction set, fixed for the model.
        table: forecasts, or None to go by the rule; `by` names it in choices.
        hints: what was measured for this model on this CPU.
        home: where the model's weights come from when it runs: "l2", "l3" or "cold".
    """

    isa: str
    table: Table | None = None
    by: str = "rule"
    hints: Hints | None = None
    home: str = "l3"
    _known: dict[tuple[object, ...], Choice | None] = field(default_factory=dict, repr=False)

    def pick(
        self, m: int, k: int, n: int, *, layout: str = "frame", act: str = "none", panel: int | None = None
    ) -> Choice:
        """The kernel for C (m, n) = act(A (m, k) * B (k, n)).

        Args:
            layout: how B and C lie, see `Product`.
            panel: only kernels that read weights packed to this panel height.

        Raises:
            PulseError: `usage` for sizes below 1, and for a panel height that there is no kernel for.
        """
        found = self.find(m, k, n, layout=layout, act=act, panel=panel)
        if found is not None:
            return found
        return Choice(rule.pick(m, k, n, isa=self.isa, layout=_rule_layout(layout), panel=panel), "rule")

    def find(
        self, m: int, k: int, n: int, *, layout: str = "frame", act: str = "none", panel: int | None = None
    ) -> Choice | None:
        """The same by hint or table; None where neither knows, which leaves it to the caller's rule."""
        key = (m, k, n, layout, act, panel)
        if key not in self._known:
            self._known[key] = self._find(Product(m, k, n, layout, act, self.home), panel)
        return self._known[key]

    def panel(self, m: int, k: int, widths: Iterable[int], *, layout: str = "frame", act: str = "none") -> int | None:
        """The panel height to pack weights m x k to when they serve products of all these widths n.

        The one whose best kernels lose least against the best of all, summed over the widths. None where hint and table
        do not know, which leaves it to the caller's rule.
        """
        heights = sorted({kernel.panel for kernel in kernels(self.isa)}, reverse=True)
        total = dict.fromkeys(heights, 0.0)
        for n in widths:
            found = {h: c.ns for h in heights if (c := self.find(m, k, n, layout=layout, act=act, panel=h)) and c.ns}
            least = min(found.values(), default=0.0)
            total = {h: total[h] + found[h] / least for h in total if h in found}
        return min(total, key=lambda height: total[height], default=None)

    def _find(self, product: Product, panel: int | None) -> Choice | None:
        if self.hints and (hinted := self.hints.kernel(product, panel)):
            return Choice(hinted, "hint", self.hints.ns(product, panel))
        if self.table is None or min(product.m, product.k, product.n) < 1:
            return None
        known = set(self.table.kernels)
        candidates = [k for k in kernels(self.isa) if k.name in known and panel in (None, k.panel)]
        forecast = {k.name: self.table.ns(k, product) for k in candidates if acceptable(k, product)}
        if not forecast:
            return None
        name = min(forecast, key=lambda item: forecast[item])
        return Choice(name, self.by, forecast[name])


def picker(
    model: str | Path | None = None,
    *,
    source: str = "",
    hints: str | Path | None = None,
    isa: str | None = None,
    home: str = "l3",
) -> Picker:
    """The picker for a model.

    Args:
        model: its file, beside which hints are looked for; None where there is none.
        source: name of the source model, for an artefact.
        hints: a file of hints, or "none" for none; by default they are looked for.
        isa: instruction set; by default the best, or what PULSE_ISA forces.

    Warns:
        PulseWarning: hints that were found serve another CPU or other kernels.

    Raises:
        PulseError: `hints-invalid` or `file-not-found` for a file named in `hints`.
    """
    chosen = current(isa)
    table, by = find_table(chosen)
    found = hint_files.find(model, source, hints)
    entry = hint_files.usable(found, cpu(), chosen, [k.name for k in kernels(chosen)]) if found else None
    return Picker(chosen, table, by, entry, home)


def cpu() -> str:
    """This processor, as tables and hints name it."""
    return str(native().machine()["cpu"])


def find_table(isa: str, cpu_name: str | None = None) -> tuple[Table | None, str]:
    """The table to go by and what it is: "cpu table", "isa table", or None and "rule"."""
    _, table, by = locate_table(isa, cpu_name)
    return table, by


def locate_table(isa: str, cpu_name: str | None = None) -> tuple[Path | None, Table | None, str]:
    """What `find_table` gives, behind the file it is in.

    Kernels that a table does not know are not picked by it. One that knows fewer than half of this build's is passed
    over, and one that cannot be read likewise, with a warning.
    """
    here = cpu() if cpu_name is None else cpu_name
    known = {kernel.name for kernel in kernels(isa)}
    usable: list[tuple[Path, Table]] = []
    for path in tables.files(isa):
        try:
            table = tables.load(path)
        except PulseError as error:
            warnings.warn(f"the table {path} is passed over: {error.found}", PulseWarning, stacklevel=2)
            continue
        if table.isa == isa and len(known & set(table.kernels)) * 2 >= len(known):
            usable.append((path, table))
    of_cpu = [(path, table) for path, table in usable if table.cpu == here]
    if of_cpu:
        return *max(of_cpu, key=lambda found: found[1].date), "cpu table"
    shipped = [(path, table) for path, table in usable if path == tables.SHIPPED / f"{isa}.json"]
    return (*shipped[0], "isa table") if shipped else (None, None, "rule")


def _rule_layout(layout: str) -> rule.Layout:
    return "frame" if layout in ("frame", "taps") else "channel"
