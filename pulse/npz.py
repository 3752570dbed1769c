"""Archives of arrays, whatever their names."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import IO

import numpy as np


def save(file: IO[bytes], arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a .npz as `numpy.savez` does, also for arrays named as its parameters are (`file`, `allow_pickle`)."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
