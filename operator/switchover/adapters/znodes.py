"""What Kafka writes into ZooKeeper, node by node: bytes to facts. Formats: kraft-migration.md 1.5, Kafka's `ZkData`.

Every function raises ValueError with the reason when the data is not what Kafka writes; the caller knows the path.
"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from switchover.core.kraft.facts import Address, ControllerNode, MigrationNode, ZooKeeperTopic


def integer(data: bytes) -> int:
    """`/controller_epoch`: a number in ASCII."""
    return int(data.decode("ascii"))


def cluster_id(data: bytes) -> str:
    """`/cluster/id`."""
    return _text(_document(data), "id")


def controller(data: bytes, ephemeral_owner: int, version: int) -> ControllerNode:
    """`/controller`; brokers before Kafka 3.4 write no `kraftControllerEpoch`."""
    document = _document(data)
    return ControllerNode(
        node_id=_number(document, "brokerid"),
        ephemeral=ephemeral_owner != 0,
        kraft_epoch=_number(document, "kraftControllerEpoch", -1),
        version=version,
    )


def migration(data: bytes, version: int, mtime_ms: int) -> MigrationNode:
    """`/migration`; `zookeeper-security-migration` leaves it without data (KAFKA-19480)."""
    mtime = mtime_ms / 1000
    if data.strip() in (b"", b"null"):
        return MigrationNode(
            empty=True, controller_id=-1, offset=-1, epoch=-1, version=version, mtime=mtime
        )
    document = _document(data)
    return MigrationNode(
        empty=False,
        controller_id=_number(document, "kraft_controller_id"),
        offset=_number(document, "kraft_metadata_offset"),
        epoch=_number(document, "kraft_metadata_epoch"),
        version=version,
        mtime=mtime,
    )


def endpoints(data: bytes) -> Mapping[str, Address]:
    """`/brokers/ids/N`: listener name -> address."""
    found = {}
    for endpoint in _list(_document(data), "endpoints"):
        listener, separator, location = str(endpoint).partition("://")
        parts = urlsplit(f"//{location}")
        if not separator or not parts.hostname or parts.port is None:
            raise ValueError(f"endpoint {endpoint!r} is not LISTENER://host:port")
        found[listener] = Address(parts.hostname, parts.port)
    return found


def topic(data: bytes) -> tuple[ZooKeeperTopic, bool]:
    """`/brokers/topics/T`, and whether one of its partitions is being reassigned."""
    document = _document(data)
    topic_id = document.get("topic_id")
    if topic_id is not None and not isinstance(topic_id, str):
        raise ValueError("topic_id is not a text")
    assignment = {int(partition): _replicas(replicas) for partition, replicas in _map(document, "partitions").items()}
    moving = any(document.get(key) for key in ("adding_replicas", "removing_replicas"))
    return ZooKeeperTopic(topic_id or None, assignment), moving


def partition_epoch(data: bytes) -> int:
    """`/brokers/topics/T/partitions/P/state`: its `controller_epoch`, the raft epoch where dual write wrote it."""
    return _number(_document(data), "controller_epoch")


def reassigning(data: bytes) -> bool:
    """`/admin/reassign_partitions`: whether it asks for anything."""
    return bool(_list(_document(data), "partitions"))


def _document(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:      # UnicodeDecodeError is a ValueError
        raise ValueError("not JSON" if data else "empty") from error
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")
    return document


def _field(document: Mapping[str, Any], key: str) -> Any:
    if key not in document:
        raise ValueError(f"{key} is missing")
    return document[key]


def _number(document: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = document.get(key, default) if default is not None else _field(document, key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{key} is not a whole number")
    return value


def _text(document: Mapping[str, Any], key: str) -> str:
    value = _field(document, key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} is not a text")
    return value


def _list(document: Mapping[str, Any], key: str) -> list[Any]:
    value = _field(document, key)
    if not isinstance(value, list):
        raise ValueError(f"{key} is not a list")
    return value


def _map(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = _field(document, key)
    if not isinstance(value, dict):
        raise ValueError(f"{key} is not a map")
    return value


def _replicas(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(isinstance(i, int) and not isinstance(i, bool) for i in value):
        raise ValueError("replicas are not a list of broker ids")
    return tuple(value)
