"""Reading JSON documents as Kafka writes them into ZooKeeper: every function raises ValueError with the reason.

A node without data (None) is not the same as one whose data is empty; neither is a document.
"""

from collections.abc import Mapping
from typing import Any

from switchover.shared import foreign_json


def document(data: bytes | None) -> dict[str, Any]:
    try:
        found = foreign_json.parsed(data or b"")
    except ValueError as error:      # UnicodeDecodeError is a ValueError
        raise ValueError("not JSON" if data else "empty") from error
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found


def number(fields: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = fields.get(key, default) if default is not None else _field(fields, key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{key} is not a whole number")
    return value


def text(fields: Mapping[str, Any], key: str) -> str:
    value = _field(fields, key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} is not a text")
    return value


def items(fields: Mapping[str, Any], key: str) -> list[Any]:
    value = _field(fields, key)
    if not isinstance(value, list):
        raise ValueError(f"{key} is not a list")
    return value


def mapping(fields: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = _field(fields, key)
    if not isinstance(value, dict):
        raise ValueError(f"{key} is not a map")
    return value


def replicas(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(isinstance(i, int) and not isinstance(i, bool) for i in value):
        raise ValueError("replicas are not a list of broker ids")
    return tuple(value)


def _field(fields: Mapping[str, Any], key: str) -> Any:
    if key not in fields:
        raise ValueError(f"{key} is missing")
    return fields[key]
