"""What the figures were measured on and with."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from pulse import __version__
from pulse.engine.isa import cpu_name, current
from pulse.errors import PulseError

PACKAGES = ("numpy", "onnx", "onnxruntime")


def machine() -> dict[str, object]:
    """CPU, instruction set of the native kernels (None where they are not built), cores, system, versions, date."""
    versions = {"pulse": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "cpu": cpu_name(),
        "isa": isa(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": versions,
    }


def isa() -> str | None:
    """Instruction set of the native kernels, None where the package runs without them."""
    try:
        return current()
    except PulseError:
        return None
