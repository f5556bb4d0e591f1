"""What a Kafka node answers that is asked for itself: plain immutable values in Kafka's own terms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from switchover.network.addresses import Address

MARKER = "switchover."
"""The key that names the edits a process was started with begins so."""


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A log directory of a broker; one that failed is offline until the broker restarts."""

    path: str
    offline: bool


@dataclass(frozen=True, slots=True)
class TopicIds:
    """The ids that a broker serves, by topic, as Kafka writes them. Of `others` its own log of that partition has another
    id; whether the logs of `silent` topics have theirs is not known."""

    served: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, int] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class BrokerExamination:
    """What one broker answers about itself. `operations` are those that our user may do on the cluster, as Kafka names them.

    `static_settings` are the values from its file and command line, without defaults and dynamic values. Of what it keeps
    to itself only the names are known, in `hidden`: secrets, and every key that Kafka's own configuration does not define,
    such as `super.users`. `classes` are the settings in force that name classes, several separated by commas; `own_dynamic`
    those that were set at run time for this broker alone.
    """

    static_settings: Mapping[str, str]
    log_directories: tuple[LogDirectory, ...]
    operations: frozenset[str]
    hidden: frozenset[str] = frozenset()
    classes: Mapping[str, str] = field(default_factory=dict)
    own_dynamic: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """ApiVersions v3 of one node (docs/facts/kraft.md#what-a-node-answers).

    `features_epoch` is -1 while a fresh controller does not know the finalized features yet.
    """

    api_keys: Mapping[int, int]       # API key -> the newest version it speaks
    zk_migration_ready: bool
    features_epoch: int
    metadata_version: int | None      # the finalized level; ZooKeeper-mode brokers have none


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
class Topic:
    """The partitions of a topic as the asked broker sees them; `lagging` lack their leader or a replica in sync."""

    partitions: tuple[Partition, ...]
    topic_id: UUID | None = field(default=None, compare=False)
    lagging: tuple[Partition, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lagging", tuple(
            each for each in self.partitions if each.leader < 0 or {*each.isr} != {*each.replicas}))


@dataclass(frozen=True, slots=True)
class BrokerView:
    """Metadata of one broker: whom it knows."""

    cluster_id: str
    controller_id: int
    brokers: Mapping[int, Address]


@dataclass(frozen=True, slots=True)
class WholeView(BrokerView):
    """Metadata of one broker that was asked for all partitions, too. Brokers that see a topic alike may share its object."""

    topics: Mapping[str, Topic]

    @property
    def partitions(self) -> tuple[Partition, ...]:
        return tuple(each for topic in self.topics.values() for each in topic.partitions)

    @property
    def size(self) -> int:
        """How many partitions."""
        return sum(len(topic.partitions) for topic in self.topics.values())

    @property
    def lagging(self) -> tuple[Partition, ...]:
        """Those without their leader or with a replica out of sync."""
        return tuple(each for topic in self.topics.values() for each in topic.lagging)


def seen_by(views: Mapping[int, WholeView]) -> Iterator[tuple[int, str, Topic]]:
    """Each topic in each way in which it is seen, with the first of these brokers that sees it so."""
    seen: set[int] = set()
    for broker_id, view in views.items():
        for name, topic in view.topics.items():
            if id(topic) not in seen:
                seen.add(id(topic))
                yield broker_id, name, topic


@dataclass(frozen=True, slots=True)
class Replica:
    """A voter or observer in DescribeQuorum; times in milliseconds since the epoch, -1 when unknown to the leader."""

    log_end_offset: int
    last_fetch_ms: int


@dataclass(frozen=True, slots=True)
class Quorum:
    """DescribeQuorum as the leader answers it; only the leader does."""

    leader_id: int
    leader_epoch: int
    high_watermark: int               # -1 in the first moments of a new leader
    voters: Mapping[int, Replica]
    observers: Mapping[int, Replica]
