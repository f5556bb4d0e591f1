"""The consumer groups that must stay healthy while brokers are replaced: there is somebody who consumes."""

from collections.abc import Iterator

from switchover.answers.observed import Known, Unknown
from switchover.cluster.facts import Need
from switchover.cluster.picture import Picture
from switchover.engine.gate import Verdict, check, unknown, warn
from switchover.reasons.groups import GROUP_UNKNOWN
from switchover.reasons.notes import GROUP_HAS_NO_MEMBERS


def find_groups_without_members(picture: Picture) -> Iterator[Verdict]:
    """Such a group holds a batch of brokers for as long as it has something to consume and nobody commits."""
    for group in picture.spec.gates.groups:
        members = picture.facts.members.get(group.name, Unknown(f"nobody was asked who is in group {group.name}"))
        if not isinstance(members, Known):
            yield unknown(GROUP_UNKNOWN, members.why, subject=group.name)
        elif not members.value.assigned:
            yield warn(GROUP_HAS_NO_MEMBERS, f"group {group.name} of spec.gates.groups has no members (it is"
                       f" {members.value.state}): batches of brokers wait while it has something to consume and nobody"
                       " commits", subject=group.name, observed=members.value.state, threshold="Stable",
                       cure="start its consumers, or take it out of spec.gates.groups; nothing to do where something commits"
                       " without being a member, as Flink and MirrorMaker do")


CHECKS = (check("WatchedGroups", find_groups_without_members, "the groups that are watched have members",
                needs=(Need.MEMBERS,)),)
