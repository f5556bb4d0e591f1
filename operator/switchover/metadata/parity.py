"""Parity of ZooKeeper and KRaft, judged over readings: neither side stands still while it is read.

A difference counts when it was there in two readings in a row and the second found in ZooKeeper all that the log held at
the first (`/migration` names the offset up to which dual write has got).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from switchover.metadata.cluster import Behind, ClusterMetadata, Difference, behind, difference


class MigrationState(IntEnum):
    """`ZkMigrationState` as the metadata log stores it; 1 and 2 look swapped on purpose
    (docs/facts/kraft.md#the-metadata-log-over-the-wire)."""

    NONE = 0
    MIGRATION = 1
    PRE_MIGRATION = 2
    POST_MIGRATION = 3


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """The last RegisterBroker record of a broker, with the changes of fencing since."""

    epoch: int
    migrating_zk: bool
    fenced: bool


@dataclass(frozen=True, slots=True)
class LogImage:
    """The metadata log replayed up to `offset`, the last committed record read, of leader epoch `epoch`.

    Records of the open transaction are read, but not yet part of this.
    """

    offset: int
    epoch: int
    migration_state: MigrationState | None          # None until the record is seen
    metadata_version: int | None
    controllers: Mapping[int, bool]                 # RegisterController: node id -> ZkMigrationReady
    brokers: Mapping[int, BrokerRegistration]
    open_transaction: str | None                    # name of a transaction begun and not ended
    aborted_transactions: int
    metadata: ClusterMetadata = field(default_factory=ClusterMetadata)


@dataclass(frozen=True, slots=True)
class TreeReading:
    """ZooKeeper's side. `offset` was read first, so everything up to it is in `metadata`; -1 without `/migration`.

    `reads` is the number of requests that it took.
    """

    offset: int
    metadata: ClusterMetadata
    reads: int


@dataclass(frozen=True, slots=True)
class Parity:
    """What the readings so far say. `differences` are those that count (at most `cluster.LIMIT` are named).

    `unsettled` is the number of those that may still be on their way. Without any that count, `proven` says that there
    was a moment at which both sides were equal. `behind` is the number of partitions whose state has a lower version in
    ZooKeeper than its epoch in KRaft, None where that was not read; `overdue` gives, of those that count, the epochs.
    """

    differences: tuple[Difference, ...]
    unsettled: int
    proven: bool
    behind: int | None = None
    overdue: Mapping[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One reading of both sides, and since which offset of the log each difference has been there without a break."""

    parity: Parity
    since: Mapping[Difference | Behind, int] = field(default_factory=dict)


def compare(before: Comparison | None, zookeeper: TreeReading, log: LogImage) -> Comparison:
    """The next comparison after `before`."""
    found, late = difference(zookeeper.metadata, log.metadata), behind(zookeeper.metadata, log.metadata)
    seen: tuple[Difference | Behind, ...] = (*found, *late)
    known = before.since if before is not None else {}
    counted = tuple(item for item in found if item in known and zookeeper.offset >= known[item])
    # Differences that are all new: those of the reading before were on their way, and have arrived.
    arrived = before is not None and not any(item in known for item in found)
    epochs = log.metadata.epochs or {}
    overdue = {item[:2]: epochs[item[:2]] for item in late if item in known and zookeeper.offset >= known[item]}
    return Comparison(
        Parity(counted, len(found) - len(counted), not found or arrived,
               None if zookeeper.metadata.epochs is None else len(late), overdue),
        {item: known.get(item, log.offset) for item in seen},
    )
