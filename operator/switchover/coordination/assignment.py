"""Who gets which partition: the arithmetic of the old Java consumer, thread for thread
(docs/facts/coordination.md#the-arithmetic).

Every member computes all of it for itself. One partition of difference is an outage: old members then claim nothing at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import cycle, pairwise

from switchover.shared.partition import TopicPartition

Streams = Mapping[str, Mapping[str, int]]
"""Consumer id to topic to number of streams."""


class Strategy(StrEnum):
    """`partition.assignment.strategy`."""

    RANGE = "range"
    ROUND_ROBIN = "roundrobin"


class Text(StrEnum):
    """What `roundrobin` hashes: the text of a partition changed with Kafka 1.0 (KAFKA-5822), and a group cannot mix them."""

    UP_TO_0_11 = "[t,p]"
    SINCE_1_0 = "t-p"


Variant = tuple[Strategy, Text]
VARIANTS: Mapping[str, Variant] = {
    "Range": (Strategy.RANGE, Text.SINCE_1_0),
    "RoundRobin": (Strategy.ROUND_ROBIN, Text.SINCE_1_0),
    "RoundRobinUpTo0_11": (Strategy.ROUND_ROBIN, Text.UP_TO_0_11),
}
"""By their names in spec.coordination.assignmentStrategy. `range` hashes no text."""


class Ambiguous(Exception):
    """Two partitions have the same hash: their order in Java hangs on a hash map, and cannot be reproduced."""


def thread_id(consumer_id: str, number: int) -> str:
    """A stream of a member, the value of the owner nodes of its partitions."""
    return f"{consumer_id}-{number}"


def assigned(strategy: Strategy, text: Text, streams: Streams, partitions: Mapping[str, Sequence[int]],
             ) -> dict[TopicPartition, str]:
    """The thread that each partition belongs to. `partitions`: topic to its partitions; a missing topic has none.

    Raises Ambiguous.
    """
    threads = _threads_by_topic(streams)
    if strategy is Strategy.RANGE:
        return dict(_range(threads, partitions))
    return dict(_round_robin(threads, partitions, text))


def _threads_by_topic(streams: Streams) -> dict[str, list[str]]:
    """Sorted as text: thread 10 comes before thread 2."""
    threads: dict[str, list[str]] = {}
    for consumer_id, topics in streams.items():
        for topic, count in topics.items():
            threads.setdefault(topic, []).extend(thread_id(consumer_id, number) for number in range(count))
    return {topic: sorted(ids) for topic, ids in threads.items()}


def _range(threads: Mapping[str, Sequence[str]], partitions: Mapping[str, Sequence[int]],
           ) -> Iterator[tuple[TopicPartition, str]]:
    for topic, ids in threads.items():
        numbers = sorted(partitions.get(topic, ()))
        each, more = divmod(len(numbers), len(ids)) if ids else (0, 0)
        start = 0
        for position, thread in enumerate(ids):
            end = start + each + (position < more)
            for number in numbers[start:end]:
                yield TopicPartition(topic, number), thread
            start = end


def _round_robin(threads: Mapping[str, Sequence[str]], partitions: Mapping[str, Sequence[int]], text: Text,
                 ) -> Iterator[tuple[TopicPartition, str]]:
    """Threads that do not subscribe to a partition's topic are passed over, and the cycle does not go back for them."""
    subscribed = {topic: frozenset(ids) for topic, ids in threads.items() if ids}
    hashed = sorted(
        (java_hash(_texts(text, TopicPartition(topic, number))), TopicPartition(topic, number))
        for topic in subscribed for number in partitions.get(topic, ()))
    for (one, before), (other, after) in pairwise(hashed):
        if one == other:
            raise Ambiguous(f"{before} and {after} have the same hash: choose the strategy range")
    turn = cycle(sorted(frozenset().union(*subscribed.values())))
    for _, partition in hashed:
        yield partition, next(thread for thread in turn if thread in subscribed[partition.topic])


def _texts(text: Text, partition: TopicPartition) -> str:
    return f"[{partition.topic},{partition.partition}]" if text is Text.UP_TO_0_11 else str(partition)


def java_hash(text: str) -> int:
    """`String.hashCode()` of ASCII text, signed."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value
