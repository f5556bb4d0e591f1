"""The group as it is: there, quiet, of the kind that the migration starts from, and of our pods alone."""

from collections.abc import Iterator

from switchover.api.status import Verdict as Outcome
from switchover.engine.gate import Verdict, check, fail, info, unknown, wait, warn
from switchover.groups.gates.membership import NO_STRANGERS, PODS_ARE_MEMBERS
from switchover.groups.gates.protocol import check_plain_assignments
from switchover.groups.picture import ORIGINAL, Picture
from switchover.groups.preflight.reading import group
from switchover.groups.preflight.strategy import ASSIGNORS
from switchover.kafka.group import GroupState, GroupType
from switchover.outside.observed import Known
from switchover.reasons.coordination import ALREADY_MOVED, GROUP_EMPTY, GROUP_TYPE_UNSUPPORTED
from switchover.reasons.members import GROUP_NOT_STABLE, PARTITIONS_UNKNOWN
from switchover.reasons.preflight_group import KAFKA_STREAMS, MALFORMED_MEMBER, NOT_CONSUMERS

STREAMS = "stream"
OFFLINE = "set spec.protocol.strategy to Offline: all members are stopped, then started with the new protocol"


def find_wrong_group(picture: Picture) -> Iterator[Verdict]:
    told = picture.facts.group
    if not isinstance(told, Known) and told.malformed:
        yield fail(MALFORMED_MEMBER, told.why, subject=picture.spec.group,
                   unblocks="stop that member, or give it a client that speaks the consumer protocol")
        return
    found = group(picture)
    if found.type is GroupType.OTHER:
        yield fail(GROUP_TYPE_UNSUPPORTED, f"group {found.name} is of a type that only Kafka Streams or share consumers use",
                   subject=found.name, unblocks="a ConsumerGroupMigration moves groups of consumers")
        return
    if found.protocol_type not in ("", "consumer"):
        yield fail(NOT_CONSUMERS, f"group {found.name} has the protocol type {found.protocol_type}: brokers convert only"
                   " groups of consumers", subject=found.name, observed=found.protocol_type, threshold="consumer",
                   unblocks="Connect's workers stay as they are; migrate the group of its sink tasks (connect-<name>)")
        return
    if found.state is GroupState.DEAD or not found.members:
        yield fail(GROUP_EMPTY, f"group {found.name} has no members: there is nothing to move online", subject=found.name,
                   observed=found.state, threshold=GroupState.STABLE,
                   unblocks="check spec.group, or simply start the pods with the new configuration")
        return
    if found.state is not GroupState.STABLE:
        yield wait(GROUP_NOT_STABLE, f"group {found.name} is {found.state}", subject=found.name, observed=found.state,
                   threshold=GroupState.STABLE, unblocks="it settles")
    old = picture.protocol(ORIGINAL)
    moved = [member for member in found.members if member.protocol is not old]
    if moved and picture.spec.protocol is not None:
        yield fail(ALREADY_MOVED, f"{len(moved)} of {len(found.members)} members take part by the"
                   f" {moved[0].protocol.lower()}"
                   " protocol already", subject=moved[0].client_id, observed=moved[0].protocol, threshold=old,
                   unblocks=f"bring them back to the {old.lower()} protocol, or migrate to the other one")
    if found.assignor == STREAMS:
        yield _streams(found.name)
    elif picture.spec.protocol is not None and found.type is GroupType.CLASSIC and found.assignor \
            and found.assignor not in ASSIGNORS:
        yield warn("ClientAssignorLost", f"group {found.name} uses {found.assignor}, which brokers do not have: partitions"
                   " will be given out differently", subject=found.assignor, cure="make sure that nothing depends on it")


def _streams(name: str) -> Verdict:
    message = (f"group {name} is a Kafka Streams application: the coordinator refuses to convert it online, and it has a"
               " protocol of its own (streams, KIP-1071)")
    return fail(KAFKA_STREAMS, message, subject=name, unblocks=(
        "by hand: stop the whole application, set group.protocol=streams on clients and brokers of 4.2.1 or newer (4.2.0"
        " loses groups when it loads them: KAFKA-20254), and start it: only committed offsets survive"))


def find_custom_assignments(picture: Picture) -> Iterator[Verdict]:
    """The length changes with each rebalance: the canary asks again."""
    if picture.offline:
        return
    verdict = check_plain_assignments(picture)
    if verdict.outcome is not Outcome.PASS:
        yield verdict


def find_lost_co_partitioning(picture: Picture) -> Iterator[Verdict]:
    """Range gives the same number of several topics to one member; the server's uniform does not."""
    found, protocol = group(picture), picture.spec.protocol
    topics = {topic for member in found.members for topic in member.topics}
    if protocol is None or protocol.to != "Consumer" or found.assignor != "range" or len(topics) < 2:
        return
    if not isinstance(picture.facts.partitions, Known):
        yield unknown(PARTITIONS_UNKNOWN, picture.facts.partitions.why, subject=found.name)
        return
    counts = {picture.facts.partitions.value.get(topic) for topic in topics}
    if len(counts) == 1 and protocol.remote_assignor != "range":
        yield warn("CoPartitioningLost", f"range gives equal partitions of {len(topics)} topics to one member;"
                   f" {protocol.remote_assignor} does not", subject=found.name, observed=protocol.remote_assignor,
                   threshold="range", cure="if members join the topics, set spec.protocol.remoteAssignor and the clients'"
                                           " group.remote.assignor to range")


def find_blind_tools(picture: Picture) -> Iterator[Verdict]:
    protocol = picture.spec.protocol
    if protocol is not None and protocol.to == "Consumer":
        yield info("OldToolsGoBlind", "tools that use the old DescribeGroups (AKHQ, Sarama's exporters and scalers) show"
                   " the group as Dead from the canary on; lag from committed offsets stays visible",
                   subject=picture.spec.group)


CHECKS = (
    check("Group", find_wrong_group, "the group is stable and of the kind that the migration starts from",
          samples=lambda picture: picture.spec.gates.stable_samples),
    NO_STRANGERS,
    PODS_ARE_MEMBERS,
    check("Assignments", find_custom_assignments, "no assignment carries user data"),
    check("CoPartitioning", find_lost_co_partitioning, "nothing depends on which partitions come together"),
    check("Tools", find_blind_tools, "nothing goes blind"),
)
