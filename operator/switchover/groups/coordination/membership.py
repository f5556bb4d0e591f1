"""Who takes part, and what they own: every pod of ours as the kind of consumer that it is to be, nobody else, settled under
whoever coordinates it.
"""

from switchover.coordination.mode import Mode
from switchover.engine.gate import Gate, Verdict, fail, passed, wait
from switchover.groups.coordination.members import Consumer, Members, pod_of
from switchover.groups.gates.convergence import UNOWNED_SECONDS, not_stable
from switchover.groups.gates.lag import progressed
from switchover.groups.gates.membership import (
    JOIN_SECONDS,
    SESSION_SECONDS,
    judge_foreign,
    new_pods,
    no_member_to_be,
    restarts,
)
from switchover.groups.picture import TARGET, Picture
from switchover.groups.reading import members_of, offsets_of, partitions_of, pods_of, samples
from switchover.kafka.group import GroupState
from switchover.kubernetes.members import MemberPod
from switchover.reasons.groups import (
    MALFORMED_REGISTRATION,
    MEMBER_BEHIND,
    MEMBER_MISSING,
    MEMBERS_NOT_MOVED,
    MODES_DIFFER,
    NOT_A_MEMBER,
    NOTHING_SUBSCRIBED,
    OWNED_TWICE,
    OWNERS_UNSETTLED,
    PARTITIONS_UNOWNED,
    WRONG_CONSUMER,
)
from switchover.shared.partition import TopicPartition
from switchover.text.command import kubectl

_KNOWN_TO_ZOOKEEPER = (Consumer.OLD, Consumer.ENABLED)


def kinds_in(picture: Picture, members: Members, pod: MemberPod) -> tuple[Consumer, ...]:
    """What runs in a pod, as far as it takes part."""
    found = [kind for kind in _KNOWN_TO_ZOOKEEPER if members.is_registered(pod.name, kind)]
    return (*found, *((Consumer.KAFKA,) if picture.kafka_consumers_of(pod) else ()))


def check_new_pods_join(picture: Picture) -> Verdict:
    """Shut only by what will not heal: a pod that fails, that stays out of the group, or is another kind of consumer."""
    members = members_of(picture)
    for mode, pod in new_pods(picture):
        kinds, wanted = kinds_in(picture, members, pod), picture.consumer(mode)
        up = picture.now - pod.started_at if pod.ready and pod.started_at is not None else 0.0
        if pod.restarts > 0:
            return restarts(picture, pod)
        if kinds and wanted not in kinds and up > JOIN_SECONDS:
            return fail(WRONG_CONSUMER, f"pod {pod.name} takes part as {kinds[0]}", subject=pod.name, observed=kinds[0],
                        threshold=wanted, unblocks="correct the change in spec.workloads, and begin again after a rollback")
        if not kinds and up > JOIN_SECONDS:
            return fail(NOT_A_MEMBER, f"pod {pod.name} is no member of group {picture.spec.group}", subject=pod.name,
                        observed=f"Ready for {up:.0f} s", threshold=f"a member within {JOIN_SECONDS:.0f} s",
                        unblocks="its group id and, of all but KafkaConsumers, its zookeeper.connect must be those of spec,"
                                 " chroot included, and its host name the pod's; its log: "
                                 + kubectl(picture.namespace, "logs {}", pod.name))
    return passed("no new pod stays out of the group")


def check_pods_are_members(picture: Picture) -> Verdict:
    """Every pod takes part as the kind of consumer that its mode is."""
    members = members_of(picture)
    for _, mode, pod in pods_of(picture):
        if (found := no_member_to_be(mode, pod)) is not None:
            return found
        if not picture.takes_part(pod, mode):
            kinds = kinds_in(picture, members, pod)
            return wait(MEMBER_MISSING, f"pod {pod.name} does not take part as {picture.consumer(mode)} yet",
                        subject=pod.name, observed=kinds[0] if kinds else "no member", threshold=picture.consumer(mode),
                        unblocks="it joins the group; its host name must be the pod's name")
    return passed("every pod is a member")


