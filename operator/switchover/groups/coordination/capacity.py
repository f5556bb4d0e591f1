"""Whether Kafka's coordinator can take the group (docs/facts/coordination.md#the-coordinators-limits): each pod brings
a member along."""

from collections.abc import Iterator

from switchover.answers.observed import Known
from switchover.engine.gate import Gate, Verdict, complete, fail, gravest, unknown, wait
from switchover.groups.coordination.members import Members
from switchover.groups.facts import Need
from switchover.groups.picture import Picture
from switchover.groups.reading import members_of
from switchover.groups.refusals import coordinator
from switchover.groups.slots import surplus
from switchover.reasons.groups import (
    COORDINATOR_FULL,
    COORDINATOR_LOAD_UNKNOWN,
    GROUP_TOO_LARGE,
    OFFSETS_TOPIC_UNKNOWN,
    RECORD_TOO_LARGE,
)

MEMBER_BYTES = 200
"""Assumed of one member's ids, host and settings in the record of a rebalance (docs/facts/groups.md#size)."""


def find_no_room(picture: Picture) -> Iterator[Verdict]:
    members = members_of(picture)
    added = len(picture.pods()) + surplus(picture)
    yield from _full(picture, members, added)
    yield from _too_large(picture, members, added)


def _full(picture: Picture, members: Members, added: int) -> Iterator[Verdict]:
    broker = f"broker {members.kafka.coordinator}"
    coordinated, told = picture.facts.coordinated, coordinator(picture)
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
    largest = int(told.settings.get("group.max.size", 2**31 - 1)) if told is not None else added
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
                   unblocks="raise max.message.bytes of __consumer_offsets")


CAPACITY: Gate[Picture] = Gate("CoordinatorCapacity", lambda picture: gravest(
    complete(find_no_room, picture), "the coordinator can take the group"), needs=(Need.LOAD,))
