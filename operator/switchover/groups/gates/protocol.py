"""Whether the coordinator would convert the group now: read again right before the canary
(docs/facts/groups.md#user-data-in-assignments)."""

from switchover.engine.gate import Gate, Verdict, fail, passed, seen, unknown, wait
from switchover.groups.facts import Need
from switchover.groups.picture import Picture
from switchover.groups.reading import coordinator, group_of
from switchover.reasons.groups import (
    ASSIGNMENT_USER_DATA,
    ASSIGNOR_UNKNOWN,
    COORDINATOR_UNKNOWN,
    GROUP_RIGHT_MISSING,
    PROBE_PENDING,
    READINESS_UNKNOWN,
    STRATEGIES_UNKNOWN,
    STRATEGY_NOT_OFFERED,
    STRATEGY_NOT_SELECTED,
)
from switchover.reasons.workloads import PROTOCOL_REFUSED
from switchover.text.command import Command, command
from switchover.text.nearest import meant

NO_RIGHT = ("GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED")
SHORTEST_SESSION, ITS_DEFAULT = "group.min.session.timeout.ms", "6000"
"""How long the coordinator keeps the pending member of a probe: the probe asks for the shortest session that is allowed."""
MARGIN_SECONDS = 2.0


def to_consumer(picture: Picture) -> bool:
    return picture.spec.protocol is not None and picture.spec.protocol.to == "Consumer"


def check_plain_assignments(picture: Picture) -> Verdict:
    """No classic member's assignment carries user data: the broker would take it for a custom assignor's and refuse.

    librdkafka's cooperative-sticky carries some from its second generation on, another length after each rebalance.
    """
    group = group_of(picture)
    carrying = [member for member in group.members if member.user_data > 0]
    if to_consumer(picture) and carrying:
        return fail(ASSIGNMENT_USER_DATA, f"the assignment of {carrying[0].client_id} carries {carrying[0].user_data}"
                    " bytes of user data: the coordinator would refuse every member of the consumer protocol",
                    subject=carrying[0].client_id, observed=f"{len(carrying)} of {len(group.members)} members",
                    threshold="none", unblocks="set spec.protocol.strategy to Offline; with librdkafka's"
                    " cooperative-sticky or"
                    " a custom assignor (Kafka Streams) there is no way online")
    return passed("no assignment carries user data")


def finalize_command(picture: Picture) -> Command:
    """The feature that the consumer protocol needs, for all brokers (KIP-848)."""
    return command("kafka-features.sh --bootstrap-server {} upgrade --feature group.version=1",
                   picture.spec.kafka.bootstrap_servers)


def check_ready(picture: Picture) -> Verdict:
    """The coordinator answers a heartbeat that names an assignor that does not exist with those that do."""
    if not to_consumer(picture):
        return passed("no member of the consumer protocol is to come")
    answer = seen(picture.facts.readiness, READINESS_UNKNOWN, picture.spec.group)
    assert picture.spec.protocol is not None
    if answer.refused in NO_RIGHT:
        return fail(GROUP_RIGHT_MISSING, f"the coordinator refuses a heartbeat from Switchover's user: {answer.refused}",
                    subject=picture.spec.group, observed=answer.refused, threshold="its assignors",
                    unblocks="grant that user Read on the group and Describe on every topic that it subscribes to; the"
                             " members' own users need the same")
    if answer.refused:
        return fail(PROTOCOL_REFUSED, f"the coordinator does not serve the consumer protocol: {answer.refused}",
                    subject=picture.spec.group, observed=answer.refused, threshold="its assignors",
                    unblocks="add consumer to the brokers' group.coordinator.rebalance.protocols, and for"
                             f" UNSUPPORTED_VERSION finalize the feature: {finalize_command(picture)}")
    assignor = picture.spec.protocol.remote_assignor
    if assignor not in answer.assignors:
        return fail(ASSIGNOR_UNKNOWN, f"the brokers have no assignor {assignor}", subject=assignor,
                    observed=", ".join(answer.assignors), threshold=assignor,
                    unblocks="name one of theirs in spec.protocol.remoteAssignor and in the clients' group.remote.assignor"
                    + meant(assignor, answer.assignors))
    return passed(f"the coordinator serves the consumer protocol with {', '.join(answer.assignors)}")


def check_offered(picture: Picture) -> Verdict:
    """Every member offers the strategy that the second bounce leaves as the only one (the probe tells, no name does)."""
    assert picture.spec.assignment_strategy is not None
    strategy = picture.spec.assignment_strategy.to
    if not seen(picture.facts.offered, STRATEGIES_UNKNOWN, picture.spec.group).get(strategy, False):
        return wait(STRATEGY_NOT_OFFERED, f"not every member of group {picture.spec.group} offers {strategy}",
                    subject=strategy, unblocks=f"the bridge of every workload lists {strategy} and what others still have")
    return passed(f"every member offers {strategy}")


def check_probe_expired(picture: Picture) -> Verdict:
    """The pending member that the probe left behind is gone: a rebalance would wait for it
    (docs/facts/groups.md#do-all-members-offer-a-strategy)."""
    broker, opened = coordinator(picture), picture.position.opened
    if broker is None:
        return unknown(COORDINATOR_UNKNOWN, "the group's coordinator did not return its settings",
                       subject=picture.spec.group)
    pending = int(broker.settings.get(SHORTEST_SESSION, ITS_DEFAULT)) / 1000 + MARGIN_SECONDS
    since = 0.0 if opened is None else picture.now - opened
    if since < pending:
        return wait(PROBE_PENDING, "the probe of the members' strategies left a pending member in the group",
                    subject=picture.spec.group, observed=f"{since:.0f} s", threshold=f"{pending:.0f} s",
                    unblocks="nothing: the coordinator drops the member when its session ends")
    return passed("no probe is under way")


def check_selected(picture: Picture) -> Verdict:
    group = group_of(picture)
    assert picture.spec.assignment_strategy is not None
    strategy = picture.spec.assignment_strategy.to
    if group.assignor != strategy:
        return wait(STRATEGY_NOT_SELECTED, f"group {group.name} uses {group.assignor or 'none while it rebalances'}",
                    subject=group.name, observed=group.assignor, threshold=strategy, unblocks="every member has bounced")
    return passed(f"the group uses {strategy}")


PLAIN_ASSIGNMENTS: Gate[Picture] = Gate("PlainAssignments", check_plain_assignments)
READY: Gate[Picture] = Gate("ProtocolReady", check_ready, needs=(Need.READINESS,))
OFFERED: Gate[Picture] = Gate("StrategyOffered", check_offered, needs=(Need.OFFERED,))
PROBE_EXPIRED: Gate[Picture] = Gate("ProbeExpired", check_probe_expired)
SELECTED: Gate[Picture] = Gate("StrategySelected", check_selected)
