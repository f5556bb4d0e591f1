"""What the new pods are given, as far as their variables and arguments show it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from switchover.engine.gate import Verdict, check, fail, several, warn
from switchover.groups.gates.protocol import to_consumer
from switchover.groups.picture import Picture
from switchover.groups.reading import group_of, workloads
from switchover.groups.slots import sizes
from switchover.groups.workloads import kinds
from switchover.groups.workloads.change import Unsupported, changed, container_of
from switchover.kubernetes.members import MemberPod, MemberWorkload
from switchover.reasons.notes import ONE_CANARY, PATTERN_MEANS_LESS, PATTERN_UNSUPPORTED, STATIC_MEMBERS_LEAVE_LATE
from switchover.reasons.preflight import FORBIDDEN_SETTING, STATIC_MEMBERS_IN_DEPLOYMENT

FORBIDDEN = ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy")
"""Settings with which no client of either family starts under the consumer protocol (docs/facts/groups.md#clients)."""
ONLY_CONSUMER = ("group.remote.assignor",)
"""Java does not start with it under the classic protocol."""
NOT_RE2 = re.compile(r"\(\?(?:[=!>]|<[=!])|\\[1-9]|[*+?}]\+")
"""Look-around, atomic groups, back-references, possessive quantifiers: RE2/J, by which brokers match, has none of them."""


def settings_in(container: Mapping[str, Any]) -> frozenset[str]:
    """Client settings that variables and arguments name: SESSION_TIMEOUT_MS, or session.timeout.ms=… in any text."""
    variables = {str(item["name"]).lower().replace("_", ".") for item in container.get("env", ()) if item.get("value")}
    texts = [str(item.get("value") or "") for item in container.get("env", ())] + list(map(str, container.get("args", ())))
    found = {key for key in (*FORBIDDEN, *ONLY_CONSUMER)
             if any(name.endswith(key) for name in variables)
             or any(re.search(rf"(^|[\s,;\"']){re.escape(key)}\s*[=:]", text) for text in texts)}
    return frozenset(found)


def find_forbidden_settings(picture: Picture) -> Iterator[Verdict]:
    if picture.spec.protocol is None:
        return
    forbidden = FORBIDDEN if to_consumer(picture) else ONLY_CONSUMER
    for source in workloads(picture):
        workload = picture.workload(source.name)
        try:
            _, container = container_of(changed(source.template, workload.container, workload.template), workload.container)
        except Unsupported:
            continue                                                  # a finding of its own
        for key in sorted(settings_in(container) & frozenset(forbidden)):
            yield fail(FORBIDDEN_SETTING, f"{source} would still set {key}, with which no client starts under the"
                       f" {'consumer' if to_consumer(picture) else 'classic'} protocol", subject=source.name, observed=key,
                       threshold="not set", unblocks="give that variable or argument an empty value in the spec.workloads"
                                                     f" entry of {source.name}")


def find_small_canary(picture: Picture) -> Iterator[Verdict]:
    found, canary = group_of(picture), sizes(picture)[0].pods
    if to_consumer(picture) and canary < 2 <= len(found.members):
        yield warn(ONE_CANARY, "with one canary each of its restarts converts the whole group back and forth", cure="set"
                   " spec.rollout.steps[0].pods to 2", subject="spec.rollout", observed=canary, threshold=2)


def find_static_members(picture: Picture) -> Iterator[Verdict]:
    """Two pods cannot have one instance id, and an id that no successor takes keeps its partitions for a session."""
    if picture.offline:
        return
    group_of(picture)
    for source in workloads(picture):
        workload = picture.workload(source.name)
        leaving: list[str] = []
        shared: list[str] = []
        for pod in (pod for name, _, pod in picture.pods() if name == workload.name):
            for member in picture.members_of(pod):
                if member.instance_id:
                    goes = any(mark in member.instance_id for mark in _marks(source, pod))
                    (leaving if goes else shared).append(member.instance_id)
        if shared and kinds.of(source).rises and not picture.in_place:
            yield fail(STATIC_MEMBERS_IN_DEPLOYMENT, f"members of {source} have a group.instance.id without their pod's name"
                       f" ({several(shared)}): a new pod runs next to the one that it replaces, and with the same id it is"
                       " refused (UNRELEASED_INSTANCE_ID)", subject=shared[0],
                       unblocks="set spec.rollout.surge to 0, run static members in a StatefulSet, or remove the id")
        if leaving:
            yield warn(STATIC_MEMBERS_LEAVE_LATE, f"members of {workload.kind} {workload.name} have a group.instance.id of"
                       f" their own pod ({several(leaving)}): no new pod takes it, so nobody consumes a stopped pod's"
                       " partitions until its session ends (45 s by default)", subject=leaving[0],
                       cure="remove the ids before, in a rollout of its own, or accept a pause of a session for each batch")


def _marks(source: MemberWorkload, pod: MemberPod) -> Iterator[str]:
    """What an id is made of that goes with its pod."""
    yield from (pod.uid, *pod.ips, *(re.sub(r"[.:]", "-", ip) for ip in pod.ips))
    yield from kinds.of(source).own_marks(pod)


def find_patterns(picture: Picture) -> Iterator[Verdict]:
    """A classic member's subscription tells no pattern; one is asked for where the pods' settings show one."""
    if not to_consumer(picture):
        return
    for source in workloads(picture):
        try:
            _, container = container_of(source.template, picture.workload(source.name).container)
        except Unsupported:
            continue
        patterns = [str(item["value"]) for item in container.get("env", ()) if str(item.get("value") or "").startswith("^")]
        for pattern in patterns:
            if unknown := NOT_RE2.search(pattern):
                yield warn(PATTERN_UNSUPPORTED, f"{source} seems to subscribe to {pattern}: brokers do not support"
                           f" {unknown[0]} and refuse a member that sends them the pattern"
                           " (INVALID_REGULAR_EXPRESSION)", subject=source.name, observed=pattern, threshold="RE2",
                           cure="write the pattern without it; Java's subscribe(Pattern) may stay as it is")
            elif not pattern.endswith((".*", "$")):
                yield warn(PATTERN_MEANS_LESS, f"{source} seems to subscribe to {pattern}: under the consumer protocol"
                           " brokers match whole names, so it finds only a topic of exactly that name",
                           subject=source.name,
                           observed=pattern, threshold=f"{pattern}.*", cure=f"write {pattern}.* in spec.workloads")


CHECKS = (
    check("ClientSettings", find_forbidden_settings, "the changed clients start under the new protocol"),
    check("Canary", find_small_canary, "one restart of a canary does not turn the group back"),
    check("StaticMembers", find_static_members, "no instance id is needed twice"),
    check("Patterns", find_patterns, "patterns mean the same under both protocols"),
)
