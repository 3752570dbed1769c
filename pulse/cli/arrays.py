"""Reading and writing files of arrays, for commands."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

import numpy as np

from pulse import npz
from pulse.errors import PulseError


def read_arrays(path: Path, names: list[str]) -> dict[str, np.ndarray]:
    """The arrays of a .npz by input name, or the single array of a .npz or .npy under the single name in `names`.

    Raises PulseError: file-not-found, bad-npz.
    """
    if not path.exists():
        raise PulseError("file-not-found", node=str(path))
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except OSError:
        raise
    except Exception as error:  # numpy, zipfile and zlib raise a dozen kinds for a damaged file
        summary = " ".join(str(error).split()) or type(error).__name__
        raise PulseError("bad-npz", node=str(path), required="a .npz or .npy of numbers", found=summary) from error
    if len(arrays) == 1 and len(names) == 1:
        return dict(zip(names, arrays.values(), strict=True))
    if "" in arrays:
        wanted = f"a .npz with {_listed(names)}"
        raise PulseError("bad-npz", node=str(path), required=wanted, found="a single array", remedy=_saving(names))
    unknown = [name for name in arrays if name not in names]
    if unknown:
        wanted, found = f"arrays {_listed(names)}", _listed(list(arrays))
        raise PulseError("bad-npz", node=str(path), required=wanted, found=found, remedy=_saving(names))
    return arrays


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write a .npz, or a .npy where the name ends so and there is one array; the file appears whole or not at all.

    Raises PulseError output-unwritable.
    """
    single = path.suffix == ".npy"
    if single and len(arrays) != 1:
        raise PulseError(
            "output-unwritable", node=str(path), required="a .npz", found=f"outputs {_listed(list(arrays))}"
        )
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(beside, "xb") as file:
            if single:
                np.save(file, next(iter(arrays.values())))
            else:
                npz.save(file, arrays)
        os.replace(beside, path)
    except OSError as error:
        raise PulseError("output-unwritable", node=str(path), found=error.strerror or str(error)) from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def _saving(names: list[str]) -> str:
    """How to save what the model takes; not every name of an input can be a keyword."""
    if all(name.isidentifier() for name in names):
        return f"save them by name: `np.savez(path, {', '.join(f'{name}=...' for name in names)})`"
    return "save them by name: `np.savez(path, **{" + ", ".join(f'"{name}": ...' for name in names) + "})`"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
