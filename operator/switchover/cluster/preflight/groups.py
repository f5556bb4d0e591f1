"""Consumer groups: those that ZooKeeper coordinates, and those that must stay healthy while brokers are replaced."""

from collections.abc import Iterator

from switchover.answers.observed import Known, Unknown
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.cluster.reading import groups_in_zookeeper
from switchover.engine.gate import Verdict, check, info, seen, unknown, warn
from switchover.reasons.cluster import ZOOKEEPER_UNKNOWN
from switchover.reasons.groups import GROUP_UNKNOWN
from switchover.reasons.notes import GROUP_HAS_NO_MEMBERS, IDLE_GROUPS_UNREAD, IDLE_ZOOKEEPER_GROUP, ZOOKEEPER_GROUP
from switchover.zookeeper.nodes import ZooKeeperGroup

GROUPS_TOLD = 20


def described(name: str, group: ZooKeeperGroup) -> str:
    """What a group with members is, in words."""
    members = f"{len(group.members)} member{'' if len(group.members) == 1 else 's'}"
    if group.is_assigned_by_kafka:
        return f"group {name} ({members}, mode kafka) still needs ZooKeeper: only plain KafkaConsumers do not"
    return f"ZooKeeper coordinates group {name} ({members})"


def remedy(picture: Picture, name: str) -> str:
    """What ends a group's need of ZooKeeper; its ConsumerGroupMigration is named where it can be seen."""
    known = picture.facts.group_migrations
    if not isinstance(known, Known):
        return (f"finish the ConsumerGroupMigration of {name}, if there is one, or stop its consumers"
                f" (ConsumerGroupMigrations could not be listed: {known.why})")
    if found := known.value.get(name):
        named = ", ".join(f"{each} (now {each.phase})" if each.phase else str(each) for each in found)
        return f"finish {named}, or stop the consumers of {name}"
    return f"create a ConsumerGroupMigration of {name} with coordination to Kafka, or stop its consumers"


def find_zookeeper_groups(picture: Picture) -> Iterator[Verdict]:
    """Warnings: there is time to move them until MoveBrokers, and a gate there."""
    groups = groups_in_zookeeper(picture)
    for name, group in sorted(groups.items())[:GROUPS_TOLD]:
        yield warn(ZOOKEEPER_GROUP, f"{described(name, group)}; MoveBrokers does not begin before it is moved", subject=name,
                   observed=f"{len(groups)} such groups", cure=remedy(picture, name))
    idle = seen(picture.facts.examination.idle_groups, ZOOKEEPER_UNKNOWN, "/consumers")
    window = picture.spec.gates.idle_group_seconds
    late = {name: picture.now - at for name, at in idle.commits.items()
            if picture.now - at <= window and name not in groups}
    for name, age in sorted(late.items(), key=lambda item: item[1])[:GROUPS_TOLD]:
        yield warn(IDLE_ZOOKEEPER_GROUP, f"group {name} has no member, and committed to ZooKeeper {age / 3600:.1f} h ago:"
                   " consumers of it that come back after MoveBrokers find no broker", subject=name,
                   observed=f"{len(late)} such groups", threshold=f"{window} s", cure=remedy(picture, name))
    if idle.unread:
        yield info(IDLE_GROUPS_UNREAD, f"{idle.unread} groups without members were not checked for recent commits:"
                   " /consumers has more nodes than Preflight reads", subject="/consumers",
                   observed=f"{idle.unread} groups", cure="ask the owners of these groups; delete the nodes of one below"
                   " /consumers only if it is dead: its offsets go with them")


# --- watched groups -------------------------------------------------------------------------------------------------------
# The consumer groups that must stay healthy while brokers are replaced: there is somebody who consumes.

def find_groups_without_members(picture: Picture) -> Iterator[Verdict]:
    """Such a group holds a batch of brokers for as long as it has something to consume and nobody commits."""
    for group in picture.spec.gates.groups:
        members = picture.facts.members.get(group.name, Unknown(f"nobody was asked who is in group {group.name}"))
        if not isinstance(members, Known):
            yield unknown(GROUP_UNKNOWN, members.why, subject=group.name)
        elif not members.value.assigned:
            yield warn(GROUP_HAS_NO_MEMBERS, f"group {group.name} of spec.gates.groups has no members (it is"
                       f" {members.value.state}): batches of brokers wait while it has records to consume and nobody"
                       " commits", subject=group.name, observed=members.value.state, threshold="Stable",
                       cure="start its consumers, or take it out of spec.gates.groups; nothing to do where Flink,"
                       " MirrorMaker or another client commits without being a member")


CHECKS = (
    check("ZooKeeperGroups", find_zookeeper_groups, "the groups in ZooKeeper were looked at",
                needs=(Need.EXAMINATION, Need.GROUPS_IN_ZOOKEEPER)),
    check("WatchedGroups", find_groups_without_members, "the groups that are watched have members",
                needs=(Need.MEMBERS,)),
)
