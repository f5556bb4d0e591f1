"""How gates read a picture: the value, or the verdict that it is unknown."""

from switchover.core.gate import Verdict, unknown
from switchover.core.groups.facts import Group, GroupSample
from switchover.core.groups.picture import Fleet, Picture
from switchover.core.observed import Known


def samples(picture: Picture) -> int:
    return picture.spec.gates.stable_samples


def group_of(picture: Picture) -> Group | Verdict:
    group = picture.facts.group
    return group.value if isinstance(group, Known) else unknown("GroupUnknown", group.why, subject=picture.spec.group)


def fleet_of(picture: Picture) -> Fleet | Verdict:
    fleet = picture.facts.fleet
    return fleet.value if isinstance(fleet, Known) else unknown("NotObserved", fleet.why)


def offsets_of(picture: Picture) -> tuple[GroupSample, ...] | Verdict:
    found = picture.facts.samples
    if not isinstance(found, Known):
        return unknown("OffsetsUnknown", found.why, subject=picture.spec.group)
    return found.value if found.value else unknown("OffsetsUnknown", "no offset was read yet", subject=picture.spec.group)
