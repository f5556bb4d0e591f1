"""Who takes part, and by which protocol: every pod of ours as a member, and nobody else."""

from collections.abc import Iterator, Sequence

from switchover.engine.gate import NAMED, Gate, Verdict, fail, passed, several, wait
from switchover.groups.picture import ORIGINAL, Picture
from switchover.groups.reading import fleet_of, group_of, pods_of, samples, why_refused
from switchover.kafka.group import GroupType, MemberProtocol
from switchover.kubernetes.members import MemberPod
from switchover.reasons.groups import (
    FOREIGN_MEMBERS,
    GROUP_FLIPPED_BACK,
    GROUP_NOT_CONVERTED,
    MEMBER_MISSING,
    MEMBERS_NOT_MOVED,
    NEW_POD_RESTARTS,
    NOT_A_MEMBER,
    POD_ENDING,
    POD_MODE_UNKNOWN,
    WRONG_PROTOCOL,
)
from switchover.text.command import kubectl

JOIN_SECONDS = 60.0
"""How long a Ready pod may take to become a member: a canary that is refused in silence never does."""
SESSION_SECONDS = 60.0
"""How long a member may stay whose pod was killed: sessions last 45 s by default, under the consumer protocol 60 s at most
(docs/facts/groups.md#clients). Until then a member without a pod may be such a one."""


def new_pods(picture: Picture) -> Iterator[tuple[str, MemberPod]]:
    """Pods of a mode that the migration brought, on the way there; in a rollback those of the original."""
    back = picture.position.direction == "Backward"
    for _, mode, pod in pods_of(picture):
        if mode and (mode == ORIGINAL) is back and not pod.terminating:
            yield mode, pod


def restarts(picture: Picture, pod: MemberPod) -> Verdict:
    """A new pod fails."""
    return fail(NEW_POD_RESTARTS, f"pod {pod.name} has restarted{f': {pod.trouble}' if pod.trouble else ''}",
                subject=pod.name, observed=f"{pod.restarts} restarts", threshold="none",
                unblocks="correct the change in spec.workloads, and begin again after a rollback; its last log: "
                         + kubectl(picture.namespace, "logs --previous {}", pod.name))


def no_member_to_be(mode: str, pod: MemberPod) -> Verdict | None:
    """Why a pod cannot be asked for as a member: nobody knows its template, or it is ending."""
    if not mode:
        return wait(POD_MODE_UNKNOWN, f"pod {pod.name} was made from a template that is not this migration's",
                    subject=pod.name, unblocks="it is replaced; or restore the template")
    if pod.terminating:
        return wait(POD_ENDING, f"pod {pod.name} is ending", subject=pod.name, unblocks="Kubernetes ends it")
    return None


MESHES = {
    "Istio": "traffic.sidecar.istio.io/excludeInboundPorts",
    "Linkerd": "config.linkerd.io/skip-inbound-ports",
    "Kuma": "traffic.kuma.io/exclude-inbound-ports",
    "Consul": "consul.hashicorp.com/transparent-proxy-exclude-inbound-ports",
}
"""The annotation of a pod by which a mesh leaves ports of it alone."""


def _is_behind_a_sidecar(member: str) -> bool:
    """Whether its connections come from within the broker's own pod: Istio and Kuma hand them on from 127.0.0.6 and ::6."""
    host = member.rpartition(" at ")[2]
    return host.startswith("127.") or host in ("::1", "::6")


def judge_foreign(group: str, foreign: Sequence[str]) -> Verdict:
    """What members of a group that run in no pod of ours mean."""
    if not foreign:
        return passed("every member runs in a pod of the managed workloads")
    unblocks = ("if their pods have just gone, their sessions end; else add their workload to spec.workloads before the"
                " migration, or stop them")
    if hidden := [member for member in foreign if _is_behind_a_sidecar(member)]:
        host = hidden[0].rpartition(" at ")[2]
        marks = ", ".join(f"{mesh}: {mark}" for mesh, mark in MESHES.items())
        unblocks = (f"{host} is a sidecar in the broker's own pod, which hides who is behind it: annotate the brokers' pods"
                    f" so that their mesh leaves the ports of the listeners alone ({marks})")
    return wait(FOREIGN_MEMBERS, f"members of group {group} run in no pod of spec.workloads: {several(foreign)}; a"
                " migration cannot end while they stay as they are", subject=", ".join(foreign[:NAMED]),
                observed=len(foreign), threshold=0, unblocks=unblocks)


