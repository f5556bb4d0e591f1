"""Why a coordinator would refuse a member of the other protocol, by what was read: docs/facts/groups.md#refusals.

A client tells little of it or, librdkafka before 2.15, nothing. So each cause is looked for by itself.
"""

from collections.abc import Iterator

from switchover.answers.observed import Known
from switchover.groups.picture import Picture
from switchover.kafka.group import BrokerGroups, Group, GroupType, MemberProtocol

POLICY = "group.consumer.migration.policy"
UPGRADES, DOWNGRADES = frozenset({"bidirectional", "upgrade"}), frozenset({"bidirectional", "downgrade"})


def why_refused(picture: Picture, protocol: MemberProtocol) -> str:
    """The likely cause in words; "" where none is known."""
    group, broker = picture.facts.group, coordinator(picture)
    return next(_causes(group.value, broker, protocol), "") if isinstance(group, Known) and broker is not None else ""


def coordinator(picture: Picture) -> BrokerGroups | None:
    """What the group's coordinator says of itself."""
    group = picture.facts.group
    told = picture.facts.brokers.get(group.value.coordinator) if isinstance(group, Known) else None
    return told.value if isinstance(told, Known) else None


def _causes(group: Group, broker: BrokerGroups, protocol: MemberProtocol) -> Iterator[str]:
    policy = broker.settings.get(POLICY, "").lower()
    if protocol is MemberProtocol.CONSUMER:
        if broker.group_version < 1:
            yield "the feature group.version is not finalized, so brokers serve no consumer protocol"
        if group.type is GroupType.CLASSIC and group.members and policy not in UPGRADES:
            yield (f"{POLICY} is {policy or 'not there'} on its coordinator, broker {group.coordinator}: online upgrade is"
                   " off")
        if group.type is GroupType.CLASSIC and any(member.user_data for member in group.members):
            yield "members' assignments carry user data, which the broker takes for a custom assignor's"
        if len(group.members) >= _limit(broker, "group.consumer.max.size"):
            yield "the group has group.consumer.max.size members"
    else:
        if group.type is GroupType.CONSUMER and policy == "disabled":
            yield f"{POLICY} is disabled on its coordinator, broker {group.coordinator}: no classic member may join"
        if len(group.members) >= _limit(broker, "group.max.size"):
            yield "the group has group.max.size members"


def _limit(broker: BrokerGroups, setting: str) -> int:
    return int(broker.settings.get(setting, 2**31 - 1))
