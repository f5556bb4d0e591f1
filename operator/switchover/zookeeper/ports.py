"""What is asked of ZooKeeper. `client/` implements these; tests fake them.

Every method has a time limit of its own and raises one of the errors of `answers.errors`, never a client library's.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from switchover.coordination.mode import Mode
from switchover.coordination.world import World
from switchover.metadata.parity import TreeReading
from switchover.network.addresses import Address
from switchover.shared.partition import TopicPartition
from switchover.zookeeper.nodes import (
    ControllerNode,
    IdleGroups,
    MigrationNode,
    ZooKeeperGroup,
    ZooKeeperRights,
    ZooKeeperState,
    ZooKeeperTopics,
)
from switchover.zookeeper.tree import Tree


class ZooKeeperGroups(Protocol):
    """Consumer groups that ZooKeeper coordinates, or did; the connect string has the brokers' chroot.

    Refused names the right that our credentials lack.
    """

    async def world(self, group: str) -> World:
        """What the group looks like, read at once; a group that does not exist has no member and no mode."""
        ...

    async def offsets(self, group: str) -> Mapping[TopicPartition, int]:
        """The offsets that are committed to ZooKeeper; one that the old consumer takes for none is absent."""
        ...

    async def set_mode(self, group: str, mode: Mode, version: int) -> None:
        """Write the mode znode over that `World.mode_version`, or create it for -1; that it says so already is success.

        Fenced says what is there in its place.
        """
        ...

    async def remove_guards(self, group: str, partitions: Collection[TopicPartition]) -> None:
        """Delete the owner nodes of these partitions that belong to no session; one that is gone is done."""
        ...

    async def missing_rights(self, group: str) -> tuple[str, ...]:
        """What we lack, by the nodes' ACLs, to own the mode znode and to remove guards, such as `WRITE on /consumers/…`."""
        ...

    async def close(self) -> None: ...


class ZooKeeper(Protocol):
    """The ZooKeeper tree of a Kafka cluster (chroot included in the connect string)."""

    async def state(self) -> ZooKeeperState: ...
    async def topics(self) -> ZooKeeperTopics: ...
    async def metadata(self, secret: str | None, *, states: bool = False) -> TreeReading:
        """All metadata that dual write carries; passwords decrypted with `secret`. May take long; one at a time.

        With `states` also the versions of the partitions' states: a request for each.
        """
        ...

    async def groups(self) -> Mapping[str, ZooKeeperGroup]:
        """The consumer groups that have members below `/consumers`."""
        ...

    async def idle_groups(self) -> IdleGroups:
        """When the groups without members committed last, of as many as a bounded number of reads allows."""
        ...

    def servers(self) -> Sequence[Address]: ...
    async def connections(self, server: Address) -> int:
        """Clients of one server by the command `srvr`, the asker not counted.

        NotListening where no server accepts a connection; Refused where the server does not answer that.
        """
        ...

    async def partition_epoch(self) -> int:
        """The largest `controller_epoch` in the state of any partition; 0 where there is none."""
        ...

    async def stateless(self) -> Mapping[tuple[str, int], tuple[int, ...]]:
        """The partitions that a topic's node lists and that have no state: (topic, index) -> replicas."""
        ...

    async def create_states(self, replicas: Mapping[tuple[str, int], tuple[int, ...]], controller_epoch: int) -> None:
        """Create partitions' states, with all replicas in sync and the first one as leader; one that is there stays.

        Fenced when `/controller_epoch` is not `controller_epoch` any more.
        """
        ...

    async def delete(self, path: str, version: int, controller_epoch: int) -> None:
        """Delete a node in that version while `/controller_epoch` is still that; Fenced otherwise. Gone is success."""
        ...

    async def raise_epoch(self, epoch: int, expected: int) -> None:
        """Set `/controller_epoch`; Fenced when it is not `expected` any more."""
        ...

    async def raise_versions(self, epochs: Mapping[tuple[str, int], int], controller_epoch: int) -> None:
        """Write partitions' states again as they are until their versions are no less; a partition that is gone is done.

        Fenced when `/controller_epoch` is not `controller_epoch` any more, or a state was written meanwhile.
        """
        ...

    async def rights(self) -> ZooKeeperRights:
        """What our credentials may do with the nodes that a rollback writes, by their ACLs."""
        ...

    async def server_mode(self, server: Address) -> str:
        """standalone, leader, follower or observer, by the command `srvr`; Refused where it does not answer that."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ReplicaNodes:
    """How far a replica's controller has got, by the nodes that it writes; None for one that is not there."""

    controller_epoch: int | None
    controller: ControllerNode | None
    migration: MigrationNode | None


class ZooKeeperTree(Protocol):
    """The whole tree of Kafka's metadata in ZooKeeper, node by node."""

    async def export(self) -> Tree:
        """What may be read of it; nothing is written."""
        ...

    async def close(self) -> None: ...


class ReplicaTree(Protocol):
    """The ZooKeeper of a rehearsal's replica; a tree lies below a chroot of its own."""

    async def listens(self) -> bool:
        """Whether it takes connections yet. Every other question waits for that."""
        ...

    async def load(self, chroot: str, nodes: Mapping[str, bytes | None]) -> None:
        """Create it. Refused where something is there already: no other ZooKeeper is ever written to."""
        ...

    async def export(self, chroot: str) -> Tree: ...
    async def replica_nodes(self, chroot: str) -> ReplicaNodes: ...
    async def delete(self, chroot: str, path: str, version: int, controller_epoch: int) -> None:
        """As `ZooKeeper.delete`, which a rollback uses."""
        ...
