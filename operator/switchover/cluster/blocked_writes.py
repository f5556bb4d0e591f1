"""What stops dual write, and its repair: quotas, and partitions without a state in ZooKeeper."""

from collections.abc import Iterable, Mapping

from switchover.answers.observed import Known
from switchover.cluster.effects import CreateStates, SetQuota
from switchover.cluster.picture import Picture
from switchover.cluster.reading import leading_address, log_left_behind, zookeeper_of
from switchover.engine.effects import Effect
from switchover.metadata.kafka_config import Unwritable, unwritable

# --- quotas ---------------------------------------------------------------------------------------------------------------
# By then they are in KRaft's metadata, where Kafka's tools cannot change them while brokers do not learn who leads
# (docs/facts/rehearsal.md).

def unwritable_quotas(picture: Picture) -> tuple[Unwritable, ...]:
    """Those that KRaft has while dual write does not come on; none where it does, or where that cannot be seen."""
    log = log_left_behind(picture)
    return unwritable(log.metadata.quotas) if log is not None else ()


def correct_quotas(picture: Picture) -> tuple[Effect, ...]:
    """One that Kafka does not know is removed: it has no effect. One with a decimal becomes the whole number below."""
    leader = leading_address(picture)
    if leader is None:
        return ()
    return tuple(SetQuota(leader, each.entity, each.key, each.instead) for each in unwritable_quotas(picture))


def changed_quota(found: Unwritable) -> str:
    """What becomes of one, with its value of before: it can be set again."""
    return f"{found} = {found.value!r} " + ("removed" if found.instead is None else f"set to {found.instead:.0f}")


# --- partition states -----------------------------------------------------------------------------------------------------
# Partitions that ZooKeeper's topics list and that have no state there: a topic grew while the leading controller changed.
#
# Every new leader writes all of KRaft's metadata to ZooKeeper before dual write goes on. It adds the partitions to the
# topic, and then sets their states, which do not exist, again and again
# (docs/facts/kraft.md#a-topic-that-grows-while-the-leader-changes).

STATES_NAMED = 3
"""How many partitions a message names."""


def missing_states(picture: Picture) -> Mapping[tuple[str, int], tuple[int, ...]]:
    """Those that KRaft has too, while dual write does not come on: (topic, index) -> replicas. None where it does, or where
    that cannot be seen."""
    log, found = log_left_behind(picture), picture.facts.stateless
    if log is None or not isinstance(found, Known):
        return {}
    topics = log.metadata.topics
    return {(topic, index): replicas for (topic, index), replicas in sorted(found.value.items())
            if topic in topics and index in topics[topic].partitions}


def create_states(picture: Picture) -> tuple[Effect, ...]:
    """They get the state that Kafka takes for a missing one; the leading controller writes KRaft's over it."""
    found = missing_states(picture)
    return (CreateStates(found, zookeeper_of(picture).controller_epoch),) if found else ()


def named_states(found: Iterable[tuple[str, int]]) -> str:
    """Some of them, for a message."""
    names = [f"{topic}-{index}" for topic, index in found]
    return ", ".join(names[:STATES_NAMED]) + (f" and {len(names) - STATES_NAMED} more" if len(names) > STATES_NAMED else "")
