"""The bytes that members of a classic group exchange through its coordinator: Kafka's embedded consumer protocol."""

from dataclasses import dataclass

from kio.schema.consumer_protocol_assignment.v0 import ConsumerProtocolAssignment
from kio.schema.consumer_protocol_subscription.v0 import ConsumerProtocolSubscription as SubscriptionV0
from kio.schema.consumer_protocol_subscription.v1 import ConsumerProtocolSubscription as SubscriptionV1
from kio.schema.consumer_protocol_subscription.v2 import ConsumerProtocolSubscription as SubscriptionV2
from kio.schema.consumer_protocol_subscription.v3 import ConsumerProtocolSubscription as SubscriptionV3

from switchover.kafka.client import bounds
from switchover.lag.group import TopicPartition

PROTOCOL_TYPE = "consumer"
NO_GENERATION = -1


class Malformed(Exception):
    """These bytes are not what the protocol says; brokers refuse to convert such a group."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member wants. `generation` is the one it was in when it asked, NO_GENERATION where it does not say."""

    topics: frozenset[str]
    generation: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """What the leader gave a member; `user_data` is the length of the data that its assignor added."""

    partitions: frozenset[TopicPartition]
    user_data: int


def subscription(data: bytes) -> Subscription:
    """Raises Malformed. No bytes at all are no subscription: coordinators keep them back while a group rebalances."""
    if not data:
        return Subscription(frozenset(), NO_GENERATION)
    read: SubscriptionV0 | SubscriptionV1 | SubscriptionV2 | SubscriptionV3
    try:
        match _version(data):
            case 0:
                read, _ = bounds.read(SubscriptionV0, data, 2)
            case 1:
                read, _ = bounds.read(SubscriptionV1, data, 2)
            case 2:
                read, _ = bounds.read(SubscriptionV2, data, 2)
            case _:         # a newer one begins as version 3 does, and what follows is to be passed over
                read, _ = bounds.read(SubscriptionV3, data, 2)
        generation = read.generation_id if isinstance(read, SubscriptionV2 | SubscriptionV3) else NO_GENERATION
        return Subscription(frozenset(read.topics), generation)
    except (bounds.Unreadable, ValueError) as error:
        raise Malformed(f"its subscription cannot be read: {error}") from error


def assignment(data: bytes) -> Assignment:
    """Raises Malformed. No bytes at all are no assignment."""
    if not data:
        return Assignment(frozenset(), 0)
    try:
        _version(data)
        read, _ = bounds.read(ConsumerProtocolAssignment, data, 2)     # the same in all of its versions, 0 to 3
        partitions = (TopicPartition(each.topic, number) for each in read.assigned_partitions for number in each.partitions)
        return Assignment(frozenset(partitions), len(read.user_data or b""))
    except (bounds.Unreadable, ValueError) as error:
        raise Malformed(f"its assignment cannot be read: {error}") from error


def _version(data: bytes) -> int:
    version = int.from_bytes(data[:2], signed=True)
    if len(data) < 2 or version < 0:
        raise ValueError(f"{data[:2]!r} is no version")
    return version
