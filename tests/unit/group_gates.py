"""Every gate of the plans of a group, and a healthy picture of the moment at which it is asked."""

from collections.abc import Callable
from dataclasses import replace

from switchover.groups import gates, preflight
from switchover.groups.picture import Picture
from switchover.kafka.group import GroupState
from unit.each_gate import every_gate
from unit.group_pictures import (
    AUDIT,
    BOUNCES,
    NOW,
    STRATEGY,
    TO_CLASSIC,
    all_consumer,
    at_start,
    mixed,
    moment,
    spec_of,
    with_group,
    with_source,
    workload_of,
)

GATES = every_gate(gates, preflight)


def downgrading() -> Picture:
    """From the consumer protocol back to the classic one."""
    return moment("Preflight", spec=spec_of(workload_of(template=TO_CLASSIC), protocol={"to": "Classic"}))


def bouncing(step: str = "BounceTwo", modes: str = "IIIIII") -> Picture:
    return moment(step, modes, spec=spec_of(workload_of(**BOUNCES), **STRATEGY))


def stopped() -> Picture:
    """No pod and no member is left."""
    picture = moment("Stop", spec=spec_of(protocol={"to": "Consumer", "strategy": "Offline"}))
    return with_group(members=(), state=GroupState.EMPTY)(with_source(pods={}, replicas=0)(picture))


def auditing() -> Picture:
    """The soak is over and the audit's Job has ended."""
    return moment("Audit", "TTTTTT", spec=spec_of(audit=AUDIT))


def released() -> Picture:
    """The claim is taken off."""
    return with_source(claimed_by="")(moment("HandOver", "TTTTTT"))


def proven() -> Picture:
    """The canaries bake."""
    picture = mixed()
    batch = replace(picture.position.batch, proven=NOW - 30)
    return picture.at(replace(picture.position, batch=batch))


MOMENTS: dict[str, Callable[[], Picture]] = {
    **dict.fromkeys((gate.name for gate in preflight.GATES), at_start),
    "Strategies": lambda: at_start(**STRATEGY, workloads=(workload_of(**BOUNCES),)),
    **dict.fromkeys(("WorkloadsClaimed", "AutoscalersPaused"), lambda: moment("Canary", opened=None)),
    **dict.fromkeys(("OneCoordinator", "WorkloadsAreOurs", "NewPodsJoin", "GoesOn", "CoverageKept", "WithinWindow",
                     "Converged", "Covered", "LagHealthy", "LagRecovered", "GroupConverted", "Progressed",
                     "PlainAssignments"), mixed),
    "Calm": proven,
    **dict.fromkeys(("Soaked", "AllMoved"), all_consumer),
    "GroupEmpty": stopped,
    "WorkloadsReleased": released,
    "RecordHolds": lambda: moment("HandOver", "TTTTTT"),
    "StrategyOffered": bouncing,
    "ProbeExpired": lambda: replace(bouncing(), position=replace(bouncing().position, opened=NOW - 60)),
    "AuditClean": auditing,
    "StrategySelected": lambda: with_group(assignor="cooperative-sticky")(bouncing()),
}
"""The moment at which each gate is asked."""
