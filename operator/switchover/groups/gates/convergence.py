"""Whether the group has settled, owns every partition once, and has one coordinator with room for what the step adds
(docs/facts/coordination.md#the-coordinators-limits).
"""

from collections import Counter
from collections.abc import Mapping

from switchover.engine.gate import Gate, Verdict, fail, passed, seen, unknown, wait
from switchover.groups.facts import Need
from switchover.groups.picture import Picture
from switchover.groups.reading import group_of, offsets_topic_of, partitions_of, samples
from switchover.groups.slots import surplus
from switchover.kafka.group import LEFT, NO_EPOCH, Group, GroupState, GroupType
from switchover.lag.group import TopicPartition
from switchover.reasons.groups import (
    COORDINATOR_FULL,
    COORDINATOR_LOAD_UNKNOWN,
    COORDINATOR_UNKNOWN,
    EPOCH_CHURN,
    GROUP_NOT_STABLE,
    MEMBER_BEHIND,
    NOTHING_SUBSCRIBED,
    OFFSETS_UNDER_REPLICATED,
    OFFSETS_UNKNOWN,
    OWNED_TWICE,
    PARTITIONS_UNOWNED,
    TWO_COORDINATORS,
)

UNOWNED_SECONDS = 60.0
"""How long partitions may have no owner: a moving one has none for a heartbeat or two (5 s each), a stuck group for ever."""
CHURN_SECONDS = 60.0
CHURN = 3
"""So many new epochs within that time, while no pod is replaced, are members that disagree and rebalance for ever."""


def not_stable(group: Group) -> Verdict:
    """The group rebalances, or has no members."""
    return wait(GROUP_NOT_STABLE, f"group {group.name} is {group.state}", subject=group.name, observed=group.state,
                threshold=GroupState.STABLE, unblocks="its members take over the new assignment")


def check_converged(picture: Picture) -> Verdict:
    """Stable, which of a mixed group means every member, old and new, at the group's epoch
    (docs/facts/groups.md#states-and-epochs)."""
    group = group_of(picture)
    if group.state is not GroupState.STABLE:
        return not_stable(group)
    for member in group.members:
        if group.type is GroupType.CONSUMER and member.epoch not in (group.epoch, LEFT):
            return wait(MEMBER_BEHIND, f"{member.client_id} at {member.host} is not at its group's epoch yet",
                        subject=member.client_id, observed=member.epoch, threshold=group.epoch, unblocks="it follows")
        if member.assigned != member.target:
            return wait(MEMBER_BEHIND, f"{member.client_id} at {member.host} does not own its new partitions yet",
                        subject=member.client_id, observed=len(member.assigned), threshold=len(member.target),
                        unblocks="it follows")
    return passed(f"group {group.name} is stable with {len(group.members)} members")


def expected(group: Group, partitions: Mapping[str, int]) -> frozenset[TopicPartition]:
    """Every partition of every topic that is subscribed by name, or owned by a member that subscribes by a pattern."""
    topics = {topic for member in group.members for topic in member.topics}
    topics |= {each.topic for member in group.members if member.regex for each in member.target}
    return frozenset(TopicPartition(topic, number) for topic in topics for number in range(partitions.get(topic, 0)))


def check_covered(picture: Picture) -> Verdict:
    """Every partition has exactly one owner."""
    group = group_of(picture)
    partitions = partitions_of(picture)
    if group.type is GroupType.CLASSIC and group.state is not GroupState.STABLE:
        return wait(GROUP_NOT_STABLE, f"group {group.name} is {group.state}: no member has an assignment meanwhile",
                    subject=group.name, observed=group.state, threshold=GroupState.STABLE,
                    unblocks="wait until the rebalance ends")
    owners = Counter(each for member in group.members for each in member.assigned)
    wanted = expected(group, partitions)
    if twice := sorted(each for each, count in owners.items() if count > 1):
        both = " and ".join(f"{each.client_id} at {each.host}" for each in group.members if twice[0] in each.assigned)
        return wait(OWNED_TWICE, f"{twice[0]} has two owners in group {group.name}", subject=str(twice[0]),
                    observed=len(twice), threshold=0, unblocks=f"the members settle; if not, restart one of {both}")
    if orphans := sorted(wanted - owners.keys()):
        return wait(PARTITIONS_UNOWNED, f"{len(orphans)} partitions of group {group.name} have no owner, {orphans[0]}"
                    " first",
                    subject=str(orphans[0]), observed=len(orphans), threshold=0, unblocks="wait until the members settle")
    if not wanted:
        return wait(NOTHING_SUBSCRIBED, f"group {group.name} subscribes to no topic that exists", subject=group.name,
                    unblocks="create its topics, or correct its subscription")
    return passed(f"{len(wanted)} partitions have one owner each")


def check_calm(picture: Picture) -> Verdict:
    """No rebalance after rebalance while nothing is replaced."""
    found, batch = seen(picture.facts.samples, OFFSETS_UNKNOWN, picture.spec.group), picture.position.batch
    since = max(picture.now - CHURN_SECONDS, batch.proven if batch is not None and batch.proven is not None else picture.now)
    epochs = {sample.epoch for sample in found if sample.at >= since and sample.epoch != NO_EPOCH}
    if len(epochs) > CHURN:
        return fail(EPOCH_CHURN, f"group {picture.spec.group} rebalances again and again although no pod is replaced",
                    subject=picture.spec.group, observed=f"{len(epochs)} epochs in {CHURN_SECONDS:.0f} s",
                    threshold=f"at most {CHURN}",
                    unblocks="look for members that leave and return, or that see other topics than the rest")
    return passed("the group does not rebalance without a reason")


CONVERGED: Gate[Picture] = Gate("Converged", check_converged, samples=samples)
COVERED: Gate[Picture] = Gate("Covered", check_covered, samples=samples)
COVERAGE_KEPT: Gate[Picture] = Gate("CoverageKept", check_covered, patience=lambda _: UNOWNED_SECONDS)
CALM: Gate[Picture] = Gate("Calm", check_calm)


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
        named = " and ".join(f"broker {each}" for each in brokers)
        return wait(TWO_COORDINATORS, f"{named} answer for group {name}: members of each may own the same partitions",
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
                    unblocks="wait until the replicas have caught up")
    return passed("every replica of __consumer_offsets is in sync")


ONE_COORDINATOR: Gate[Picture] = Gate("OneCoordinator", check_one, patience=lambda _: TWO_SECONDS)
CAPACITY: Gate[Picture] = Gate("CoordinatorCapacity", check_capacity, needs=(Need.LOAD,))
OFFSETS_REPLICATED: Gate[Picture] = Gate("OffsetsReplicated", check_offsets_replicated)
