"""Partitions that ZooKeeper's topics list and that have no state there: a topic grew while the leading controller changed.

Every new leader writes all of KRaft's metadata to ZooKeeper before dual write goes on. It adds the partitions to the topic,
and then sets their states, which do not exist, again and again
(docs/facts/kraft.md#a-topic-that-grows-while-the-leader-changes).
"""

from collections.abc import Iterable, Mapping

from switchover.answers.observed import Known
from switchover.cluster.effects import CreateStates
from switchover.cluster.picture import Picture
from switchover.cluster.reading import log_left_behind, zookeeper_of
from switchover.engine.effects import Effect

NAMED = 3
"""How many partitions a message names."""


def in_the_way(picture: Picture) -> Mapping[tuple[str, int], tuple[int, ...]]:
    """Those that KRaft has too, while dual write does not come on: (topic, index) -> replicas. None where it does, or where
    that cannot be seen."""
    log, found = log_left_behind(picture), picture.facts.stateless
    if log is None or not isinstance(found, Known):
        return {}
    topics = log.metadata.topics
    return {(topic, index): replicas for (topic, index), replicas in sorted(found.value.items())
            if topic in topics and index in topics[topic].partitions}


def put_right(picture: Picture) -> tuple[Effect, ...]:
    """They get the state that Kafka takes for a missing one; the leading controller writes KRaft's over it."""
    found = in_the_way(picture)
    return (CreateStates(found, zookeeper_of(picture).controller_epoch),) if found else ()


def named(found: Iterable[tuple[str, int]]) -> str:
    """Some of them, in words."""
    words = [f"{topic}-{index}" for topic, index in found]
    return ", ".join(words[:NAMED]) + (f" and {len(words) - NAMED} more" if len(words) > NAMED else "")
