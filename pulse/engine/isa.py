"""Which instruction set the kernels run with: the best this CPU has, or a lower one that `PULSE_ISA` forces."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from pulse.errors import PulseError

ISAS = ("ref", "v2", "v3", "v4", "neon")  # ref: portable C++; v2 to v4: x86-64-v2 to v4


@cache
def native() -> ModuleType:
    """The native module `pulse._native`; PulseError `engine-missing` where the package was not built."""
    try:
        return import_module("pulse._native")
    except ImportError as error:
        raise PulseError(
            "engine-missing",
            node="native",
            required="the native module that is built with the package",
            found=str(error),
            remedy="install the package (`pip install .` in its folder) in place of running from its sources",
        ) from error


def available() -> list[str]:
    """The sets that this build has and this CPU runs, the lowest first."""
    return [str(name) for name in native().isas()]


def current(isa: str | None = None) -> str:
    """The set to use: `isa`, else the environment's PULSE_ISA, else the best; PulseError when it cannot be had."""
    wanted = isa if isa is not None else os.environ.get("PULSE_ISA", "")
    if not wanted:
        return str(native().best_isa())
    node = "isa" if isa is not None else "PULSE_ISA"
    here = available()
    if wanted in here:
        return wanted
    known = "this CPU or build does not have it" if wanted in ISAS else "there is no such instruction set"
    raise PulseError(
        "usage",
        node=f"{node}={wanted}",
        required=f"one of {', '.join(here)}",
        found=known,
        remedy=f"leave {node} out for the best of these: {here[-1]}",
    )


@cache
def cpu_name() -> str:
    """The processor as it names itself, e.g. "AMD EPYC 9354", for reports; tables and hints go by `machine`."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "Model") and value.strip():
                return value.strip()
    return platform.processor() or platform.machine()
