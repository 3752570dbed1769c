"""What the inputs of a source model look like: which axis is the signal, and what the user says about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pulse.errors import PulseError
from pulse.graph.expr import Expr
from pulse.graph.ir import UNKNOWN, Graph, Port

_BATCH = re.compile(r"^(b|n|bs|nb|batch.*|.*_?batch(_?size)?)$", re.IGNORECASE)
_SIGNAL = re.compile(r"^(s|t|l|time.*|seq.*|.*frames?|.*samples?|.*len(gth)?|.*steps?)$", re.IGNORECASE)
_ELEMENT = re.compile(r"^(f16|f32|f64|i8|i16|i32|i64|u8|bool|float|double|int64|int32)$", re.IGNORECASE)


@dataclass(frozen=True)
class Input:
    """An input of the source: dims are numbers, but the stream axis (None for an input without one) is `factor*S`."""

    name: str
    dtype: int
    shape: tuple[int, ...]  # 0 at the stream axis
    axis: int | None
    factor: int = 1

    @property
    def length(self) -> Expr:
        return Expr.symbol() * self.factor


def read_signature(graph: Graph, overrides: Mapping[str, str] | None = None) -> tuple[list[Input], str]:
    """The inputs and the signal's symbol. Raises PulseError where there is no one stream axis."""
    overrides = dict(overrides or {})
    ports = {p.name: p for p in graph.inputs}
    for name in overrides:
        if name not in ports:
            raise PulseError(
                "unknown-input",
                node=name,
                required="the name of an input of the model",
                found=f"`{name}`",
                remedy=f"the inputs are {', '.join(_show(p) for p in graph.inputs)}",
            )
    dims = {n: _parse(n, overrides[n], p) if n in overrides else p.dims for n, p in ports.items()}
    given = {_base(d) for n in overrides for d in dims[n] if isinstance(d, str)}
    symbol = _symbol(graph, dims, given)
    return [_input(p, dims[n], symbol) for n, p in ports.items()], symbol


def declared_sizes(graph: Graph, overrides: Mapping[str, str]) -> dict[str, str]:
    """For each input given other numbers than the model declares: its dims with those the model declares."""
    found: dict[str, str] = {}
    for port in graph.inputs:
        if port.name not in overrides or port.dims == UNKNOWN:
            continue
        given = _parse(port.name, overrides[port.name], port)
        dims = [o if isinstance(o, int) and isinstance(d, int) else d for d, o in zip(given, port.dims, strict=True)]
        if dims != list(given):
            found[port.name] = ",".join(str(d) for d in dims)
    return found


def _parse(name: str, text: str, port: Port) -> tuple[int | str, ...]:
    items = [i.strip() for i in text.split(",")]
    if items and _ELEMENT.match(items[-1]):
        items.pop()
    dims: list[int | str] = []
    for item in items:
        if re.fullmatch(r"[1-9]\d*", item):
            dims.append(int(item))
        elif re.fullmatch(r"([1-9]\d*\s*\*\s*)?[A-Za-z_]\w*", item):
            dims.append(item)
        else:
            raise PulseError(
                "bad-input-spec",
                node=name,
                required="dims like 1,1,S,32, the signal's axis as a name or a multiple of it (2*S)",
                found=f"`{text}`",
                remedy=f"for example --input {name}={','.join(str(d) for d in port.dims)}",
            )
    declared = port.dims
    if declared != UNKNOWN and len(declared) != len(dims):
        raise PulseError(
            "contradicting-shape",
            node=name,
            required=f"{len(declared)} dims, as the model declares: {_show(port)}",
            found=f"{len(dims)} in `{text}`",
            remedy="give one entry per axis",
        )
    return tuple(dims)


def _base(dim: str) -> str:
    return dim.split("*")[-1].strip()


def _symbol(graph: Graph, dims: Mapping[str, tuple[int | str, ...]], given: set[str]) -> str:
    if len(given) > 1:
        raise PulseError(
            "ambiguous-stream-axis",
            node=", ".join(sorted(given)),
            required="one signal symbol in all --input options",
            found=f"{len(given)}: {', '.join(sorted(given))}",
            remedy="use the same name for the signal's axis everywhere, and numbers for the other axes",
        )
    symbols = {_base(d) for shape in dims.values() for d in shape if isinstance(d, str)}
    candidates = given or {s for s in symbols if not _BATCH.match(s)}
    if not candidates and len(symbols) == 1:
        only = next(iter(symbols))
        # One symbol that is not in front is the signal, whatever it is called.
        if any(_base(str(d)) == only for shape in dims.values() for d in shape[1:]):
            candidates = symbols
    shown = "; ".join(_show(Port(p.name, p.dtype, dims[p.name])) for p in graph.inputs) or "no inputs"
    port = next(iter(graph.inputs), Port("x", 1, UNKNOWN))
    flag = _example(Port(port.name, port.dtype, dims.get(port.name, UNKNOWN)))
    if not candidates:
        raise PulseError(
            "no-stream-axis",
            node=graph.name,
            required="one symbolic dimension which is the signal's length",
            found=shown,
            remedy=f"name the signal's axis with --input NAME=DIMS, as in {flag}",
        )
    unnamed = any(list(shape).count("?") > 1 for shape in dims.values())
    if len(candidates) > 1 or "..." in candidates or (unnamed and "?" in candidates):
        raise PulseError(
            "ambiguous-stream-axis",
            node=graph.name,
            required="one symbolic dimension which is the signal's length",
            found=f"{', '.join(sorted(candidates))} in {shown}",
            remedy=f"give numbers to all other axes with --input NAME=DIMS, as in {flag}",
        )
    return next(iter(candidates))


def _example(port: Port) -> str:
    """An --input option with the signal on the axis where it most likely is, and the number of that axis."""
    if port.dims == UNKNOWN:
        port = Port(port.name, port.dtype, (1, "S", 80))
    named = [i for i, d in enumerate(port.dims) if isinstance(d, str) and not _BATCH.match(d)]
    inner = [i for i in named if i] or named
    likely = [i for i in inner if _SIGNAL.match(_base(str(port.dims[i])))] or inner
    sizes = [d if isinstance(d, int) and i else 0 for i, d in enumerate(port.dims)]
    axis = likely[0] if likely else sizes.index(max(sizes))  # an export of one length: the longest axis
    dims = [
        "S" if i == axis else str(d) if isinstance(d, int) else "80" if i in inner else "1"
        for i, d in enumerate(port.dims)
    ]
    return f"--input {port.name}={','.join(dims)}, if axis {axis} is the signal's"


def _input(port: Port, dims: tuple[int | str, ...], symbol: str) -> Input:
    axes = [i for i, d in enumerate(dims) if isinstance(d, str) and _base(d) == symbol]
    if len(axes) > 1:
        raise PulseError(
            "two-stream-axes",
            node=port.name,
            required="the signal's length on one axis",
            found=_show(Port(port.name, port.dtype, dims)),
            remedy="give numbers to all but one of them with --input NAME=DIMS",
        )
    shape = tuple(0 if i in axes else (d if isinstance(d, int) else 1) for i, d in enumerate(dims))
    factor = 1
    if axes:
        text = str(dims[axes[0]])
        factor = int(text.split("*")[0]) if "*" in text else 1
    return Input(port.name, port.dtype, shape, axes[0] if axes else None, factor)


def _show(port: Port) -> str:
    return f"{port.name}=" + ",".join(str(d) for d in port.dims)
