"""Whether a group, as it stands, can be moved from one protocol of consumers to the other: the one judge of that, for
Preflight, `switchover groups` and the pipeline's inventory. What to do about it: Preflight's reasons.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from switchover.kafka.group import GroupState, GroupType, MemberProtocol

STREAMS = "stream"
"""The strategy of every Kafka Streams application of the classic protocol."""
CONSUMERS = ("", "consumer")
"""Protocol types of groups that brokers convert; "": the group has only committed offsets."""


class Kind(StrEnum):
    """What stands in the way. All but NOT_STABLE stay until a person acts."""

    OTHER_TYPE = "OtherType"
    NOT_CONSUMERS = "NotConsumers"
    NO_MEMBERS = "NoMembers"
    NOT_STABLE = "NotStable"
    MOVED = "Moved"
    STREAMS = "Streams"


@dataclass(frozen=True, slots=True)
class Standing:
    """A group as it stands; `protocols` are those of its members, one for each. `state` None: it is not known."""

    name: str
    type: GroupType
    state: GroupState | None
    protocol_type: str
    assignor: str
    protocols: tuple[MemberProtocol, ...]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One thing in the way, and a sentence about it."""

    kind: Kind
    message: str


def obstacles(group: Standing, start: MemberProtocol | None) -> Iterator[Obstacle]:
    """What stands in the way of a move that starts from `start`; None: from any. After one of the first three kinds there is
    nothing more to ask."""
    if group.type is GroupType.OTHER:
        yield Obstacle(Kind.OTHER_TYPE, f"group {group.name} is of a type that only Kafka Streams or share consumers use")
        return
    if group.protocol_type not in CONSUMERS:
        yield Obstacle(Kind.NOT_CONSUMERS, f"group {group.name} has the protocol type {group.protocol_type}: brokers convert"
                                           " only groups of consumers")
        return
    if group.state is GroupState.DEAD or not group.protocols:
        yield Obstacle(Kind.NO_MEMBERS, f"group {group.name} has no members: there is nothing to move online")
        return
    if group.state is not GroupState.STABLE:
        yield Obstacle(Kind.NOT_STABLE, f"group {group.name} is {group.state or 'in a state that is not known'}")
    moved = [each for each in group.protocols if start is not None and each is not start]
    if moved:
        yield Obstacle(Kind.MOVED, f"{len(moved)} of {len(group.protocols)} members take part by the {moved[0].lower()}"
                                   " protocol already")
    if group.assignor == STREAMS:
        yield Obstacle(Kind.STREAMS, f"group {group.name} is a Kafka Streams application: the coordinator refuses to convert"
                                     " it online, and it has a protocol of its own (streams, KIP-1071)")
