"""Whether the group fits: members, the batch of a conversion, the record of a rebalance (docs/facts/groups.md#size)."""

from collections.abc import Iterator

from switchover.engine.gate import Verdict, check, fail, unknown, warn
from switchover.groups.gates.convergence import CAPACITY, OFFSETS_REPLICATED
from switchover.groups.gates.protocol import to_consumer
from switchover.groups.picture import Picture
from switchover.groups.preflight.group import OFFLINE
from switchover.groups.reading import group_of, offsets_topic_of
from switchover.groups.refusals import coordinator
from switchover.groups.slots import surplus
from switchover.kafka.group import Group
from switchover.reasons.groups import COORDINATOR_UNKNOWN, GROUP_TOO_LARGE, RECORD_TOO_LARGE
from switchover.reasons.notes import RECORD_LARGE
from switchover.reasons.preflight import NO_ROOM_FOR_BATCH

UNLIMITED = 2**31 - 1
PROTOCOLS = 2
"""Strategies that a client lists by default; each carries the whole metadata again into the conversion."""


def find_too_many_members(picture: Picture) -> Iterator[Verdict]:
    broker, found = coordinator(picture), group_of(picture)
    if broker is None:
        yield unknown(COORDINATOR_UNKNOWN, "the group's coordinator did not tell its settings", subject=found.name)
        return
    if picture.offline:
        return
    new, old = ("group.consumer.max.size", "group.max.size") if to_consumer(picture) else (
        "group.max.size", "group.consumer.max.size")
    here, batch = len(found.members), surplus(picture)
    for setting, why in ((new, "the coordinator would refuse"), (old, "in a rollback it would refuse")):
        limit = int(broker.settings.get(setting, UNLIMITED))
        if picture.spec.protocol is None or here + batch <= limit:
            continue
        if here > limit:
            yield fail(GROUP_TOO_LARGE, f"{here} members are more than {setting}: {why} to convert the group",
                       subject=setting, observed=here, threshold=limit,
                       unblocks=f"raise {setting} on every broker, or {OFFLINE}")
        else:
            yield fail(NO_ROOM_FOR_BATCH, f"{here} members and a batch of {batch} on top are more than {setting}: {why}"
                       " members of the batch", subject=setting, observed=here + batch, threshold=limit,
                       unblocks=f"make the batches of spec.rollout smaller, raise {setting} on every broker, or {OFFLINE}")


def conversion_bytes(found: Group) -> int:
    """The one batch that converts a group, in bytes (an estimate on the high side; docs/facts/groups.md#size)."""
    total = 0
    for member in found.members:
        topics = sum(len(topic) + 1 for topic in member.topics)
        owned = {each.topic for each in member.assigned}
        named = sum(len(topic) + 18 for topic in owned) + 4 * len(member.assigned)
        own = 3 * (len(found.name) + len(member.member_id) + 16) + len(member.client_id) + len(member.host) + 46
        total += own + topics + PROTOCOLS * (max(member.metadata, topics + len(member.topics)) + 40) + 2 * named
    return total


def rebalance_bytes(found: Group) -> int:
    """The one record that a rebalance of a classic group writes, in bytes."""
    return sum(member.metadata + member.assignment + 100 for member in found.members)


def find_too_large_records(picture: Picture) -> Iterator[Verdict]:
    found, topic = group_of(picture), offsets_topic_of(picture)
    online = to_consumer(picture) and not picture.offline
    needed = conversion_bytes(found) if online else rebalance_bytes(found)
    what = "the batch that converts the group" if online else "the record of a rebalance"
    limit = topic.max_message_bytes
    if needed > limit and not topic.compressed:
        yield fail(RECORD_TOO_LARGE, f"{what} is estimated at {needed} bytes: the coordinator would fail with"
                   " UNKNOWN_SERVER_ERROR", subject="__consumer_offsets max.message.bytes", observed=needed, threshold=limit,
                   unblocks="raise max.message.bytes of __consumer_offsets, list one strategy only in"
                            f" partition.assignment.strategy, or {OFFLINE}")
    elif needed > limit * 0.7:
        yield warn(RECORD_LARGE, f"{what} is estimated at {needed} bytes, {100 * needed // limit} % of what fits",
                   subject="__consumer_offsets max.message.bytes", observed=needed, threshold=limit,
                   cure="raise max.message.bytes of __consumer_offsets")


CHECKS = (
    check("GroupSize", find_too_many_members, "the group and a batch fit into the brokers' limits"),
    check("RecordSize", find_too_large_records, "the group's records fit into __consumer_offsets"),
    CAPACITY,
    OFFSETS_REPLICATED,
)
