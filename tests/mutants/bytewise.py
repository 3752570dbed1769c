"""Bytes flipped, put in, left out."""

from __future__ import annotations

import onnx
from google.protobuf.message import DecodeError

from mutants.draw import Rng, pick


def flip(data: bytes, rng: Rng) -> bytes:
    out = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 2, 8, 64]))):
        if out:
            out[int(rng.integers(len(out)))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def overwrite(data: bytes, rng: Rng) -> bytes:
    at = int(rng.integers(len(data) + 1))
    size = int(rng.integers(1, 9))
    return data[:at] + bytes(pick(rng, (0, 1, 0x7F, 0x80, 0xFF)) for _ in range(size)) + data[at + size :]


def insert(data: bytes, rng: Rng) -> bytes:
    at = int(rng.integers(len(data) + 1))
    return data[:at] + rng.bytes(int(rng.integers(1, 20))) + data[at:]


def remove(data: bytes, rng: Rng) -> bytes:
    at = int(rng.integers(len(data) + 1))
    return data[:at] + data[at + int(rng.integers(1, 40)) :]


def truncate(data: bytes, rng: Rng) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def repeat(data: bytes, rng: Rng) -> bytes:
    """Parts twice: protobuf joins what it reads."""
    at = int(rng.integers(len(data) + 1))
    return data + data[at:]


def bad_name(data: bytes, rng: Rng) -> bytes:
    """A name that is no UTF-8, of the same size."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
        node = pick(rng, model.graph.node)
        names = [node.name, node.op_type, *node.input, *node.output, *(a.name for a in node.attribute)]
        old = pick(rng, [n for n in names if n and isinstance(n, str)]).encode()  # others are no UTF-8 already
    except (DecodeError, IndexError):
        return data
    return data.replace(bytes([len(old)]) + old, bytes([len(old)]) + b"\xff" * len(old))


BYTES = (flip, flip, overwrite, insert, remove, truncate, repeat, bad_name, bad_name)
