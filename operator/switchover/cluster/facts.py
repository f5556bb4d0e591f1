"""The facts of a KafkaMigration: what ZooKeeper, every Kafka node, the metadata log and Kubernetes said in one pass.

Plain immutable values in Kafka's, ZooKeeper's and Kubernetes' own terms. Adapters fill them, gates read them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from switchover.cluster.examination import Examination
from switchover.kubernetes.jobs import JobRun
from switchover.kubernetes.workloads import Manager
from switchover.metadata.image import BrokerRegistration as BrokerRegistration
from switchover.metadata.image import LogImage as LogImage
from switchover.metadata.image import MigrationState as MigrationState
from switchover.metadata.parity import Parity as Parity
from switchover.outside.observed import NOT_ASKED, Observed
from switchover.partition import TopicPartition
from switchover.zookeeper.groups import GroupMigration, ZooKeeperGroup


@dataclass(frozen=True, slots=True)
class Address:
    """Where a Kafka node or ZooKeeper server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


# --- Kafka nodes, each asked for itself -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """ApiVersions v3 of one node (docs/facts/kraft.md#what-a-node-answers).

    `features_epoch` is -1 while a fresh controller does not know the finalized features yet.
    """

    api_keys: Mapping[int, int]       # API key -> the newest version it speaks
    zk_migration_ready: bool
    features_epoch: int
    metadata_version: int | None      # the finalized level; ZooKeeper-mode brokers tell none


NOT_LISTENING = NodeAnswer({}, False, -1, None)
"""A controller whose host refuses connections to its port: that is an answer too."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as the asked broker sees it. `leader` is -1 while there is none."""

    topic: str
    index: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BrokerView:
    """Metadata of one broker: whom it knows and how it sees every partition."""

    cluster_id: str
    controller_id: int
    brokers: Mapping[int, Address]
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Replica:
    """A voter or observer in DescribeQuorum; times in milliseconds since the epoch, -1 when unknown to the leader."""

    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


@dataclass(frozen=True, slots=True)
class Quorum:
    """DescribeQuorum as the leader answers it; only the leader does."""

    leader_id: int
    leader_epoch: int
    high_watermark: int               # -1 in the first moments of a new leader
    voters: Mapping[int, Replica]
    observers: Mapping[int, Replica]


# --- ZooKeeper --------------------------------------------------------------------------------------------------------


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
    """The small nodes, read anew in every pass."""

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


# --- Kubernetes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiskReport:
    """What a broker's pod found on its volumes when it started (disks.py). Of each finding a few examples are named."""

    directories: int                  # log directories: those that have a meta.properties
    partitions: int                   # partition directories in them
    formatted: int                    # log directories with a meta.properties of another version than 0
    nameless: int                     # partition directories without partition.metadata
    formatted_directories: tuple[str, ...] = ()
    nameless_directories: tuple[str, ...] = ()


class Stage(StrEnum):
    """How far the kubelet has got with a pod that shall run."""

    PENDING = "Pending"               # it has no node
    PREPARING = "Preparing"           # an image is pulled, or volumes are mounted
    INITIALIZING = "Initializing"     # an init container runs
    ENDED = "Ended"                   # a container has ended, and is started again
    RUNNING = "Running"


class Reached(NamedTuple):
    """A stage, the container that it is about ("" while there is none), and since when as far as the kubelet tells."""

    stage: Stage
    container: str
    since: float | None


