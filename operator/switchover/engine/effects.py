"""Effects: what `decide` hands out to be done. Each is idempotent and derived anew from facts in every pass."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from switchover.cluster.facts import Address
from switchover.coordination.mode import Mode
from switchover.metadata.cluster import Entity, entity_words
from switchover.partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply of a manifest: an object of ours, or of the user's the fields that are ours."""

    manifest: Mapping[str, Any]

    def __str__(self) -> str:
        return f"apply {self.manifest['kind']} {self.manifest['metadata']['name']}"


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object that is ours; one of that name that is there already stays as it is."""

    manifest: Mapping[str, Any]

    def __str__(self) -> str:
        return f"create {self.manifest['kind']} {self.manifest['metadata']['name']}"


@dataclass(frozen=True, slots=True)
class WriteNodeFiles:
    """Write the Secret that holds one file a node: this is how a node is assigned its mode."""

    secret: str
    files: Mapping[str, str] = field(repr=False)          # they may hold passwords
    labels: Mapping[str, str]

    def __str__(self) -> str:
        return f"write the files of Secret {self.secret}"


@dataclass(frozen=True, slots=True)
class Patch:
    """JSON patch of an object, or of its `subresource`, with tests that fence it."""

    api_version: str
    kind: str
    name: str
    operations: tuple[Mapping[str, Any], ...]
    purpose: str
    subresource: str = ""

    def __str__(self) -> str:
        return f"{self.subresource or 'patch'} {self.kind} {self.name}: {self.purpose}"


def patch_stateful_set(name: str, operations: tuple[Mapping[str, Any], ...], purpose: str) -> Patch:
    """JSON patch of a StatefulSet that belongs to the user."""
    return Patch("apps/v1", "StatefulSet", name, operations, purpose)


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict exactly this pod; budgets hold."""

    pod: str
    uid: str

    def __str__(self) -> str:
        return f"evict pod {self.pod} ({self.uid})"


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete exactly this pod, which is not Ready: a budget would keep a broken pod from being repaired."""

    pod: str
    uid: str

    def __str__(self) -> str:
        return f"delete pod {self.pod} ({self.uid})"


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object that is ours; a workload goes only after its pods, so that its absence proves theirs."""

    api_version: str
    kind: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        return f"delete {self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class RaiseEpoch:
    """Set `/controller_epoch` in ZooKeeper, which must still be `expected` (KAFKA-20488)."""

    epoch: int
    expected: int

    def __str__(self) -> str:
        return f"raise /controller_epoch from {self.expected} to {self.epoch}"


@dataclass(frozen=True, slots=True)
class RaiseVersions:
    """Write the states of partitions in ZooKeeper again, as they are, until their versions are these epochs of KRaft's.

    Only while `/controller_epoch` is still `controller_epoch`.
    """

    epochs: Mapping[tuple[str, int], int]
    controller_epoch: int

    def __str__(self) -> str:
        return f"raise the versions of {len(self.epochs)} partition states"


@dataclass(frozen=True, slots=True)
class CreateStates:
    """Create the states of partitions in ZooKeeper that have none, as Kafka takes a missing one: all `replicas` in sync, the
    first of them leads. Only while `/controller_epoch` is still `controller_epoch`.
    """

    replicas: Mapping[tuple[str, int], tuple[int, ...]]
    controller_epoch: int

    def __str__(self) -> str:
        return f"create the states of {len(self.replicas)} partitions in ZooKeeper"


@dataclass(frozen=True, slots=True)
class DeleteZNode:
    """Delete a node of ZooKeeper in this version, while `/controller_epoch` is still `controller_epoch`.

    Every claim of KRaft raises that epoch: an operator that stood still cannot delete what a later claim wrote.
    """

    path: str
    version: int
    controller_epoch: int

    def __str__(self) -> str:
        return f"delete {self.path} (version {self.version})"


@dataclass(frozen=True, slots=True)
class SetQuota:
    """Set a quota in KRaft's metadata, through the controller that leads; None removes it."""

    controller: Address
    entity: Entity
    key: str
    value: float | None

    def __str__(self) -> str:
        return f"set the quota {self.key} of {entity_words(self.entity)} to {self.value}"


@dataclass(frozen=True, slots=True)
class SetMode:
    """Write the mode znode of a group (KIP-125), of which this is still `World.mode_version`; -1: it must not exist."""

    group: str
    mode: Mode
    version: int

    def __str__(self) -> str:
        return f"set the mode of group {self.group} to {self.mode} (over version {self.version})"


@dataclass(frozen=True, slots=True)
class RemoveGuards:
    """Delete the guard nodes that keep old consumers away from these partitions."""

    group: str
    partitions: frozenset[TopicPartition]

    def __str__(self) -> str:
        return f"remove {len(self.partitions)} guards of group {self.group}"


Effect = (Apply | Create | WriteNodeFiles | Patch | Evict | DeletePod | Delete | RaiseEpoch
          | RaiseVersions | CreateStates | DeleteZNode | SetQuota | SetMode | RemoveGuards)
