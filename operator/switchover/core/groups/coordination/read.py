"""How gates of the coordination read a picture: the value, or the verdict that it is unknown."""

from switchover.core.gate import Verdict, unknown
from switchover.core.groups.coordination.members import Members
from switchover.core.groups.facts import StoreSample
from switchover.core.groups.picture import Picture
from switchover.core.observed import Known


def members_of(picture: Picture) -> Members | Verdict:
    found, world = picture.members, picture.facts.zookeeper
    if isinstance(found, Known):
        return found.value
    if not isinstance(world, Known):
        return unknown("ZooKeeperUnknown", world.why, subject=picture.spec.group)
    return unknown("GroupUnknown", found.why, subject=picture.spec.group)


def stores_of(picture: Picture) -> tuple[StoreSample, ...] | Verdict:
    """At least two readings of both stores."""
    found = picture.facts.stores
    if not isinstance(found, Known):
        return unknown("OffsetsUnknown", found.why, subject=picture.spec.group)
    return found.value if len(found.value) > 1 else unknown("OffsetsUnknown", "both stores were not read twice yet",
                                                            subject=picture.spec.group)
