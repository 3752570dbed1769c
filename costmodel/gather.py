"""Times every kernel on listed products, in native code, into a data set that can be interrupted at any time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pulse.costmodel.shapes import HOMES, Product, in_homes, sweep

from pulse import __version__
from pulse.engine.isa import available, current, native
from pulse.errors import PulseError

SWEEP = 640  # products of the default sweep with n up to 16, which is where pulse widths lie
WIDE = 160  # and with n up to 768, as 2-D convolutions have them
WIDEST = 768
SEED = 1
REMEDIES = {
    "dataset-corrupt": "delete the line, and it is timed again; or gather into a new file",
    "dataset-foreign": "gather into a new file; to go on with this one, repeat the options it was begun with",
    "output-unwritable": "choose another place with -o",
    "file-unreadable": "mend its permissions, or gather into a new file",
    "core-unavailable": "choose another core with --core, or leave it out for the last one that is allowed",
    "out-of-memory": "free some memory: timing needs twice the size of the largest cache, and at least 66 MB",
    "shapes-invalid": "keep m, k and n within bounds: weights up to 32 MiB, B and C up to 64 MiB",
}


@dataclass(frozen=True)
class Settings:
    """How carefully each product is timed; samples of one data set share them.

    Attributes:
        rounds: accepted rounds per product, each of all kernels.
        slice_us: least microseconds spent on one kernel per round.
        core: the core to run on; -1 for the last one allowed.
    """

    rounds: int = 9
    slice_us: float = 60.0
    core: int = -1


# Called before every sample: samples done, of how many, seconds gone, seconds left, the next one. False stops.
Tell = Callable[[int, int, float, float, str], bool]


def default_products(
    count: int = SWEEP, wide: int = WIDE, seed: int = SEED, homes: Sequence[str] = HOMES
) -> list[Product]:
    """The products that a default gather times: a seeded sweep, log-uniform in m, k and n."""
    narrow = sweep(count, seed, 16)
    return in_homes([*narrow, *(p for p in sweep(wide, seed + 1, WIDEST) if p not in set(narrow))], homes)


def isas_of(text: str | None) -> list[str]:
    """Instruction sets from "v4,v3"; by default all that this CPU runs, v2 left out. Raises PulseError `usage`."""
    if text is None:
        best = [isa for isa in reversed(available()) if isa not in ("ref", "v2")]
        return best or [current()]
    return [current(name.strip()) for name in text.split(",")]


def gather(products: Sequence[Product], path: str | Path, isas: Sequence[str], settings: Settings, tell: Tell) -> None:
    """Time the products that the data set at `path` does not have yet, and append them.

    Raises:
        PulseError: `dataset-foreign` for a file begun on another processor, with other kernels or settings;
            `dataset-corrupt`, `output-unwritable`, `core-unavailable`, `out-of-memory`.
    """
    if "ref" in isas:
        raise PulseError(
            "usage",
            node="gather",
            required="an instruction set with several kernels",
            found="ref",
            remedy="this CPU or build has the reference kernel only, so there is nothing to choose from",
        )
    failure = native().gather(
        [str(product) for product in products],
        str(path),
        list(isas),
        __version__,
        settings.rounds,
        settings.slice_us,
        settings.core,
        tell,
    )
    if failure is not None:
        code, node, required, found = failure
        raise PulseError(code, node=node, required=required, found=found, remedy=REMEDIES.get(code, ""))
