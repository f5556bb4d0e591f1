"""Whether old consumers would find the brokers, and Kafka's coordinator can take the group.

Old consumers look into `/brokers/ids`, and KRaft writes none: where a broker runs on KRaft, there is no rollback to them.
Each pod brings a member along (docs/facts/coordination.md#the-coordinators-limits).
"""

from collections.abc import Iterable, Iterator

from switchover.answers.observed import Known, Observed
from switchover.engine.gate import Gate, Verdict, complete, fail, gravest, passed, seen, unknown, wait
from switchover.groups.coordination.members import Members
from switchover.groups.facts import Need
from switchover.groups.picture import Picture
from switchover.groups.reading import coordinator, members_of, raise_message_bytes
from switchover.groups.slots import surplus
from switchover.reasons.cluster import BROKERS_ON_KRAFT, BROKERS_UNKNOWN, ZOOKEEPER_UNKNOWN
from switchover.reasons.groups import (
    COORDINATOR_FULL,
    COORDINATOR_LOAD_UNKNOWN,
    GROUP_TOO_LARGE,
    OFFSETS_TOPIC_UNKNOWN,
    RECORD_TOO_LARGE,
)


def check_brokers_visible(listed: Observed[Iterable[int]], registered: Observed[Iterable[int]]) -> Verdict:
    """Consumers that ZooKeeper coordinates find every broker, so a coordination may go back to ZooKeeper.

    `listed` is what the Kafka protocol lists, `registered` what `/brokers/ids` holds. One that restarts in ZooKeeper mode
    may be missing there for a moment.
    """
    brokers = frozenset(seen(listed, BROKERS_UNKNOWN, "brokers"))
    known = seen(registered, ZOOKEEPER_UNKNOWN, "/brokers/ids")
    if not brokers:
        return unknown(BROKERS_UNKNOWN, "Kafka lists no broker", subject="brokers")
    if invisible := sorted(brokers.difference(known)):
        named = ", ".join(map(str, invisible))
        return fail(BROKERS_ON_KRAFT, f"broker {named} is not registered in ZooKeeper, as on KRaft: consumers that"
                    " ZooKeeper coordinates do not find it", subject=f"broker {named}",
                    observed=f"{len(invisible)} of {len(brokers)} brokers", threshold="0",
                    unblocks="roll the KafkaMigration back until every broker runs in ZooKeeper mode. After Finalize that is"
                    " not possible: these consumers can only become KafkaConsumers")
    return passed("every broker is registered in ZooKeeper")


RESTART = 60.0
"""Seconds for which a broker in ZooKeeper mode may be missing in ZooKeeper: it restarts."""


def check_brokers(picture: Picture) -> Verdict:
    """Every broker that Kafka lists is registered in ZooKeeper."""
    world = picture.facts.zookeeper
    return check_brokers_visible(Known(picture.facts.brokers, picture.now),
                                 Known(world.value.brokers, world.at) if isinstance(world, Known) else world)


BROKERS_VISIBLE: Gate[Picture] = Gate("BrokersVisible", check_brokers, grace=RESTART)


MEMBER_BYTES = 200
"""Assumed of one member's ids, host and settings in the record of a rebalance (docs/facts/groups.md#size)."""


def find_no_room(picture: Picture) -> Iterator[Verdict]:
    members = members_of(picture)
    added = len(picture.pods()) + surplus(picture)
    yield from _full(picture, members, added)
    yield from _too_large(picture, members, added)


def _full(picture: Picture, members: Members, added: int) -> Iterator[Verdict]:
    broker = f"broker {members.kafka.coordinator}"
    coordinated, broker_settings = picture.facts.coordinated, coordinator(picture)
    if not isinstance(coordinated, Known):
        yield unknown(COORDINATOR_LOAD_UNKNOWN, coordinated.why, subject=broker)
        return
    others = coordinated.value.get(members.kafka.coordinator, 0) - len(members.kafka.members)
    limit = picture.spec.gates.max_consumers_per_coordinator
    if others + added > limit:
        yield wait(COORDINATOR_FULL, f"{broker} coordinates {others} members of other groups, and this one will have"
                                      f" {added}",
                   subject=broker, observed=others + added, threshold=limit,
                   unblocks="fewer groups on that broker (another group.id hashes elsewhere, more brokers spread"
                            " __consumer_offsets), or a higher maxConsumersPerCoordinator")
    largest = int(broker_settings.settings.get("group.max.size", 2**31 - 1)) if broker_settings is not None else added
    if added > largest:
        yield fail(GROUP_TOO_LARGE, f"with a batch on top the group will have {added} members: more than group.max.size",
                   subject="group.max.size", observed=added, threshold=largest,
                   unblocks="raise group.max.size on every broker, or make the batches of spec.rollout smaller")


def _too_large(picture: Picture, members: Members, added: int) -> Iterator[Verdict]:
    topic, partitions = picture.facts.offsets_topic, picture.facts.partitions
    if not isinstance(topic, Known) or not isinstance(partitions, Known):
        yield unknown(OFFSETS_TOPIC_UNKNOWN, topic.why if not isinstance(topic, Known) else "partitions are not known yet",
                      subject="__consumer_offsets")
        return
    names = sum(len(each) + 8 for each in members.topics())
    needed = added * (MEMBER_BYTES + 2 * names) + 4 * len(members.expected(partitions.value))
    limit = topic.value.max_message_bytes
    if needed > limit and not topic.value.compressed:
        yield fail(RECORD_TOO_LARGE, f"the record of a rebalance is estimated at {needed} bytes: the coordinator would fail"
                   " with UNKNOWN_SERVER_ERROR",
                   subject="__consumer_offsets max.message.bytes", observed=needed, threshold=limit,
                   unblocks=f"make room for it: {raise_message_bytes(picture, needed)}")


CAPACITY: Gate[Picture] = Gate("CoordinatorCapacity", lambda picture: gravest(
    complete(find_no_room, picture), "the coordinator can take the group"), needs=(Need.LOAD,))
