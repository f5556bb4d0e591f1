"""What Kafka keeps in ZooKeeper, node by node, and the groups that it coordinates: plain immutable values.

Formats: docs/facts/kraft.md#znodes, and of `/consumers` docs/facts/coordination.md#znodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from switchover.coordination.mode import Mode
from switchover.network.addresses import Address


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


@dataclass(frozen=True, slots=True)
class ZooKeeperRights:
    """What our credentials may do, by path: READ, WRITE, CREATE, DELETE, ADMIN.

    `unjudged` names, by path, the schemes of entries that cannot be judged from here, such as ip and x509.
    """

    granted: Mapping[str, frozenset[str]]
    unjudged: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ControllerNode:
    """`/controller`: ephemeral when a ZooKeeper-mode broker holds it, persistent once KRaft claimed it."""

    node_id: int
    ephemeral: bool
    kraft_epoch: int
    version: int = 0


@dataclass(frozen=True, slots=True)
class MigrationNode:
    """`/migration`; an empty node (KAFKA-19480) has `empty=True` and -1 everywhere.

    `mtime` is in seconds of ZooKeeper's clock: to be compared with ZooKeeper's own times, and never with ours.
    """

    empty: bool
    controller_id: int
    offset: int
    epoch: int
    version: int
    mtime: float


@dataclass(frozen=True, slots=True)
class ZooKeeperState:
    """The small nodes, read in every pass."""

    cluster_id: str
    controller: ControllerNode | None
    controller_epoch: int
    migration: MigrationNode | None
    brokers: Mapping[int, Mapping[str, Address]]   # /brokers/ids: broker id -> listener name -> address
    generated_ids: bool                            # /brokers/seqid was used: some broker id may be generated
    ahead: Mapping[int, float] = field(default_factory=dict)    # by how many seconds a broker's clock was, of ZooKeeper's


@dataclass(frozen=True, slots=True)
class ZooKeeperTopic:
    """`/brokers/topics/T`: a topic without an id stalls the migration before the claim."""

    topic_id: str | None
    assignment: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ZooKeeperTopics:
    """The topic tree and the queues of pending work; malformed names nodes that could not be parsed."""

    topics: Mapping[str, ZooKeeperTopic]
    pending_deletes: tuple[str, ...]
    reassigning: bool
    malformed: tuple[str, ...]        # "path: why"
