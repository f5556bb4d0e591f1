"""Whether the assignment strategy can be changed by two bounces (docs/facts/groups.md#the-strategy-by-two-bounces)."""

from collections.abc import Iterator

from switchover.coordination.assignment import Strategy
from switchover.engine.gate import Verdict, check, fail
from switchover.groups.picture import Picture
from switchover.groups.reading import group_of
from switchover.kafka.group import GroupType
from switchover.reasons.groups import BRIDGE_MISSING, NOTHING_TO_CHANGE
from switchover.reasons.preflight import NO_CLIENT_STRATEGY, STRATEGIES_CANNOT_MIX

COOPERATIVE = "cooperative-sticky"
ASSIGNORS = (*Strategy, "sticky", COOPERATIVE)
"""Those of Kafka's own clients: two that old consumers have as well, and two that they have not."""


def find_unmixable(picture: Picture) -> Iterator[Verdict]:
    wanted = picture.spec.assignment_strategy
    if wanted is None:
        return
    found = group_of(picture)
    if found.type is GroupType.CONSUMER:
        yield fail(NO_CLIENT_STRATEGY, f"group {found.name} is held by the consumer protocol: its brokers assign, not its"
                   " members",
                   subject=found.name, unblocks="set group.remote.assignor on the clients instead")
    families = {wanted.to == COOPERATIVE, found.assignor == COOPERATIVE}
    if wanted.client_family == "Librdkafka" and len(families) > 1:
        yield fail(STRATEGIES_CANNOT_MIX, f"librdkafka cannot have {found.assignor} and {wanted.to} in one list: the"
                   " client does not start", subject=wanted.to, observed=found.assignor, threshold=wanted.to,
                   unblocks="stop all members and start them with the new strategy (a Deployment with strategy Recreate),"
                            " or go straight to the consumer protocol (spec.protocol), which has no such limit for eager"
                            " groups")
    if wanted.to == found.assignor:
        yield fail(NOTHING_TO_CHANGE, f"group {found.name} uses {wanted.to} already", subject=found.name,
                   unblocks="nothing to do: delete this migration, or name another strategy in spec.assignmentStrategy")
    for workload in picture.spec.workloads:
        if workload.bridge is None:
            yield fail(BRIDGE_MISSING, f"workload {workload.name} has no bridge: the first bounce needs a list with both"
                       " strategies", subject=workload.name,
                       unblocks=f"add a bridge that sets partition.assignment.strategy to {wanted.to},{found.assignor}")


CHECKS = (check("Strategies", find_unmixable, "the members can have both strategies in between"),)
