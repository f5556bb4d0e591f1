"""Who takes part: every pod of ours as the kind of consumer that it is to be, and nobody else."""

from switchover.engine.gate import Gate, Verdict, fail, passed, wait
from switchover.groups.coordination.members import Consumer, Members
from switchover.groups.gates.membership import (
    JOIN_SECONDS,
    SESSION_SECONDS,
    judge_strangers,
    new_pods,
    no_member_to_be,
    restarts,
)
from switchover.groups.picture import TARGET, Picture
from switchover.groups.reading import members_of, pods_of, samples
from switchover.kubernetes.members import MemberPod
from switchover.reasons.groups import MEMBER_MISSING, MEMBERS_NOT_MOVED, NOT_A_MEMBER, WRONG_CONSUMER
from switchover.text.command import command

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
            return restarts(pod)
        if kinds and wanted not in kinds and up > JOIN_SECONDS:
            return fail(WRONG_CONSUMER, f"pod {pod.name} takes part as {kinds[0]}", subject=pod.name, observed=kinds[0],
                        threshold=wanted, unblocks="correct the change in spec.workloads, and begin again after a rollback")
        if not kinds and up > JOIN_SECONDS:
            return fail(NOT_A_MEMBER, f"pod {pod.name} is no member of group {picture.spec.group}", subject=pod.name,
                        observed=f"Ready for {up:.0f} s", threshold=f"a member within {JOIN_SECONDS:.0f} s",
                        unblocks=f"look at {command('kubectl logs {}', pod.name)}: its group id and, of all but"
                                 " KafkaConsumers, its zookeeper.connect must be those of spec, chroot included, and its"
                                 " host name the pod's")
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
    strangers = [each for pod, ids in members.by_pod.items() if pod not in ours for each in ids]
    strangers += [f"{member.client_id} at {member.host}" for member in members.kafka_consumers
                  if member.member_id not in known]
    return judge_strangers(picture.spec.group, strangers)


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
