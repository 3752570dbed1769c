"""Data sets: timings of every kernel on many products, as `gather` and `pulse-gather` write them.

A text file that grows by whole lines: a header that says how it was made, then one line per product and instruction
set with a CRC-32 at its end. A last line without its end is what an interrupted run leaves; it is not read.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pulse.costmodel.files import read_bytes
from pulse.costmodel.shapes import HOMES, Product

from pulse.errors import PulseError

FORMAT = "pulse-dataset 1"


@dataclass(frozen=True)
class Limits:
    """What one core does at best: operations per ns, and bytes per ns read from each home."""

    flops: float
    l2: float
    l3: float
    cold: float

    def bandwidth(self, home: str) -> float:
        return {"l2": self.l2, "l3": self.l3, "cold": self.cold}[home]


@dataclass(frozen=True)
class Timed:
    """One product and what each kernel took, in the order of the set's list; NaN where it cannot take the layout.

    Attributes:
        reference_ns: what the reference kernel took at best meanwhile.
        drift: its largest excess over that within an accepted round.
        repeated: rounds thrown away because it drifted.
        mhz, celsius: clock and temperature where the system shows them, else 0.
        odd, even: median nanoseconds over the odd and over the even rounds.
    """

    isa: str
    product: Product
    reference_ns: float
    drift: float
    repeated: int
    mhz: float
    celsius: float
    odd: tuple[float, ...]
    even: tuple[float, ...]

    @property
    def ns(self) -> list[float]:
        """The lesser of the two medians per kernel: what disturbs a run only ever adds time."""
        return [min(pair) for pair in zip(self.odd, self.even, strict=True)]


@dataclass(frozen=True)
class Dataset:
    """All samples of one machine."""

    path: str
    sha256: str
    cpu: str
    date: str
    tool: str
    system: str
    caches: tuple[int, int, int]
    settings: str
    core: int
    kernels: dict[str, list[str]] = field(default_factory=dict)
    limits: dict[str, Limits] = field(default_factory=dict)
    samples: list[Timed] = field(default_factory=list)

    def of(self, isa: str, home: str | None = None) -> list[Timed]:
        """The samples of one instruction set (and home)."""
        return [s for s in self.samples if s.isa == isa and home in (None, s.product.home)]


def read_dataset(path: str | Path) -> Dataset:
    """Read a data set. Raises PulseError `file-not-found`, `file-unreadable` or `dataset-corrupt`."""
    return parse_dataset(read_bytes(path, "a data set"), str(path))


def parse_dataset(raw: bytes, label: str) -> Dataset:
    """The data set in `raw`. Raises PulseError `dataset-corrupt`."""
    if not raw.startswith(FORMAT.encode() + b"\n"):
        first = raw[:40].split(b"\n")[0].decode("utf-8", "replace")
        raise _corrupt(label, 1, f"`{first}`" if first else "an empty file", f"a file that begins with `{FORMAT}`")
    lines = raw.decode("utf-8", "replace").split("\n")
    facts: dict[str, str] = {}
    found = {"kernels": {}, "limits": {}}  # type: dict[str, dict[str, list[str]]]
    for line in lines[1:]:
        key, _, value = line.partition(" ")
        if line == "samples":
            break
        if key in found:
            isa, _, rest = value.partition(" ")
            found[key][isa] = rest.split()
        else:
            facts[key] = value
    else:
        raise _corrupt(label, len(lines), "the end of the file within the header", "a line `samples`, then samples")
    number = lines.index("samples") + 1
    try:
        limits = {isa: Limits(*(_positive(v) for v in text[1::2])) for isa, text in found["limits"].items()}
        l1, l2, l3 = (int(v) for v in facts["caches"].split())
        dataset = Dataset(
            label,
            hashlib.sha256(raw).hexdigest(),
            facts["cpu"],
            facts["date"],
            facts["tool"],
            facts["system"],
            (l1, l2, l3),
            facts["settings"],
            int(facts["core"]),
            found["kernels"],
            limits,
        )
        if not dataset.kernels or set(dataset.kernels) != set(limits):
            raise ValueError("kernels and limits per instruction set")
    except (KeyError, ValueError, TypeError) as error:
        raise _corrupt(label, number, f"a header without {error}", "the header that `gather` writes") from None
    for place, line in enumerate(lines[number:-1], number + 1):  # what follows the last newline was cut off
        dataset.samples.append(_read_sample(line, dataset.kernels, label, place))
    return dataset


def _read_sample(line: str, kernels: dict[str, list[str]], label: str, number: int) -> Timed:
    text, mark, check = line.rpartition(" #")
    if not mark or check != f"{zlib.crc32(text.encode()):08x}":
        raise _corrupt(label, number, "a line that does not fit its checksum", "lines as `gather` writes them")
    try:
        key, context, times = text.split("|")
        isa, _, product = key.strip().partition(" ")
        reference, drift, repeated, mhz, celsius = context.split()
        pairs = [(math.nan, math.nan) if t == "-" else _pair(t) for t in times.split()]
        if len(pairs) != len(kernels[isa]):
            raise ValueError(f"{len(pairs)} times for {len(kernels[isa])} kernels")
        return Timed(
            isa,
            Product.parse(product),
            _positive(reference),
            float(drift),
            int(repeated),
            float(mhz),
            float(celsius),
            tuple(odd for odd, _ in pairs),
            tuple(even for _, even in pairs),
        )
    except (ValueError, KeyError) as error:
        raise _corrupt(label, number, f"{error}", "a sample of the kernels in the header") from None


def _pair(text: str) -> tuple[float, float]:
    odd, even = text.split(",")
    return _positive(odd), _positive(even)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise ValueError(f"{text} where a positive number is due")
    return value


def _corrupt(label: str, line: int, found: str, required: str) -> PulseError:
    return PulseError(
        "dataset-corrupt",
        node=f"{label}, line {line}",
        required=required,
        found=found,
        remedy="delete the line and gather again, which times only what is missing; or gather into a new file",
    )


def write_dataset(dataset: Dataset) -> str:
    """The text of a data set, as `gather` writes it; for samples joined or made by programs."""
    head = [
        FORMAT,
        f"cpu {dataset.cpu}",
        "caches " + " ".join(map(str, dataset.caches)),
        f"settings {dataset.settings}",
    ]
    head += [f"kernels {isa} {' '.join(names)}" for isa, names in dataset.kernels.items()]
    head += [f"date {dataset.date}", f"tool {dataset.tool}", f"system {dataset.system}", f"core {dataset.core}"]
    for isa, most in dataset.limits.items():
        homes = " ".join(f"{home} {most.bandwidth(home):.4g}" for home in HOMES)
        head.append(f"limits {isa} flops {most.flops:.4g} {homes}")
    rows = []
    for s in dataset.samples:
        text = f"{s.isa} {s.product} | {s.reference_ns:.5g} {s.drift:.3f} {s.repeated} {s.mhz:.0f} {s.celsius:.1f} |"
        text += "".join(_times(odd, even) for odd, even in zip(s.odd, s.even, strict=True))
        rows.append(f"{text} #{zlib.crc32(text.encode()):08x}")
    return "\n".join([*head, "samples", *rows]) + "\n"


def _times(odd: float, even: float) -> str:
    return " -" if math.isnan(odd) else f" {odd:.5g},{even:.5g}"


def too_few(label: str, found: int, required: int, what: Sequence[str]) -> PulseError:
    """The error for a data set without enough samples of a kind."""
    return PulseError(
        "dataset-too-small",
        node=label,
        required=f"at least {required} samples of {', '.join(what)}",
        found=str(found),
        remedy="gather more: `pulse costmodel gather` with a larger --sweep; an interrupted run goes on where it was",
    )
