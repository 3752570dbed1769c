"""Times just the products of one model, as the model runs them, and writes what was best as hints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pulse.costmodel import files, hints
from pulse.costmodel.cells import kernel_from_name
from pulse.costmodel.dataset import Dataset, Timed
from pulse.costmodel.gather import Settings
from pulse.costmodel.hints import Hint, Hints
from pulse.costmodel.pick import Picker, cpu
from pulse.costmodel.products import Listed

from pulse import __version__
from pulse.errors import PulseError

SETTINGS = Settings(rounds=41, slice_us=100.0)


def hints_from(dataset: Dataset, isa: str, listed: Mapping[int, Sequence[Listed]]) -> Hints:
    """The best kernel of every panel height for each product of a data set of one instruction set.

    The lesser of the medians over odd and over even rounds counts for a kernel, so that one spell of noise does not
    cost it its place.

    Raises:
        PulseError: `dataset-too-small` where there is no sample of this instruction set.
    """
    samples = dataset.of(isa)
    if not samples:
        raise PulseError(
            "dataset-too-small",
            node=dataset.path,
            required=f"at least 1 sample of {isa}",
            found="0",
            remedy="time the model's products with --isa, or name another data set",
        )
    counts = {hints.key_of(item.product): item.count for items in listed.values() for item in items}
    found = {}
    for sample in samples:
        key = hints.key_of(sample.product)
        found[key] = Hint(sample.product, _panels(dataset.kernels[isa], sample), counts.get(key, 1))
    home = samples[0].product.home
    names = dataset.kernels[isa]
    times = {hints.key_of(s.product): dict(zip(names, s.ns, strict=True)) for s in samples}
    return Hints(dataset.cpu, isa, names, dataset.date, __version__, home, found, times)


def _panels(names: Sequence[str], sample: Timed) -> dict[int, tuple[str, float]]:
    best: dict[int, tuple[str, float]] = {}
    for name, ns in zip(names, sample.ns, strict=True):
        height = kernel_from_name(name).panel
        if not math.isnan(ns) and (height not in best or ns < best[height][1]):
            best[height] = (name, ns)
    return best


def compared(made: Hints, listed: Mapping[int, Sequence[Listed]], before: Picker) -> list[dict[str, Any]]:
    """Per width and product: the best kernel, and what the picker would have taken without hints at what cost."""
    rows = []
    for width, items in listed.items():
        for item in items:
            p, hint = item.product, made.found.get(hints.key_of(item.product))
            if hint is None:
                continue
            name, ns = hint.best
            other = before.pick(p.m, p.k, p.n, layout=p.layout, act=p.act).kernel if before.isa == made.isa else ""
            cost = made.times.get(hints.key_of(p), {}).get(other)
            row: dict[str, Any] = {"pulse": width, "m": p.m, "k": p.k, "n": p.n, "layout": p.layout, "act": p.act}
            row |= {"count": item.count, "kernel": name, "ns": ns, "before": other}
            rows.append(row | {"gain": None if cost is None else cost / ns, "nodes": list(item.nodes)})
    return rows


def check_room(path: Path, isa: str, force: bool) -> None:
    """Raises PulseError `output-exists` before anything is timed for nothing."""
    if path.exists():
        try:
            taken = any((entry.cpu, entry.isa) == (cpu(), isa) for entry in hints.load(path))
        except PulseError:
            taken = True
        if taken:
            files.check_free(path, force)


def write(path: Path, made: Sequence[Hints], model: str, force: bool) -> None:
    """Write hints beside those for other CPUs and instruction sets that the file may hold.

    Raises:
        PulseError: `output-exists` where it holds some for this CPU and instruction set, and `force` is not given;
            `hints-invalid` where what is there is no file of hints; `output-unwritable`.
    """
    kept: list[Hints] = []
    if path.exists():
        new = {(entry.cpu, entry.isa) for entry in made}
        try:
            kept = hints.load(path)
        except PulseError:
            files.check_free(path, force)
        if any((entry.cpu, entry.isa) in new for entry in kept):
            files.check_free(path, force)
        kept = [entry for entry in kept if (entry.cpu, entry.isa) not in new]
    files.write(path, hints.dumps([*kept, *made], model), force=True)
