"""What ZooKeeper keeps of the simulated Kafka cluster, as docs/facts/kraft.md#znodes has it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from switchover.answers.errors import Fenced
from switchover.zookeeper.nodes import ControllerNode, MigrationNode

Key = tuple[str, int]


@dataclass
class ZooKeeperTree:
    """The nodes that a migration reads and writes.

    `states` holds the controller_epoch in each partition's state, `behind` by how many versions a state is behind its
    partition's epoch in KRaft, `stateless` the replicas of partitions without a state, `metadata` everything that an
    administrator can change (topics, configurations, ACLs, quotas …) by name. `written` is told of each write of
    the operator.
    """

    controller: ControllerNode | None = None
    controller_epoch: int = 0
    migration: MigrationNode | None = None
    registered: set[int] = field(default_factory=set)
    states: dict[Key, int] = field(default_factory=dict)
    behind: dict[Key, int] = field(default_factory=dict)
    stateless: dict[Key, tuple[int, ...]] = field(default_factory=dict)
    reading_states: float = 0.0
    """Seconds, as there are so many of them."""
    metadata: dict[str, str] = field(default_factory=dict)
    written: Callable[[str, str, dict[str, object]], None] = lambda verb, path, content: None

    @property
    def claimed(self) -> bool:
        """`/controller` is the persistent one of a KRaft controller."""
        return self.controller is not None and not self.controller.ephemeral

    @property
    def partition_epoch(self) -> int:
        """The newest controller_epoch in any partition's state."""
        return max(self.states.values(), default=0)

    def take_over(self, node_id: int, *, ephemeral: bool, kraft_epoch: int) -> None:
        """A new controller writes `/controller` and counts `/controller_epoch` up."""
        self.controller_epoch += 1
        version = self.controller.version + 1 if self.controller is not None else 0
        self.controller = ControllerNode(node_id, ephemeral, kraft_epoch, version)

    def claim(self, node_id: int, epoch: int, now: float) -> None:
        """A KRaft controller takes the cluster over; the offset that its predecessor reached stays."""
        assert self.migration is not None
        self.take_over(node_id, ephemeral=False, kraft_epoch=epoch)
        self.migration = replace(self.migration, controller_id=node_id, epoch=epoch,
                                 version=self.migration.version + 1, mtime=now)

    def reached(self, offset: int, now: float) -> None:
        """The dual write stores how far it is: the heartbeat."""
        assert self.migration is not None
        self.migration = replace(self.migration, offset=offset, version=self.migration.version + 1, mtime=now)

    # --- what the operator does ---------------------------------------------------------------------------------------

    def delete(self, path: str, version: int, controller_epoch: int) -> None:
        """Delete `/migration` or `/controller` in this version and epoch; Fenced when it is another."""
        node = {"/migration": self.migration, "/controller": self.controller}[path]
        if node is None:
            return
        if (version, controller_epoch) != (node.version, self.controller_epoch):
            raise Fenced(f"{path} has version {node.version} in epoch {self.controller_epoch}")
        content: dict[str, object] = {
            "epoch": self.controller_epoch, "partition_epoch": self.partition_epoch,
            "behind": sorted(key for key, late in self.behind.items() if late),
            "migration": self.migration is not None, "ephemeral": self.controller is not None and not self.claimed}
        if path == "/migration":
            self.migration = None
        else:
            self.controller = None
        self.written("DELETE", path, content)

    def raise_epoch(self, epoch: int, expected: int) -> None:
        """Set `/controller_epoch`, which must be `expected`; Fenced otherwise."""
        if self.controller_epoch != expected:
            raise Fenced(f"/controller_epoch is {self.controller_epoch}, not {expected}")
        self.controller_epoch = epoch
        self.written("PUT", "/controller_epoch", {"epoch": epoch, "expected": expected})

    def create_states(self, replicas: Mapping[Key, tuple[int, ...]], controller_epoch: int) -> None:
        """Create states that are missing; Fenced in another controller's epoch."""
        if self.controller_epoch != controller_epoch:
            raise Fenced(f"/controller_epoch is {self.controller_epoch}, not {controller_epoch}")
        for (topic, index), brokers in replicas.items():
            assert self.stateless.pop((topic, index), brokers) == brokers
            self.written("POST", f"/brokers/topics/{topic}/partitions/{index}/state", {})

    def raise_versions(self, epochs: Mapping[Key, int], controller_epoch: int) -> None:
        """Write states again until their versions are KRaft's epochs; Fenced in another controller's epoch."""
        if self.controller_epoch != controller_epoch:
            raise Fenced(f"/controller_epoch is {self.controller_epoch}, not {controller_epoch}")
        for topic, index in epochs:
            if self.behind.pop((topic, index), 0):
                self.written("PUT", f"/brokers/topics/{topic}/partitions/{index}/state", {})
