"""How gates of the coordination read a picture; what is unknown raises `Unseen`."""

from switchover.engine.gate import Unseen, seen, unknown
from switchover.groups.coordination.members import Members
from switchover.groups.facts import StoreSample
from switchover.groups.picture import Picture
from switchover.reasons.brokers import ZOOKEEPER_UNKNOWN
from switchover.reasons.lag import GROUP_UNKNOWN
from switchover.reasons.members import OFFSETS_UNKNOWN


def members_of(picture: Picture) -> Members:
    seen(picture.facts.zookeeper, ZOOKEEPER_UNKNOWN, picture.spec.group)
    return seen(picture.members, GROUP_UNKNOWN, picture.spec.group)


def stores_of(picture: Picture) -> tuple[StoreSample, ...]:
    """At least two readings of both stores."""
    if len(found := seen(picture.facts.stores, OFFSETS_UNKNOWN, picture.spec.group)) > 1:
        return found
    raise Unseen(unknown(OFFSETS_UNKNOWN, "both stores were not read twice yet", subject=picture.spec.group))