def check_no_foreign_members(picture: Picture) -> Verdict:
    members = members_of(picture)
    ours = {pod.name for _, _, pod in pods_of(picture)}
    known = {member.member_id for _, _, pod in picture.pods() for member in picture.kafka_consumers_of(pod)}
    foreign = [each for pod, ids in members.by_pod.items() if pod not in ours for each in ids]
    foreign += [f"{member.client_id} at {member.host}" for member in members.kafka_consumers
                  if member.member_id not in known]
    return judge_foreign(picture.spec.group, foreign)


def check_all_moved(picture: Picture) -> Verdict:
    """At the end of the way: every member is of the kind that the migration ends with."""
    members = members_of(picture)
    last, world = picture.consumer(TARGET), members.world
    others = {Consumer.OLD: world.old, Consumer.ENABLED: tuple(sorted(members.enabled)),
              Consumer.KAFKA: tuple(member.client_id for member in members.kafka_consumers)}
    for kind, found in others.items():
        if kind is not last and found:
            return wait(MEMBERS_NOT_MOVED, f"{found[0]} still takes part as {kind}", subject=found[0], observed=len(found),
                        threshold=0, unblocks="they are replaced; one that stays runs outside of spec.workloads: stop it")
    return passed(f"every member is {last}")


NEW_PODS_JOIN: Gate[Picture] = Gate("NewPodsJoin", check_new_pods_join)
PODS_ARE_MEMBERS: Gate[Picture] = Gate("PodsAreMembers", check_pods_are_members, samples=samples)
NO_FOREIGN_MEMBERS: Gate[Picture] = Gate("NoForeignMembers", check_no_foreign_members, grace=SESSION_SECONDS)
ALL_MOVED: Gate[Picture] = Gate("AllMoved", check_all_moved, samples=samples)


def check_converged(picture: Picture) -> Verdict:
    """Who owns what is what all members computed from ZooKeeper, or what Kafka's coordinator assigned them."""
    members = members_of(picture)
    for consumer_id, why, way in members.malformed:
        return wait(MALFORMED_REGISTRATION, why, subject=consumer_id, unblocks=way)
    if len(members.followed) > 1:
        return wait(MODES_DIFFER, f"some members of group {picture.spec.group} follow ZooKeeper and some Kafka",
                    subject=picture.spec.group, observed="both", threshold="one",
                    unblocks="all members follow the current mode within seconds")
    return _by_kafka(picture, members) if members.followed == {Mode.KAFKA} else _by_zookeeper(picture, members)


def _by_zookeeper(picture: Picture, members: Members) -> Verdict:
    assert picture.spec.coordination is not None
    if members.agreeing(picture.spec.coordination.assignment_strategy):
        return passed("every partition is owned as the members compute it")
    owned = len(members.owners)
    return wait(OWNERS_UNSETTLED, f"the owner nodes of group {picture.spec.group} are not what its members compute",
                subject=picture.spec.group, observed=f"{owned} partitions owned", threshold="the assignment of the strategy",
                unblocks="wait until the members have rebalanced: 10 s are usual, 20 s after one was killed; an old"
                         " consumer that gave up after four attempts wakes with the next change of members")


def _by_kafka(picture: Picture, members: Members) -> Verdict:
    group = members.kafka
    if group.state is not GroupState.STABLE:
        return not_stable(group)
    assigned = {member.client_id: member.assigned for member in group.members}
    for consumer_id, answer in sorted(members.world.acknowledgements.items()):
        owned = None if answer is None else answer.owned
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
                    observed=len(twice), threshold=0,
                    unblocks="wait until the members settle; if they do not, stop one of the two")
    if orphans := sorted(wanted - members.owners.keys()):
        return wait(PARTITIONS_UNOWNED, f"{len(orphans)} partitions of group {picture.spec.group} have no owner,"
                    f" {orphans[0]} first",
                    subject=str(orphans[0]), observed=len(orphans), threshold=0, unblocks="wait until the members settle")
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
