"""Effects of a KafkaMigration on ZooKeeper and Kafka; its observer performs them."""

from collections.abc import Mapping
from dataclasses import dataclass

from switchover.engine.effects import Elsewhere
from switchover.metadata.cluster import Entity, entity_text
from switchover.network.addresses import Address


@dataclass(frozen=True, slots=True)
class RaiseEpoch(Elsewhere):
    """Set `/controller_epoch` in ZooKeeper, which must still be `expected` (KAFKA-20488)."""

    epoch: int
    expected: int

    def __str__(self) -> str:
        return f"raise /controller_epoch from {self.expected} to {self.epoch}"


@dataclass(frozen=True, slots=True)
class RaiseVersions(Elsewhere):
    """Write the states of partitions in ZooKeeper again, as they are, until their versions are these epochs of KRaft's.

    Only while `/controller_epoch` is still `controller_epoch`.
    """

    epochs: Mapping[tuple[str, int], int]
    controller_epoch: int

    def __str__(self) -> str:
        return f"raise the versions of {len(self.epochs)} partition states"


@dataclass(frozen=True, slots=True)
class CreateStates(Elsewhere):
    """Create the states of partitions in ZooKeeper that have none, as Kafka takes a missing one: all `replicas` in sync, the
    first of them leads. Only while `/controller_epoch` is still `controller_epoch`.
    """

    replicas: Mapping[tuple[str, int], tuple[int, ...]]
    controller_epoch: int

    def __str__(self) -> str:
        return f"create the states of {len(self.replicas)} partitions in ZooKeeper"


@dataclass(frozen=True, slots=True)
class DeleteZNode(Elsewhere):
    """Delete a node of ZooKeeper in this version, while `/controller_epoch` is still `controller_epoch`.

    Every claim of KRaft raises that epoch: an operator that stood still cannot delete what a later claim wrote.
    """

    path: str
    version: int
    controller_epoch: int

    def __str__(self) -> str:
        return f"delete {self.path} (version {self.version})"


@dataclass(frozen=True, slots=True)
class SetQuota(Elsewhere):
    """Set a quota in KRaft's metadata, through the controller that leads; None removes it."""

    controller: Address
    entity: Entity
    key: str
    value: float | None

    def __str__(self) -> str:
        return f"set the quota {self.key} of {entity_text(self.entity)} to {self.value}"
