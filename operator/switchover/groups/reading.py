"""How checks read a picture: the value or, while it is unknown, `Unseen` with what the check answers then.

Also why a coordinator would refuse a member of the other protocol (docs/facts/groups.md#refusals). A client tells little of
it or, librdkafka before 2.15, nothing: each cause is looked for by itself.
"""

from collections.abc import Iterator, Mapping, Sequence

from switchover.answers.observed import Known
from switchover.engine.gate import Unseen, seen, unknown
from switchover.groups.coordination.members import Members
from switchover.groups.facts import GroupSample, StoreSample
from switchover.groups.picture import Fleet, Picture
from switchover.kafka.group import BrokerGroups, Group, GroupType, MemberProtocol, OffsetsTopic
from switchover.kubernetes.members import MemberPod, MemberWorkload
from switchover.reasons.cluster import BROKERS_UNKNOWN, ZOOKEEPER_UNKNOWN
from switchover.reasons.groups import GROUP_UNKNOWN, OFFSETS_TOPIC_UNKNOWN, OFFSETS_UNKNOWN, PARTITIONS_UNKNOWN
from switchover.reasons.preflight import KUBERNETES_UNKNOWN
from switchover.reasons.walk import BROKER_SILENT, NOT_OBSERVED
from switchover.text.command import Command, command


def samples(picture: Picture) -> int:
    return picture.spec.gates.stable_samples


def group_of(picture: Picture) -> Group:
    return seen(picture.facts.group, GROUP_UNKNOWN, picture.spec.group)


def fleet_of(picture: Picture) -> Fleet:
    return seen(picture.facts.fleet, NOT_OBSERVED)


def pods_of(picture: Picture) -> Sequence[tuple[str, str, MemberPod]]:
    """As `picture.pods()`, where the workloads were seen."""
    fleet_of(picture)
    return picture.pods()


def offsets_of(picture: Picture) -> tuple[GroupSample, ...]:
    """At least one sweep over its offsets."""
    if found := seen(picture.facts.samples, OFFSETS_UNKNOWN, picture.spec.group):
        return found
    raise Unseen(unknown(OFFSETS_UNKNOWN, "no offset was read yet", subject=picture.spec.group))


def partitions_of(picture: Picture) -> Mapping[str, int]:
    """How many each topic has."""
    return seen(picture.facts.partitions, PARTITIONS_UNKNOWN, picture.spec.group)


def offsets_topic_of(picture: Picture) -> OffsetsTopic:
    return seen(picture.facts.offsets_topic, OFFSETS_TOPIC_UNKNOWN, "__consumer_offsets")


def raise_message_bytes(picture: Picture, needed: int) -> Command:
    """Have __consumer_offsets take a batch of so many bytes."""
    return command("kafka-configs.sh --bootstrap-server {} --alter --entity-type topics --entity-name __consumer_offsets"
                   " --add-config {}", picture.spec.kafka.bootstrap_servers, f"max.message.bytes={needed}")


def members_of(picture: Picture) -> Members:
    seen(picture.facts.zookeeper, ZOOKEEPER_UNKNOWN, picture.spec.group)
    return seen(picture.members, GROUP_UNKNOWN, picture.spec.group)


def stores_of(picture: Picture) -> tuple[StoreSample, ...]:
    """At least two readings of both stores."""
    if len(found := seen(picture.facts.stores, OFFSETS_UNKNOWN, picture.spec.group)) > 1:
        return found
    raise Unseen(unknown(OFFSETS_UNKNOWN, "both stores were not read twice yet", subject=picture.spec.group))


def brokers(picture: Picture) -> Mapping[int, BrokerGroups]:
    """What every broker said of itself: each must have."""
    if not picture.facts.brokers:
        raise Unseen(unknown(BROKERS_UNKNOWN, "no broker was asked yet", subject="Kafka"))
    return {broker_id: seen(answer, BROKER_SILENT, f"broker {broker_id}")
            for broker_id, answer in sorted(picture.facts.brokers.items())}


def workloads(picture: Picture) -> Iterator[MemberWorkload]:
    """The managed workloads that exist."""
    seen(picture.facts.fleet, KUBERNETES_UNKNOWN, "Kubernetes")
    for workload in picture.spec.workloads:
        source = picture.source(workload.name)
        if isinstance(source, Known):
            yield source.value


POLICY = "group.consumer.migration.policy"
UPGRADES, DOWNGRADES = frozenset({"bidirectional", "upgrade"}), frozenset({"bidirectional", "downgrade"})


def why_refused(picture: Picture, protocol: MemberProtocol) -> str:
    """The likely cause; "" where none is known."""
    group, broker = picture.facts.group, coordinator(picture)
    return next(_causes(group.value, broker, protocol), "") if isinstance(group, Known) and broker is not None else ""


def coordinator(picture: Picture) -> BrokerGroups | None:
    """What the group's coordinator says of itself."""
    group = picture.facts.group
    answer = picture.facts.brokers.get(group.value.coordinator) if isinstance(group, Known) else None
    return answer.value if isinstance(answer, Known) else None


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
