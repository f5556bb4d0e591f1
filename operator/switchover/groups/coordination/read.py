"""How gates of the coordination read a picture: the value, or the verdict that it is unknown."""

from switchover.answers.observed import Known
from switchover.engine.gate import Verdict, unknown
from switchover.groups.coordination.members import Members
from switchover.groups.facts import StoreSample
from switchover.groups.picture import Picture
from switchover.reasons.brokers import ZOOKEEPER_UNKNOWN
from switchover.reasons.lag import GROUP_UNKNOWN
from switchover.reasons.members import OFFSETS_UNKNOWN


def members_of(picture: Picture) -> Members | Verdict:
    found, world = picture.members, picture.facts.zookeeper
    if isinstance(found, Known):
        return found.value
    if not isinstance(world, Known):
        return unknown(ZOOKEEPER_UNKNOWN, world.why, subject=picture.spec.group)
    return unknown(GROUP_UNKNOWN, found.why, subject=picture.spec.group)


def stores_of(picture: Picture) -> tuple[StoreSample, ...] | Verdict:
    """At least two readings of both stores."""
    found = picture.facts.stores
    if not isinstance(found, Known):
        return unknown(OFFSETS_UNKNOWN, found.why, subject=picture.spec.group)
    return found.value if len(found.value) > 1 else unknown(OFFSETS_UNKNOWN, "both stores were not read twice yet",
                                                            subject=picture.spec.group)