def check_new_pods_join(picture: Picture) -> Verdict:
    """Shut only by what will not heal: a pod that fails, that stays out of the group, or joins by the wrong protocol."""
    group = group_of(picture)
    for mode, pod in new_pods(picture):
        members, wanted = picture.members_of(pod), picture.protocol(mode)
        up = picture.now - pod.started_at if pod.ready and pod.started_at is not None else 0.0
        refused = "" if members else why_refused(picture, wanted)
        if pod.restarts > 0 and not refused:
            return restarts(picture, pod)
        wrong = [member for member in members if member.protocol is not wanted]
        if wrong and up > JOIN_SECONDS:
            return fail(WRONG_PROTOCOL, f"pod {pod.name} is a member by the {wrong[0].protocol.lower()} protocol",
                        subject=pod.name, observed=wrong[0].protocol, threshold=wanted,
                        unblocks="set the other group.protocol in the change of spec.workloads")
        if not members and (pod.restarts > 0 or up > JOIN_SECONDS):
            seen = f"{pod.restarts} restarts" if pod.restarts > 0 else f"Ready for {up:.0f} s"
            cause = refused or "no cause is known; it may not have connected at all"
            return fail(NOT_A_MEMBER, f"pod {pod.name} is no member of group {group.name}: {cause}", subject=pod.name,
                        observed=seen, threshold=f"a member within {JOIN_SECONDS:.0f} s",
                        unblocks="clients of librdkafka before 2.15 say nothing when a broker refuses them; its log: "
                                 + kubectl(picture.namespace, "logs {}", pod.name))
    return passed("no new pod stays out of the group")


def check_pods_are_members(picture: Picture) -> Verdict:
    """Every pod of the managed workloads is a member by the protocol of its mode, and every member has its pod."""
    group_of(picture)
    for _, mode, pod in pods_of(picture):
        if (found := no_member_to_be(mode, pod)) is not None:
            return found
        wanted = picture.protocol(mode)
        members = picture.members_of(pod)
        if not any(member.protocol is wanted for member in members):
            seen = members[0].protocol if members else "no member"
            return wait(MEMBER_MISSING, f"pod {pod.name} is not a member by the {wanted.lower()} protocol yet",
                        subject=pod.name, observed=seen, threshold=wanted, unblocks="it joins the group")
    return passed("every pod is a member")


def check_no_foreign_members(picture: Picture) -> Verdict:
    group = group_of(picture)
    fleet_of(picture)
    return judge_foreign(group.name, [f"{member.client_id} at {member.host}" for member in picture.foreign_members()])


def check_all_moved(picture: Picture) -> Verdict:
    """At the end of the way: nobody takes part by the other protocol."""
    group = group_of(picture)
    if picture.spec.protocol is None:
        return passed("the protocol stays as it is")
    wanted = MemberProtocol(picture.spec.protocol.to)
    others = [member for member in group.members if member.protocol is not wanted]
    if others:
        return wait(MEMBERS_NOT_MOVED, f"{len(others)} of {len(group.members)} members still use the"
                    f" {others[0].protocol.lower()} protocol",
                    subject=others[0].client_id, observed=len(others), threshold=0, unblocks="their pods are replaced")
    if wanted is MemberProtocol.CLASSIC and group.type is not GroupType.CLASSIC:
        return wait(GROUP_NOT_CONVERTED, f"group {group.name} is still held by the consumer protocol", subject=group.name,
                    observed=group.type, threshold=GroupType.CLASSIC,
                    unblocks="the coordinator converts it when its last member of that protocol is gone")
    return passed("every member takes part by the new protocol")


def check_new_members_there(picture: Picture) -> Verdict:
    """While members of the new protocol should be there, one is: else the group flips back with the next rebalance."""
    group = group_of(picture)
    fleet_of(picture)
    if picture.spec.protocol is None or picture.spec.protocol.to == "Classic":
        return passed("no conversion to keep")
    joined = [member for member in group.members if member.protocol is MemberProtocol.CONSUMER]
    wanted = [pod for _, mode, pod in picture.pods()
              if mode and picture.protocol(mode) is MemberProtocol.CONSUMER and pod.ready and not pod.terminating]
    if joined and group.type is not GroupType.CONSUMER:
        return wait(GROUP_NOT_CONVERTED, f"group {group.name} is of type {group.type}", subject=group.name,
                    observed=group.type, threshold=GroupType.CONSUMER, unblocks="wait until the coordinator converts it")
    if wanted and not joined:
        return wait(GROUP_FLIPPED_BACK, f"no member of group {group.name} takes part by the consumer protocol",
                    subject=group.name, observed=group.type, threshold=GroupType.CONSUMER,
                    unblocks="a new pod joins; with two canaries one restart does not flip the group back")
    return passed("the group is held by the protocol that it should be")


NEW_PODS_JOIN: Gate[Picture] = Gate("NewPodsJoin", check_new_pods_join)
PODS_ARE_MEMBERS: Gate[Picture] = Gate("PodsAreMembers", check_pods_are_members, samples=samples)
NO_FOREIGN_MEMBERS: Gate[Picture] = Gate("NoForeignMembers", check_no_foreign_members, grace=SESSION_SECONDS)
ALL_MOVED: Gate[Picture] = Gate("AllMoved", check_all_moved, samples=samples)
GROUP_CONVERTED: Gate[Picture] = Gate("GroupConverted", check_new_members_there, samples=samples)
