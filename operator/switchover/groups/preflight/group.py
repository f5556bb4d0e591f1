"""The group as it is: there, quiet, of the kind that the migration starts from, and of our pods alone. Also whether two
bounces can change its strategy (docs/facts/groups.md#the-strategy-by-two-bounces).
"""

from collections.abc import Iterator

from switchover.answers.observed import Known
from switchover.api.status import Verdict as Outcome
from switchover.coordination.assignment import Strategy
from switchover.engine.gate import Verdict, check, fail, info, wait, warn
from switchover.groups.gates.membership import NO_FOREIGN_MEMBERS, PODS_ARE_MEMBERS
from switchover.groups.gates.protocol import check_plain_assignments
from switchover.groups.picture import ORIGINAL, Picture
from switchover.groups.reading import group_of, partitions_of
from switchover.kafka.group import Group, GroupState, GroupType, Kind, Obstacle, Standing, obstacles
from switchover.reasons.groups import (
    ALREADY_MOVED,
    BRIDGE_MISSING,
    GROUP_EMPTY,
    GROUP_NOT_STABLE,
    GROUP_TYPE_UNSUPPORTED,
    NOTHING_TO_CHANGE,
)
from switchover.reasons.notes import CLIENT_ASSIGNOR_LOST, CO_PARTITIONING_LOST, OLD_TOOLS_GO_BLIND
from switchover.reasons.preflight import (
    KAFKA_STREAMS,
    MALFORMED_MEMBER,
    NO_CLIENT_STRATEGY,
    NOT_CONSUMERS,
    STRATEGIES_CANNOT_MIX,
)

COOPERATIVE = "cooperative-sticky"
ASSIGNORS = (*Strategy, "sticky", COOPERATIVE)
"""Those of Kafka's own clients: two that old consumers have as well, and two that they have not."""


def find_unmixable(picture: Picture) -> Iterator[Verdict]:
    wanted = picture.spec.assignment_strategy
    if wanted is None:
        return
    found = group_of(picture)
    if found.type is GroupType.CONSUMER:
        yield fail(NO_CLIENT_STRATEGY, f"group {found.name} uses the consumer protocol: brokers assign, not members",
                   subject=found.name, unblocks="set group.remote.assignor on the clients instead")
    families = {wanted.to == COOPERATIVE, found.assignor == COOPERATIVE}
    if wanted.client_family == "Librdkafka" and len(families) > 1:
        yield fail(STRATEGIES_CANNOT_MIX, f"librdkafka does not start with both {found.assignor} and {wanted.to} in"
                   " its list", subject=wanted.to, observed=found.assignor, threshold=wanted.to,
                   unblocks="stop all members and start them with the new strategy (a Deployment with strategy Recreate);"
                            " or move an eager group straight to the consumer protocol (spec.protocol)")
    if wanted.to == found.assignor:
        yield fail(NOTHING_TO_CHANGE, f"group {found.name} uses {wanted.to} already", subject=found.name,
                   unblocks="delete this migration, or name another strategy in spec.assignmentStrategy")
    for workload in picture.spec.workloads:
        if workload.bridge is None:
            yield fail(BRIDGE_MISSING, f"workload {workload.name} has no bridge: the first restart of its pods must list"
                       " both strategies", subject=workload.name,
                       unblocks=f"add a bridge that sets partition.assignment.strategy to {wanted.to},{found.assignor}")


STRATEGY = (check("Strategies", find_unmixable, "the members can have both strategies in between"),)


OFFLINE = "set spec.protocol.strategy to Offline: all members stop before new ones start"


def find_wrong_group(picture: Picture) -> Iterator[Verdict]:
    answer = picture.facts.group
    if not isinstance(answer, Known) and answer.malformed:
        yield fail(MALFORMED_MEMBER, answer.why, subject=picture.spec.group,
                   unblocks="stop that member, or give it a client that speaks the consumer protocol")
        return
    found = group_of(picture)
    start = picture.protocol(ORIGINAL) if picture.spec.protocol is not None else None
    ways = tuple(obstacles(Standing(found.name, found.type, found.state, found.protocol_type, found.assignor,
                                    tuple(member.protocol for member in found.members)), start))
    for way in ways:
        yield _verdict(found, way, picture)
    if not {each.kind for each in ways} - {Kind.NOT_STABLE, Kind.MOVED} and picture.spec.protocol is not None \
            and found.type is GroupType.CLASSIC and found.assignor and found.assignor not in ASSIGNORS:
        yield warn(CLIENT_ASSIGNOR_LOST, f"group {found.name} uses {found.assignor}, which brokers do not have: they will"
                   " assign partitions differently", subject=found.assignor, cure="make sure that nothing depends on it")


