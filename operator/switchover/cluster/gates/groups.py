"""Consumer groups: those that the user named stay healthy (by the lag kernel), and none needs ZooKeeper any more."""

from switchover.answers.observed import Known, Unknown
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.preflight.groups import described, remedy
from switchover.cluster.reading import groups_in_zookeeper
from switchover.engine.gate import Gate, Verdict, passed, seen, several, unknown, wait
from switchover.lag.sentences import sentence
from switchover.lag.verdicts import Verdict as Found
from switchover.lag.watch import JudgedGroup
from switchover.reasons.groups import (
    GROUP_HAS_NO_COMMITS,
    GROUP_HAS_NO_MEMBERS,
    GROUP_LAG,
    GROUP_NEVER_COMMITTED,
    GROUP_OFFSETS_WRONG,
    GROUP_ON_ZOOKEEPER,
    GROUP_STALLED,
    GROUP_UNKNOWN,
)


def check_groups_healthy(picture: Picture) -> Verdict:
    """The named groups go on: commits advance where there is something to commit, and lag is under its threshold."""
    for group in picture.spec.gates.groups:
        sampled = picture.facts.groups.get(group.name, Unknown(f"group {group.name} was not sampled"))
        found = seen(sampled, GROUP_UNKNOWN, group.name)
        if not found.expected:
            waits = wait(GROUP_HAS_NO_COMMITS, f"group {group.name} has no committed offset", subject=group.name,
                         unblocks="wait until the group consumes and commits")
            return _without_members(picture, group.name, waits) or waits
        for row in found.rows:
            if verdict := _trouble(group.name, found, row):
                return _without_members(picture, group.name, verdict) or verdict
    return passed("the named groups are healthy")


def _without_members(picture: Picture, name: str, found: Verdict) -> Verdict | None:
    """The same with its cause, where the group has no member that could consume and commit."""
    members = picture.facts.members.get(name)
    if not isinstance(members, Known) or members.value.assigned:
        return None
    return wait(GROUP_HAS_NO_MEMBERS, f"no member ({members.value.state}): {found.message}",
                subject=found.subject, observed=found.observed, threshold=found.threshold,
                unblocks="start its consumers, or whatever commits for it; or remove it from spec.gates.groups")


def _trouble(name: str, group: JudgedGroup, row: int) -> Verdict | None:
    """What is wrong with a partition, None where it is well."""
    judged, q, partition = group.judged, group.judged.quantities, group.partitions[row]
    found = Found(judged.verdict[row])
    if found is Found.OK or found is Found.IDLE:
        return None
    subject, message = f"{name} {partition}", f"group {name}: {sentence(partition, judged, row)}"
    match found:
        case Found.UNKNOWN:
            return unknown(GROUP_UNKNOWN, message, subject=subject)
        case Found.UNCOMMITTED:
            return wait(GROUP_NEVER_COMMITTED, message, subject=subject, observed="no commit", threshold="a commit",
                        unblocks="wait until the group consumes and commits there too")
        case Found.STALLED | Found.STOPPED:
            return wait(GROUP_STALLED, message, subject=subject, observed=f"{q.stood[row] / 1000:.0f} s",
                        threshold=f"{judged.quiet_ok[row] / 1000:.0f} s",
                        unblocks="wait until the group commits again; the logs of its consumers say why it does not")
        case Found.CATCHING_UP | Found.BEHIND:
            return wait(GROUP_LAG, message, subject=subject, observed=f"{q.lag[row]} records",
                        threshold=f"{judged.lag_ok} records", unblocks="wait until the group has caught up")
        case Found.LOST | Found.BEYOND_END | Found.REWOUND:
            return wait(GROUP_OFFSETS_WRONG, message, subject=subject, observed=f"committed {q.committed[row]}",
                        threshold=f"from {q.start[row]} to {q.end[row]}",
                        unblocks="find out what changed the group's offsets; it must commit where its records are")


GROUPS_HEALTHY: Gate[Picture] = Gate("GroupsHealthy", check_groups_healthy, needs=(Need.MEMBERS,))


# --- zookeeper groups -----------------------------------------------------------------------------------------------------
# Brokers leave ZooKeeper only when no consumer group needs it: each broker that moves leaves `/brokers/ids`.

REMEDIES_NAMED = 3


def check_no_zookeeper_groups(picture: Picture) -> Verdict:
    """No group below `/consumers` has a member, one whose partitions Kafka assigns included."""
    groups = groups_in_zookeeper(picture)
    if not groups:
        return passed("ZooKeeper coordinates no consumer group")
    found = sorted(groups.items())
    meaning = ("MoveBrokers has begun: its members find no broker that is on KRaft, so no more batches start"
               if picture.position.opened is not None else "its members would find no broker that is on KRaft")
    more = f", and {several(name for name, _ in found[1:])}" if len(found) > 1 else ""
    return wait(GROUP_ON_ZOOKEEPER, f"{described(*found[0])}{more}; {meaning}", subject=several(name for name, _ in found),
                observed=f"members: {several(f'{name} {len(group.members)}' for name, group in found)}", threshold="none",
                unblocks=several((remedy(picture, name) for name, _ in found), REMEDIES_NAMED))


NO_ZOOKEEPER_GROUPS: Gate[Picture] = Gate(
    "NoZooKeeperGroups", check_no_zookeeper_groups, needs=(Need.GROUPS_IN_ZOOKEEPER,))
