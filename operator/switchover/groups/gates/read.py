"""How gates read a picture; what is unknown raises `Unseen`."""

from switchover.engine.gate import Unseen, seen, unknown
from switchover.groups.facts import GroupSample
from switchover.groups.picture import Fleet, Picture
from switchover.kafka.group import Group
from switchover.reasons.lag import GROUP_UNKNOWN
from switchover.reasons.members import OFFSETS_UNKNOWN
from switchover.reasons.walk import NOT_OBSERVED


def samples(picture: Picture) -> int:
    return picture.spec.gates.stable_samples


def group_of(picture: Picture) -> Group:
    return seen(picture.facts.group, GROUP_UNKNOWN, picture.spec.group)


def fleet_of(picture: Picture) -> Fleet:
    return seen(picture.facts.fleet, NOT_OBSERVED)


def offsets_of(picture: Picture) -> tuple[GroupSample, ...]:
    """At least one sweep over its offsets."""
    if found := seen(picture.facts.samples, OFFSETS_UNKNOWN, picture.spec.group):
        return found
    raise Unseen(unknown(OFFSETS_UNKNOWN, "no offset was read yet", subject=picture.spec.group))