def _verdict(found: Group, way: Obstacle, picture: Picture) -> Verdict:
    match way.kind:
        case Kind.OTHER_TYPE:
            return fail(GROUP_TYPE_UNSUPPORTED, way.message, subject=found.name,
                        unblocks="delete this migration: it moves groups of consumers alone")
        case Kind.NOT_CONSUMERS:
            return fail(NOT_CONSUMERS, way.message, subject=found.name, observed=found.protocol_type, threshold="consumer",
                        unblocks="leave Connect's workers as they are; migrate the group of its sink tasks (connect-<name>)")
        case Kind.NO_MEMBERS:
            return fail(GROUP_EMPTY, way.message, subject=found.name, observed=found.state, threshold=GroupState.STABLE,
                        unblocks="correct spec.group; or start the pods with the new configuration, without a migration")
        case Kind.NOT_STABLE:
            return wait(GROUP_NOT_STABLE, way.message, subject=found.name, observed=found.state,
                        threshold=GroupState.STABLE, unblocks="wait until it is Stable again")
        case Kind.MOVED:
            old = picture.protocol(ORIGINAL)
            first = next(member for member in found.members if member.protocol is not old)
            return fail(ALREADY_MOVED, way.message, subject=first.client_id, observed=first.protocol, threshold=old,
                        unblocks=f"bring them back to the {old.lower()} protocol, or migrate the other way")
        case Kind.STREAMS:
            return fail(KAFKA_STREAMS, way.message, subject=found.name, unblocks=(
                "stop all of it, then start it with group.protocol=streams (clients and brokers 4.2.1 or newer:"
                " KAFKA-20254): the committed offsets stay"))


def find_custom_assignments(picture: Picture) -> Iterator[Verdict]:
    """The length changes with each rebalance: the canary asks again."""
    if picture.offline:
        return
    verdict = check_plain_assignments(picture)
    if verdict.outcome is not Outcome.PASS:
        yield verdict


def find_lost_co_partitioning(picture: Picture) -> Iterator[Verdict]:
    """Range gives the same number of several topics to one member; the server's uniform does not."""
    found, protocol = group_of(picture), picture.spec.protocol
    topics = {topic for member in found.members for topic in member.topics}
    if protocol is None or protocol.to != "Consumer" or found.assignor != "range" or len(topics) < 2:
        return
    partitions = partitions_of(picture)
    counts = {partitions.get(topic) for topic in topics}
    if len(counts) == 1 and protocol.remote_assignor != "range":
        yield warn(CO_PARTITIONING_LOST, f"range assigns the same partitions of {len(topics)} topics to one member,"
                   f" and {protocol.remote_assignor} does not", subject=found.name, observed=protocol.remote_assignor,
                   threshold="range", cure="if members join the topics, set spec.protocol.remoteAssignor and the clients'"
                                           " group.remote.assignor to range")


def find_blind_tools(picture: Picture) -> Iterator[Verdict]:
    protocol = picture.spec.protocol
    if protocol is not None and protocol.to == "Consumer":
        yield info(OLD_TOOLS_GO_BLIND, "tools with the old DescribeGroups (AKHQ, Sarama's exporters and scalers) show the"
                   " group as Dead from the canary on; lag by committed offsets stays visible",
                   subject=picture.spec.group)


CHECKS = (
    check("Group", find_wrong_group, "the group is stable and of the kind that the migration starts from",
          samples=lambda picture: picture.spec.gates.stable_samples),
    NO_FOREIGN_MEMBERS,
    PODS_ARE_MEMBERS,
    check("Assignments", find_custom_assignments, "no assignment carries user data"),
    check("CoPartitioning", find_lost_co_partitioning, "topics that are assigned together stay so"),
    check("Tools", find_blind_tools, "tools that will not see the group were looked for"),
)
