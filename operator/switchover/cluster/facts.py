"""The facts of a KafkaMigration: what ZooKeeper, every Kafka node, the metadata log and Kubernetes said in one pass.

What each of them answers stands in its own room; the observer fills the facts, gates read them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any

from switchover.answers.observed import NOT_ASKED, Known, Observed, asked_for
from switchover.kafka.node import BrokerExamination, BrokerView, NodeAnswer, Quorum, TopicIds, WholeView
from switchover.kubernetes.ports import GroupMigration, StorageClasses, TemplateChange
from switchover.kubernetes.workloads import JobRun, Workload
from switchover.lag.group import Membership
from switchover.lag.watch import JudgedGroup
from switchover.metadata.parity import LogImage, Parity
from switchover.zookeeper.nodes import IdleGroups, ZooKeeperGroup, ZooKeeperRights, ZooKeeperState, ZooKeeperTopics


@dataclass(frozen=True, slots=True)
class Examination:
    """All of it, each item known or unknown."""

    brokers: Mapping[int, Observed[BrokerExamination]] = field(default_factory=dict)
    topic_ids: Mapping[int, Observed[TopicIds]] = field(default_factory=dict)
    zookeeper_rights: Observed[ZooKeeperRights] = NOT_ASKED
    zookeeper_modes: Mapping[str, Observed[str]] = field(default_factory=dict)     # server -> standalone, leader, follower
    objects: Observed[Mapping[str, str]] = NOT_ASKED          # "Service kafka" -> its app.kubernetes.io/managed-by label
    missing_rights: Observed[tuple[str, ...]] = NOT_ASKED     # "patch statefulsets.apps"
    storage_classes: Observed[StorageClasses] = NOT_ASKED
    stateful_sets: Observed[Mapping[str, str]] = NOT_ASKED    # the names of all, where one that the spec names is not there
    classes_in_use: Observed[frozenset[str]] = NOT_ASKED      # of bound claims in the namespace
    template_changes: Mapping[str, Observed[TemplateChange]] = field(default_factory=dict)    # by StatefulSet, dry run
    malformed: Observed[Mapping[str, str]] = NOT_ASKED        # nodes that Kafka could not have written: path -> why
    ahead: Observed[float] = NOT_ASKED                        # by how many seconds the API server's clock is ahead of ours
    idle_groups: Observed[IdleGroups] = NOT_ASKED


@dataclass(frozen=True, slots=True)
class KubernetesState:
    """Everything of this migration that lives in its namespace. A value of None: the object does not exist.

    `originals` are the backups in ControllerRevisions: what the StatefulSets and their brokers were before we touched them.
    `listener_credentials` are the client properties of the controllers' listener or, as text, why they cannot be read.
    """

    brokers: Mapping[str, Workload | None]
    node_files: Mapping[str, Mapping[str, str]] = field(repr=False)    # StatefulSet -> key -> content of our Secret
    originals: Mapping[str, Mapping[str, Any] | None]
    controllers: Workload | None
    controller_claims: tuple[str, ...]                         # names of volume claims of the controllers
    lease_holder: str                                          # who holds the Lease of this cluster, "" when nobody
    listener_credentials: Mapping[str, str] | str = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Written:
    """What we saw of `/migration` being written, by our own clock: since when it is as it is, whether it became so under our
    eyes, and since when its offset is. Where it did not, it may be older. A controller that repeats a write which fails
    touches the node, and its offset stays (docs/facts/rehearsal.md).
    """

    since: float
    seen_to_change: bool
    offset_since: float


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """A replica that its partition's leader calls out of sync, although it has all the records that the leader had a look
    before. `since` is when it was first seen so, without a break: Kafka takes such a replica back with its next fetch.
    """

    topic: str
    index: int
    leader: int
    follower: int
    since: float


@dataclass(frozen=True, slots=True)
class Export:
    """ZooKeeper's tree as it was read last, masked: its digest, and its parts for a replica."""

    digest: str
    parts: tuple[str, ...] = field(repr=False)


class Need(StrEnum):
    """What is read only where a gate, a rollout or a leg of the plan names it."""

    EXAMINATION = auto()
    TOPICS_IN_ZOOKEEPER = auto()
    GROUPS_IN_ZOOKEEPER = auto()
    REHEARSAL = auto()
    TRIALS = auto()
    BROKER_SETTINGS = auto()
    BROKER_MODES = auto()
    """The brokers' settings, where some brokers were upgraded or raised: nothing else tells their mode."""
    CAUGHT_UP = auto()
    FORWARDING = auto()
    PARITY = auto()
    STATELESS = auto()
    PARTITION_EPOCH = auto()
    MEMBERS = auto()
    CLIENTS_OF_ZOOKEEPER = auto()
    """Its servers are asked for them. There it may be gone, and nothing is read in it."""
    ZOOKEEPER_SETS = auto()


