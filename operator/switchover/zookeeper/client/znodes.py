"""What Kafka writes into ZooKeeper, node by node: bytes to facts. Formats: docs/facts/kraft.md#znodes.

Every function raises ValueError with the reason when the data is not what Kafka writes; the caller knows the path.
"""

import json
import re
from collections.abc import Mapping, Sequence

from switchover.metadata import names
from switchover.metadata.node_json import document, items, mapping, number, replicas, text
from switchover.network.addresses import Address
from switchover.zookeeper.nodes import ControllerNode, MigrationNode, ZooKeeperTopic

_ENDPOINT = re.compile(r"(.*)://\[?([^\[\]]+?)\]?:([0-9]{1,5})")


def integer(data: bytes | None) -> int:
    """`/controller_epoch`: a number in ASCII."""
    return int((data or b"").decode("ascii"))


def cluster_id(data: bytes | None) -> str:
    """`/cluster/id`."""
    return names.cluster_id(text(document(data), "id"))


def controller(data: bytes | None, ephemeral_owner: int, version: int) -> ControllerNode:
    """`/controller`; brokers before Kafka 3.4 write no `kraftControllerEpoch`."""
    fields = document(data)
    return ControllerNode(
        node_id=number(fields, "brokerid"),
        ephemeral=ephemeral_owner != 0,
        kraft_epoch=number(fields, "kraftControllerEpoch", -1),
        version=version,
    )


def migration(data: bytes | None, version: int, mtime_ms: int) -> MigrationNode:
    """`/migration`; `zookeeper-security-migration` leaves it without data (KAFKA-19480)."""
    mtime = mtime_ms / 1000
    if (data or b"").strip() in (b"", b"null"):
        return MigrationNode(
            empty=True, controller_id=-1, offset=-1, epoch=-1, version=version, mtime=mtime
        )
    fields = document(data)
    return MigrationNode(
        empty=False,
        controller_id=number(fields, "kraft_controller_id"),
        offset=number(fields, "kraft_metadata_offset"),
        epoch=number(fields, "kraft_metadata_epoch"),
        version=version,
        mtime=mtime,
    )


def endpoints(data: bytes | None) -> Mapping[str, Address]:
    """`/brokers/ids/N`: listener name -> address."""
    found = {}
    for endpoint in items(document(data), "endpoints"):
        match = _ENDPOINT.fullmatch(str(endpoint))
        if match is None or int(match[3]) > 65535:
            raise ValueError(f"endpoint {str(endpoint)[:100]!r} is not LISTENER://host:port")
        found[match[1]] = Address(match[2].lower(), int(match[3]))
    return found


def registered_at(data: bytes | None) -> float | None:
    """`/brokers/ids/N`: by its own clock, when the broker wrote the node (`BrokerIdZNode.encode`); None: not there."""
    at = document(data).get("timestamp")
    return int(at) / 1000 if isinstance(at, str) and at.isascii() and at.isdigit() and len(at) < 16 else None


def topic(data: bytes | None) -> tuple[ZooKeeperTopic, bool]:
    """`/brokers/topics/T`, and whether one of its partitions is being reassigned."""
    fields = document(data)
    topic_id = fields.get("topic_id")
    if topic_id is not None and not isinstance(topic_id, str):
        raise ValueError("topic_id is not a text")
    assignment = {int(partition): replicas(ids) for partition, ids in mapping(fields, "partitions").items()}
    moving = any(fields.get(key) for key in ("adding_replicas", "removing_replicas"))
    return ZooKeeperTopic(topic_id or None, assignment), moving


def partition_epoch(data: bytes | None) -> int:
    """`/brokers/topics/T/partitions/P/state`: its `controller_epoch`, the raft epoch where dual write wrote it."""
    return number(document(data), "controller_epoch")


def missing_state(brokers: Sequence[int], controller_epoch: int) -> bytes:
    """The state that Kafka takes for a missing one (`ZkTopicMigrationClient.iterateTopics`), with these replicas."""
    return json.dumps({"controller_epoch": controller_epoch, "leader": brokers[0], "version": 1, "leader_epoch": 0,
                       "isr": list(brokers)}).encode()


def reassigning(data: bytes | None) -> bool:
    """`/admin/reassign_partitions`: whether it asks for anything."""
    return bool(items(document(data), "partitions"))
