"""Consumer groups that ZooKeeper coordinates, as they stand below `/consumers` (docs/facts/coordination.md#znodes)."""

from collections.abc import Mapping
from dataclasses import dataclass

from switchover.coordination.mode import Mode


@dataclass(frozen=True, slots=True)
class ZooKeeperGroup:
    """A group that has members below `/consumers/G/ids`; those in `enabled` are migration-enabled (KIP-125).

    `mode` is None where its node does not exist or says something else.
    """

    members: frozenset[str]
    enabled: frozenset[str] = frozenset()
    mode: Mode | None = None

    @property
    def is_assigned_by_kafka(self) -> bool:
        """Its partitions are: the mode counts only while every member is migration-enabled. It needs ZooKeeper all the same,
        where the owner nodes are its fence and brokers are looked up."""
        return self.mode is Mode.KAFKA and self.members <= self.enabled


@dataclass(frozen=True, slots=True)
class IdleGroups:
    """Groups without members that have committed to ZooKeeper.

    `commits` has the time of each one's newest commit, in seconds of ZooKeeper's clock; `unread` counts the groups that
    one sweep had no room for.
    """

    commits: Mapping[str, float]
    unread: int = 0
