"""Whether the group has one coordinator, which can take what the step adds
(docs/facts/coordination.md#the-coordinators-limits)."""

from switchover.engine.gate import Gate, Verdict, passed, seen, unknown, wait
from switchover.groups.facts import Need
from switchover.groups.picture import Picture
from switchover.groups.reading import group_of, offsets_topic_of
from switchover.groups.slots import surplus
from switchover.reasons.groups import (
    COORDINATOR_FULL,
    COORDINATOR_LOAD_UNKNOWN,
    COORDINATOR_UNKNOWN,
    OFFSETS_UNDER_REPLICATED,
    TWO_COORDINATORS,
)

TWO_SECONDS = 30.0
"""How long a broker may take to learn that another one coordinates the group: after a pause of its process, say."""


def check_one(picture: Picture) -> Verdict:
    """One broker answers for the group: members of two coordinators would own the same partitions."""
    name = picture.spec.group
    found = seen(picture.facts.coordinators, COORDINATOR_UNKNOWN, name)
    if not found:
        return unknown(COORDINATOR_UNKNOWN, f"no broker answers for group {name}: its coordinator moves", subject=name)
    brokers = sorted(found)
    if len(brokers) > 1:
        told = " and ".join(f"broker {each}" for each in brokers)
        return wait(TWO_COORDINATORS, f"{told} answer for group {name}: members of each may own the same partitions",
                    subject=name, observed=", ".join(map(str, brokers)), threshold="one broker",
                    unblocks="restart those that do not lead the group's partition of __consumer_offsets")
    return passed(f"broker {brokers[0]} alone answers for group {name}")


def check_capacity(picture: Picture) -> Verdict:
    """Members of all groups on the coordinator, and those that a batch adds, are within what one broker may coordinate."""
    group = group_of(picture)
    coordinated = seen(picture.facts.coordinated, COORDINATOR_LOAD_UNKNOWN, f"broker {group.coordinator}")
    held = coordinated.get(group.coordinator, 0)
    added = surplus(picture)
    limit = picture.spec.gates.max_consumers_per_coordinator
    if held + added > limit:
        return wait(COORDINATOR_FULL, f"broker {group.coordinator} coordinates {held} members, and a batch adds {added}",
                    subject=f"broker {group.coordinator}", observed=held + added, threshold=limit,
                    unblocks="smaller batches in spec.rollout, fewer groups on that broker (another group.id hashes"
                             " elsewhere, more brokers spread __consumer_offsets), or a higher maxConsumersPerCoordinator")
    return passed(f"broker {group.coordinator} coordinates {held} members; {added} more are within {limit}")


def check_offsets_replicated(picture: Picture) -> Verdict:
    """The group's own records are safe: a coordinator that fails over finds all of them."""
    found = offsets_topic_of(picture)
    if found.replicas_short:
        return wait(OFFSETS_UNDER_REPLICATED, f"{found.replicas_short} partitions of __consumer_offsets miss a"
                    " replica",
                    subject="__consumer_offsets", observed=found.replicas_short, threshold=0,
                    unblocks="the brokers catch up")
    return passed("every replica of __consumer_offsets is in sync")


ONE_COORDINATOR: Gate[Picture] = Gate("OneCoordinator", check_one, patience=lambda _: TWO_SECONDS)
CAPACITY: Gate[Picture] = Gate("CoordinatorCapacity", check_capacity, needs=(Need.LOAD,))
OFFSETS_REPLICATED: Gate[Picture] = Gate("OffsetsReplicated", check_offsets_replicated)
