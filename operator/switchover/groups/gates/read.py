"""How gates read a picture: the value, or the verdict that it is unknown."""

from switchover.answers.observed import Known
from switchover.engine.gate import Verdict, unknown
from switchover.groups.facts import GroupSample
from switchover.groups.picture import Fleet, Picture
from switchover.kafka.group import Group
from switchover.reasons.lag import GROUP_UNKNOWN
from switchover.reasons.members import OFFSETS_UNKNOWN
from switchover.reasons.walk import NOT_OBSERVED


def samples(picture: Picture) -> int:
    return picture.spec.gates.stable_samples


def group_of(picture: Picture) -> Group | Verdict:
    group = picture.facts.group
    return group.value if isinstance(group, Known) else unknown(GROUP_UNKNOWN, group.why, subject=picture.spec.group)


def fleet_of(picture: Picture) -> Fleet | Verdict:
    fleet = picture.facts.fleet
    return fleet.value if isinstance(fleet, Known) else unknown(NOT_OBSERVED, fleet.why)


def offsets_of(picture: Picture) -> tuple[GroupSample, ...] | Verdict:
    found = picture.facts.samples
    if not isinstance(found, Known):
        return unknown(OFFSETS_UNKNOWN, found.why, subject=picture.spec.group)
    return found.value if found.value else unknown(OFFSETS_UNKNOWN, "no offset was read yet", subject=picture.spec.group)
