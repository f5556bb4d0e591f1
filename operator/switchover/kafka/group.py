"""Consumer groups as their coordinators and the brokers describe them: plain immutable values in Kafka's own terms.

`obstacles` is the one judge of whether a group can be moved from one protocol of consumers to the other, for Preflight,
`switchover groups` and the pipeline's inventory. What to do about it: Preflight's reasons.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from switchover.answers.observed import Observed
from switchover.kafka.releases import release_at
from switchover.lag.group import TopicPartition


class GroupType(StrEnum):
    """By which protocol the coordinator holds a group (ListGroups v5: the type). Share and Streams groups are OTHER."""

    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    OTHER = "Other"


class GroupState(StrEnum):
    """Kafka's states of every type (docs/facts/groups.md#states-and-epochs). DEAD: there is no such group; NOT_READY:
    of Streams alone."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    NOT_READY = "NotReady"
    DEAD = "Dead"


class MemberProtocol(StrEnum):
    """By which protocol one member takes part; in a group of type Consumer both can."""

    CLASSIC = "Classic"
    CONSUMER = "Consumer"


LEFT = -2
"""Epoch of a static member of the consumer protocol that has left and whose successor is awaited."""

NO_EPOCH = -1
"""Kafka gives a classic group's generation to its members alone."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a group.

    `epoch` is the member's own, for a classic group the group's; LEFT for a static member between two pods. `target` is what
    it is to own in the end: the same as `assigned` in a classic group. What a member of a group of type Consumer subscribes
    to and owns is known even while partitions are being handed over; of a classic group only while it is Stable.
    `user_data` is the length in bytes of the user data in a classic member's assignment, which forbids the online upgrade
    unless it is 0 (docs/facts/groups.md#user-data-in-assignments). `metadata` and `assignment` are the lengths in bytes
    of what the group keeps of it. All three are 0 in a group of type Consumer.
    """

    member_id: str
    client_id: str
    host: str                                     # its address, without the slash that Kafka puts before it
    instance_id: str                              # group.instance.id, "" for a dynamic member
    protocol: MemberProtocol
    epoch: int
    topics: frozenset[str]                        # subscribed by name
    regex: str                                    # subscribed by a pattern of the broker's, "" for none
    assigned: frozenset[TopicPartition]
    target: frozenset[TopicPartition]
    user_data: int = 0
    metadata: int = 0
    assignment: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """A group as its coordinator describes it.

    `epoch` is the group's epoch. For a classic group it follows from its members' subscriptions: one more than the newest
    generation that any of them came from. It never is more than the generation, and grows with every rebalance. NO_EPOCH
    while the group rebalances, in its first generation, and where no member has it (librdkafka with an eager strategy,
    clients before KIP-792).
    `assignment_epoch` is behind it while the coordinator has not computed the next assignment; the same for a classic group.
    `assignor` is the strategy selected by a classic group ("" while it rebalances) or the brokers' assignor in force.
    `protocol_type` is "consumer", or "connect" for Connect's workers; "" where the group does not exist, or has only
    committed offsets. Of a group of type OTHER only the state is known.
    """

    name: str
    coordinator: int                              # node id
    type: GroupType
    state: GroupState
    protocol_type: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class BrokerGroups:
    """What one broker says of group coordination.

    `group_version` is the finalized feature; 0 where it is not among the finalized ones. `metadata_version` is the highest
    level of `metadata.version` that its software supports, which gives its minor release (docs/facts/groups.md#releases); 0
    in ZooKeeper mode, which has no features. `settings` are its live settings that begin with "group.", among them
    `group.consumer.migration.policy` from 4.0 on; sensitive and absent ones are missing.
    """

    group_version: int
    metadata_version: int
    consumer_keys: bool                           # ApiVersions lists ConsumerGroupHeartbeat and ConsumerGroupDescribe
    settings: Mapping[str, str]

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor release of the broker's software, by its metadata version; (0, 0) where that is 0."""
        return release_at(self.metadata_version)


@dataclass(frozen=True, slots=True)
class OffsetsTopic:
    """`__consumer_offsets`, whose batches must take a group's records (docs/facts/groups.md#size)."""

    max_message_bytes: int
    compressed: bool                              # offsets.topic.compression.codec is not none
    replicas_short: int                           # partitions with fewer in-sync replicas than assigned ones


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer to a heartbeat that names an assignor which does not exist: nothing is created
    (docs/facts/groups.md#does-the-coordinator-serve-us).

    `refused` is "" when the coordinator serves the consumer protocol, else its error by name (UNSUPPORTED_VERSION,
    GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED …). `assignors` are those that it supports.
    """

    refused: str
    assignors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeenGroup:
    """What is known of one group. `type` and `state` are Kafka's words as far as anybody tells them, "" else: those which
    are OTHER are told apart, and a group that nobody can describe still is on a list."""

    name: str
    group: Observed[Group]
    type: str = ""
    state: str = ""


@dataclass(slots=True)
class SeenGroups:
    """By name, and in words which brokers did not tell their groups: these are missing here."""

    groups: dict[str, SeenGroup] = field(default_factory=dict)
    silent: list[str] = field(default_factory=list)


STREAMS = "stream"
"""The strategy of every Kafka Streams application of the classic protocol."""
CONSUMERS = ("", "consumer")
"""Protocol types of groups that brokers convert; "": the group has only committed offsets."""


class Kind(StrEnum):
    """What stands in the way. All but NOT_STABLE stay until a person acts."""

    OTHER_TYPE = "OtherType"
    NOT_CONSUMERS = "NotConsumers"
    NO_MEMBERS = "NoMembers"
    NOT_STABLE = "NotStable"
    MOVED = "Moved"
    STREAMS = "Streams"


@dataclass(frozen=True, slots=True)
class Standing:
    """A group as it stands; `protocols` are those of its members, one for each. `state` None: it is not known."""

    name: str
    type: GroupType
    state: GroupState | None
    protocol_type: str
    assignor: str
    protocols: tuple[MemberProtocol, ...]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One thing in the way, and a sentence about it."""

    kind: Kind
    message: str


def obstacles(group: Standing, start: MemberProtocol | None) -> Iterator[Obstacle]:
    """What stands in the way of a move that starts from `start`; None: from any. After one of the first three kinds there is
    nothing more to ask."""
    if group.type is GroupType.OTHER:
        yield Obstacle(Kind.OTHER_TYPE, f"group {group.name} is of a type that only Kafka Streams or share consumers use")
        return
    if group.protocol_type not in CONSUMERS:
        yield Obstacle(Kind.NOT_CONSUMERS, f"group {group.name} has the protocol type {group.protocol_type}: brokers convert"
                                           " only groups of consumers")
        return
    if group.state is GroupState.DEAD or not group.protocols:
        yield Obstacle(Kind.NO_MEMBERS, f"group {group.name} has no members: there is nothing to move online")
        return
    if group.state is not GroupState.STABLE:
        yield Obstacle(Kind.NOT_STABLE, f"group {group.name} is {group.state or 'in a state that is not known'}")
    moved = [each for each in group.protocols if start is not None and each is not start]
    if moved:
        yield Obstacle(Kind.MOVED, f"{len(moved)} of {len(group.protocols)} members take part by the {moved[0].lower()}"
                                   " protocol already")
    if group.assignor == STREAMS:
        yield Obstacle(Kind.STREAMS, f"group {group.name} is a Kafka Streams application: the coordinator refuses to convert"
                                     " it online, and it has a protocol of its own (streams, KIP-1071)")
