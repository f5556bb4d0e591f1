"""Parity of ZooKeeper and KRaft, judged over readings: neither side stands still while it is read.

A difference counts when it was there in two readings in a row and the second found in ZooKeeper all that the log held at
the first (`/migration` names the offset up to which dual write has got).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from switchover.metadata.cluster import Behind, ClusterMetadata, Difference, behind, difference
from switchover.metadata.image import LogImage


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
