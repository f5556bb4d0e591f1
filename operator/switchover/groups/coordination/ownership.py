"""Whether the group has settled under whoever coordinates it, owns every partition once, and goes on."""

from switchover.coordination.mode import Mode
from switchover.engine.gate import Gate, Verdict, passed, wait
from switchover.groups.coordination.members import Consumer, Members, pod_of
from switchover.groups.gates.convergence import UNOWNED_SECONDS, not_stable
from switchover.groups.gates.lag import progressed
from switchover.groups.picture import Picture
from switchover.groups.reading import members_of, offsets_of, partitions_of, pods_of, samples
from switchover.kafka.group import GroupState
from switchover.kubernetes.members import MemberPod
from switchover.reasons.groups import (
    MALFORMED_REGISTRATION,
    MEMBER_BEHIND,
    MODES_DIFFER,
    NOTHING_SUBSCRIBED,
    OWNED_TWICE,
    OWNERS_UNSETTLED,
    PARTITIONS_UNOWNED,
)
from switchover.shared.partition import TopicPartition


def check_converged(picture: Picture) -> Verdict:
    """Who owns what is what all members computed from ZooKeeper, or what Kafka's coordinator assigned them."""
    members = members_of(picture)
    for consumer_id, words, way in members.malformed:
        return wait(MALFORMED_REGISTRATION, words, subject=consumer_id, unblocks=way)
    if len(members.followed) > 1:
        return wait(MODES_DIFFER, f"some members of group {picture.spec.group} follow ZooKeeper and some Kafka",
                    subject=picture.spec.group, observed="both", threshold="one", unblocks="all follow the mode of now")
    return _by_kafka(picture, members) if members.followed == {Mode.KAFKA} else _by_zookeeper(picture, members)


def _by_zookeeper(picture: Picture, members: Members) -> Verdict:
    assert picture.spec.coordination is not None
    if members.agreeing(picture.spec.coordination.assignment_strategy):
        return passed("every partition is owned as the members compute it")
    owned = len(members.owners)
    return wait(OWNERS_UNSETTLED, f"the owner nodes of group {picture.spec.group} are not what its members compute",
                subject=picture.spec.group, observed=f"{owned} partitions owned", threshold="the assignment of the strategy",
                unblocks="the members rebalance: 10 s are usual, 20 s after one was killed; an old consumer that gave up"
                         " after four attempts wakes with the next change of members")


def _by_kafka(picture: Picture, members: Members) -> Verdict:
    group = members.kafka
    if group.state is not GroupState.STABLE:
        return not_stable(group)
    assigned = {member.client_id: member.assigned for member in group.members}
    for consumer_id, told in sorted(members.world.acknowledgements.items()):
        owned = None if told is None else told.owned
        if owned is None or owned != assigned.get(consumer_id, frozenset()):
            return wait(MEMBER_BEHIND, f"{consumer_id} does not hold what Kafka assigns it yet", subject=consumer_id,
                        observed=len(owned or ()), threshold=len(assigned.get(consumer_id, ())), unblocks="it follows")
    return passed(f"group {group.name} is stable, and its migration-enabled members hold what they are assigned")


def check_covered(picture: Picture) -> Verdict:
    """Every partition has exactly one owner: a session that holds its node, or a KafkaConsumer."""
    members = members_of(picture)
    wanted = members.expected(partitions_of(picture))
    if twice := sorted(each for each, owners in members.owners.items() if len(owners) > 1):
        return wait(OWNED_TWICE, f"{twice[0]} is held by {' and '.join(members.owners[twice[0]])}", subject=str(twice[0]),
                    observed=len(twice), threshold=0, unblocks="the members settle; if not, stop one of the two")
    if orphans := sorted(wanted - members.owners.keys()):
        return wait(PARTITIONS_UNOWNED, f"{len(orphans)} partitions of group {picture.spec.group} have no owner,"
                    f" {orphans[0]} first",
                    subject=str(orphans[0]), observed=len(orphans), threshold=0, unblocks="the members settle")
    if not wanted and members.kafka_consumers and members.kafka.state is not GroupState.STABLE:
        return not_stable(members.kafka)               # it tells no member's topics meanwhile
    if not wanted:
        return wait(NOTHING_SUBSCRIBED, f"group {picture.spec.group} subscribes to no topic that exists",
                    subject=picture.spec.group, unblocks="its topics exist")
    return passed(f"{len(wanted)} partitions have one owner each")


def owned_by(picture: Picture, members: Members, pod: MemberPod, consumer: Consumer) -> frozenset[TopicPartition]:
    """The partitions of a pod's consumer."""
    if consumer is Consumer.KAFKA:
        return frozenset().union(*(member.assigned for member in picture.kafka_consumers_of(pod)))
    return frozenset(partition for partition, owners in members.owners.items()
                     if pod.name in {pod_of(picture.spec.group, each) for each in owners})


def check_progressed(picture: Picture) -> Verdict:
    """Every partition that a new pod owns, and that has records, has moved on since it owns it."""
    found, members = offsets_of(picture), members_of(picture)
    owned: dict[str, frozenset[TopicPartition]] = {}
    for _, mode, pod in pods_of(picture):
        consumer = picture.consumer(mode) if mode and mode == picture.moved_to else None
        if consumer is not None:
            owned[pod.name] = owned_by(picture, members, pod, consumer)
    return progressed(found, members.generation, owned)


CONVERGED: Gate[Picture] = Gate("Converged", check_converged, samples=samples)
COVERED: Gate[Picture] = Gate("Covered", check_covered, samples=samples)
COVERAGE_KEPT: Gate[Picture] = Gate("CoverageKept", check_covered, patience=lambda _: UNOWNED_SECONDS)
PROGRESSED: Gate[Picture] = Gate("Progressed", check_progressed)
