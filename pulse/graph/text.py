"""Names in a model must be text: protobuf hands over others as bytes, on which everything after comes to grief."""

from __future__ import annotations

from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]

_TEXT, _MESSAGE = FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE


def undecodable(model: onnx.ModelProto) -> str:
    """Where a string is not UTF-8, as `graph.node.name`; "" if all are."""
    return _search(model, "")


def _search(message: Any, path: str) -> str:
    for field, value in message.ListFields():
        if field.type not in (_TEXT, _MESSAGE):
            continue
        place = f"{path}.{field.name}" if path else field.name
        single = isinstance(value, (str, bytes)) or hasattr(value, "DESCRIPTOR")
        for item in (value,) if single else value:
            if isinstance(item, bytes):
                return place
            if field.type == _MESSAGE and (found := _search(item, place)):
                return found
    return ""
