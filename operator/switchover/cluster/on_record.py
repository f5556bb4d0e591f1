"""The Kafka nodes and the pace of restarts on record in a KafkaMigration's status: one place to read, one to fold."""

import math
from collections.abc import Mapping

from switchover.api.kafka_migration import KafkaMigrationStatus, NodeMode, NodeStatus, RestartPace
from switchover.engine.pace import Pace
from switchover.engine.position import NodeRecord, Position


def records_of(status: KafkaMigrationStatus) -> dict[str, NodeRecord]:
    """The record of each node."""
    return {node.name: NodeRecord(node.node_id, node.assigned, node.evicting, node.evictions, node.settled)
            for node in status.nodes}


def nodes_of(at: Position, modes: Mapping[str, str], volumes: Mapping[str, tuple[str, ...]]) -> tuple[NodeStatus, ...]:
    """The nodes on record with the mode each was last seen in and the volumes that hold its data."""
    return tuple(
        NodeStatus(name=name, node_id=record.node_id, assigned=NodeMode(record.assigned),
                   observed=NodeMode(modes.get(name, "")), evicting=record.evicting, evictions=record.evictions,
                   settled=record.settled, volumes=volumes.get(name, ()))
        for name, record in sorted(at.nodes.items())
    )


def volumes_of(status: KafkaMigrationStatus) -> dict[str, tuple[str, ...]]:
    """The volume claims on record of each node."""
    return {node.name: node.volumes for node in status.nodes}


def rehearsed_of(status: KafkaMigrationStatus) -> float | None:
    """Seconds from the claim until dual write on a replica, None where nobody has rehearsed it."""
    return status.rehearsal.seconds if status.rehearsal is not None else None


def paces_of(status: KafkaMigrationStatus) -> Mapping[str, Pace]:
    """The restarts that were measured, by mode."""
    return {item.name.value: Pace(item.batches, item.average_seconds, item.slowest_seconds) for item in status.restarts}


def restarts_of(paces: Mapping[str, Pace]) -> tuple[RestartPace, ...]:
    """The restarts that were measured, to be read again after the operator's own restart."""
    return tuple(
        RestartPace(name=NodeMode(mode), batches=pace.batches, average_seconds=round(pace.average),
                    slowest_seconds=math.ceil(pace.slowest))
        for mode, pace in sorted(paces.items())
    )