@dataclass(frozen=True, slots=True)
class Facts:
    """All that was observed in one pass, each item known or unknown; `asked_for` what is read only where it is named."""

    kubernetes: Observed[KubernetesState] = NOT_ASKED
    zookeeper: Observed[ZooKeeperState] = NOT_ASKED
    unchecked: Observed[tuple[str, ...]] = NOT_ASKED    # Secrets with which servers may have certificates for any name
    migration_written: Observed[Written] = NOT_ASKED
    zookeeper_topics: Observed[ZooKeeperTopics] = asked_for(Need.TOPICS_IN_ZOOKEEPER)
    partition_epoch: Observed[int] = asked_for(Need.PARTITION_EPOCH)
    """The largest controller_epoch in any partition's state."""
    stateless: Observed[Mapping[tuple[str, int], tuple[int, ...]]] = asked_for(Need.STATELESS)
    """Partitions that ZooKeeper's topics list and that have no state there -> replicas; none while dual write goes on."""
    zookeeper_connections: Mapping[str, Observed[int | None]] = asked_for(Need.CLIENTS_OF_ZOOKEEPER, otherwise=dict)
    """ZooKeeper's server -> its clients but ourselves; None where nobody accepts a connection any more."""
    zookeeper_sets: Observed[Mapping[str, tuple[str, ...]]] = asked_for(Need.ZOOKEEPER_SETS)
    """Service that `zookeeper.connect` may name -> the StatefulSets behind it."""
    answers: Mapping[int, Observed[NodeAnswer]] = field(default_factory=dict)         # node id -> ApiVersions
    views: Mapping[int, Observed[BrokerView]] = field(default_factory=dict)           # broker id -> its Metadata
    caught_up: Observed[tuple[CaughtUp, ...]] = asked_for(Need.CAUGHT_UP)
    forwarding: Observed[Mapping[int, float]] = asked_for(Need.FORWARDING)
    """Brokers that answer, but do not forward requests to the controller -> since when."""
    quorum: Observed[Quorum] = NOT_ASKED
    log: Observed[LogImage] = NOT_ASKED
    parity: Observed[Parity] = asked_for(Need.PARITY)
    """ZooKeeper's metadata against KRaft's; read less often than passes go."""
    min_insync: Observed[Mapping[str, int]] = NOT_ASKED                               # topic -> min.insync.replicas
    broker_settings: Mapping[int, Observed[Mapping[str, str]]] = asked_for(
        Need.BROKER_SETTINGS, Need.BROKER_MODES, Need.TRIALS, otherwise=dict)
    """Live DescribeConfigs; trials are compared with them."""
    identities: Mapping[str, Observed[frozenset[int]]] = field(default_factory=dict)
    """Pod -> the registered brokers that it says it is, asked at its own address; where host names do not show them all."""
    markers: Mapping[int, Observed[str]] = field(default_factory=dict)    # broker of the batch -> its marker, "" for none
    groups: Mapping[str, Observed[JudgedGroup]] = field(default_factory=dict)         # those that the spec names
    members: Mapping[str, Observed[Membership]] = asked_for(Need.MEMBERS, otherwise=dict)    # of the same
    zookeeper_groups: Observed[Mapping[str, ZooKeeperGroup]] = asked_for(Need.GROUPS_IN_ZOOKEEPER)
    """Those that have members."""
    group_migrations: Observed[Mapping[str, tuple[GroupMigration, ...]]] = asked_for(Need.GROUPS_IN_ZOOKEEPER)
    """By group: those that are to move them."""
    rehearsal: Observed[JobRun | None] = asked_for(Need.REHEARSAL)    # its Job
    exported: Observed[Export] = asked_for(Need.REHEARSAL)            # the tree that it is to have
    trials: Mapping[str, Observed[JobRun | None]] = asked_for(Need.TRIALS, otherwise=dict)
    """StatefulSet -> the Job in which its new template is tried."""
    examination: Examination = asked_for(Need.EXAMINATION, otherwise=Examination)

    @property
    def whole_views(self) -> dict[int, WholeView]:
        """What the brokers answer that were asked for all partitions, by their ids in order."""
        return whole_of(self.views)


def whole_of(views: Mapping[int, Observed[BrokerView]]) -> dict[int, WholeView]:
    """As `Facts.whole_views`."""
    return {broker_id: view.value for broker_id, view in sorted(views.items())
            if isinstance(view, Known) and isinstance(view.value, WholeView)}
