"""Effects on a group that ZooKeeper coordinates; the observer performs them."""

from dataclasses import dataclass

from switchover.coordination.mode import Mode
from switchover.engine.effects import Elsewhere
from switchover.shared.partition import TopicPartition


@dataclass(frozen=True, slots=True)
class SetMode(Elsewhere):
    """Write the mode znode of a group (KIP-125), of which this is still `World.mode_version`; -1: it must not exist."""

    group: str
    mode: Mode
    version: int

    def __str__(self) -> str:
        return f"set the mode of group {self.group} to {self.mode} (over version {self.version})"


@dataclass(frozen=True, slots=True)
class RemoveGuards(Elsewhere):
    """Delete the guard nodes that keep old consumers away from these partitions."""

    group: str
    partitions: frozenset[TopicPartition]

    def __str__(self) -> str:
        return f"remove {len(self.partitions)} guards of group {self.group}"