RUNS = Reached(Stage.RUNNING, "", None)


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of a StatefulSet that we move. `trouble` is the kubelet's reason when it does not come up, `reached` how far
    it has got.

    `disks` is None where it has reported nothing: it started before the template was changed, or still starts. `volumes`
    are its claims, each as "name/uid": a claim that was made anew has another uid, and nothing of the data. `ips` are its
    addresses, the first one first; on its node's network (`hostNetwork`) they are the node's, and of their ports only
    `host_ports` are reserved for it. None: all ports of its addresses are its own. `unreached` are the brokers' addresses
    that a controller's pod did not reach when it started; None where it has not reported.
    """

    name: str
    uid: str
    node: str
    ready: bool
    terminating: bool
    revision: str
    started_at: float | None
    cordoned: bool | None             # its node; None when we may not read nodes
    trouble: str
    disks: DiskReport | None = None
    volumes: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    host_ports: frozenset[int] | None = None
    reached: Reached = RUNS
    unreached: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """A StatefulSet and its pods, read in this pass."""

    name: str
    uid: str
    replicas: int
    template: Mapping[str, Any]
    update_strategy: Mapping[str, Any]
    update_revision: str
    service_name: str
    claimed_by: str                   # our claim annotation, "" when free
    budgets: tuple[str, ...]          # names of the PodDisruptionBudgets that select its pods
    pods: Mapping[str, Pod]
    generation: int = 0               # of its spec; status does not move it
    applied_by: tuple[str, ...] = ()  # who but us applied a manifest that has the template we made
    marks: Mapping[str, str] = field(default_factory=dict)     # labels and annotations of GitOps tools
    managers: tuple[Manager, ...] = ()
    owner: str = ""                   # its controller by ownerReference, "Kafka my-cluster"; "" when nobody's
    claim_templates: tuple[str, ...] = ()                      # names of its volumeClaimTemplates
    strict_budgets: tuple[str, ...] = ()                       # those of `budgets` that never allow a disruption
    selectors: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)    # of every budget of the namespace

    @property
    def kind(self) -> str:
        return "StatefulSet"


@dataclass(frozen=True, slots=True)
class KubernetesState:
    """Everything of this migration that lives in its namespace. A value of None: the object does not exist.

    `originals` holds what the StatefulSets and their brokers were before we touched them, as kept in ControllerRevisions.
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


# --- Groups -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupSample:
    """One sweep over a group: partition -> (committed offset or None, end of what is left to consume)."""

    at: float
    offsets: Mapping[TopicPartition, tuple[int | None, int]]


@dataclass(frozen=True, slots=True)
class Export:
    """ZooKeeper's tree as it was read last, masked: its digest, and its parts for a replica."""

    digest: str
    parts: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Facts:
    """All that was observed in one pass, each item known or unknown."""

    kubernetes: Observed[KubernetesState] = NOT_ASKED
    zookeeper: Observed[ZooKeeperState] = NOT_ASKED
    unchecked: Observed[tuple[str, ...]] = NOT_ASKED    # Secrets with which servers may have certificates for any name
    migration_written: Observed[Written] = NOT_ASKED
    zookeeper_topics: Observed[ZooKeeperTopics] = NOT_ASKED
    partition_epoch: Observed[int] = NOT_ASKED     # the largest controller_epoch in any partition's state
    stateless: Observed[Mapping[tuple[str, int], tuple[int, ...]]] = NOT_ASKED
    """Partitions that ZooKeeper's topics list and that have no state there -> replicas; while dual write stands still."""
    zookeeper_connections: Mapping[str, Observed[int | None]] = field(default_factory=dict)
    """ZooKeeper's server -> its clients but ourselves; None where nobody accepts a connection any more."""
    answers: Mapping[int, Observed[NodeAnswer]] = field(default_factory=dict)         # node id -> ApiVersions
    views: Mapping[int, Observed[BrokerView]] = field(default_factory=dict)           # broker id -> its Metadata
    quorum: Observed[Quorum] = NOT_ASKED
    log: Observed[LogImage] = NOT_ASKED
    parity: Observed[Parity] = NOT_ASKED           # ZooKeeper's metadata against KRaft's; read less often than passes go
    min_insync: Observed[Mapping[str, int]] = NOT_ASKED                               # topic -> min.insync.replicas
    broker_settings: Mapping[int, Observed[Mapping[str, str]]] = field(default_factory=dict)  # live DescribeConfigs
    identities: Mapping[str, Observed[frozenset[int]]] = field(default_factory=dict)
    """Pod -> the registered brokers that it says it is, asked at its own address; where host names do not tell them all."""
    markers: Mapping[int, Observed[str]] = field(default_factory=dict)    # broker of the batch -> its marker, "" for none
    groups: Mapping[str, Observed[tuple[GroupSample, ...]]] = field(default_factory=dict)     # samples, oldest first
    zookeeper_groups: Observed[Mapping[str, ZooKeeperGroup]] = NOT_ASKED              # those that have members
    group_migrations: Observed[Mapping[str, tuple[GroupMigration, ...]]] = NOT_ASKED  # by group
    rehearsal: Observed[JobRun | None] = NOT_ASKED         # its Job, while it goes on and before the copy
    exported: Observed[Export] = NOT_ASKED                 # the tree that it is to have
    examination: Examination = field(default_factory=Examination)                             # in Preflight only
