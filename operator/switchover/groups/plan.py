"""The plans of a ConsumerGroupMigration as tables: which steps there are depends on the spec.

Slots go from Original to Target, over Intermediate where the spec has a bridge (picture.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product

from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec, CoordinationMigration
from switchover.api.consumer_group_migration import ConsumerGroupMigrationStep as Name
from switchover.engine.plan import Correction, Leg, Plan, Rescue, Step, until_seen
from switchover.groups import goals, preflight, slots
from switchover.groups.coordination import plan as coordination
from switchover.groups.gates.convergence import (
    CALM,
    CAPACITY,
    CONVERGED,
    COVERAGE_KEPT,
    COVERED,
    OFFSETS_REPLICATED,
    ONE_COORDINATOR,
)
from switchover.groups.gates.ending import AUDIT_CLEAN, EMPTY, SOAKED, WITHIN_WINDOW
from switchover.groups.gates.lag import GOES_ON, LAG_HEALTHY, LAG_RECOVERED, PROGRESSED
from switchover.groups.gates.membership import (
    ALL_MOVED,
    GROUP_CONVERTED,
    NEW_PODS_JOIN,
    NO_FOREIGN_MEMBERS,
    PODS_ARE_MEMBERS,
)
from switchover.groups.gates.on_record import RECORD_HOLDS
from switchover.groups.gates.protocol import OFFERED, PLAIN_ASSIGNMENTS, PROBE_EXPIRED, READY, SELECTED
from switchover.groups.gates.workloads import AUTOSCALERS_PAUSED, CLAIMED, OURS, RELEASED
from switchover.groups.picture import INTERMEDIATE, ORIGINAL, TARGET, Picture
from switchover.groups.preflight.workloads import MOVABLE
from switchover.groups.slots import Gates

WATCH: Gates = (OURS, ONE_COORDINATOR, NEW_PODS_JOIN, GOES_ON, COVERAGE_KEPT, NO_FOREIGN_MEMBERS)
"""What stops a rollout at once; none of it is shut by what a rebalance does by right."""
BEFORE: Gates = (WITHIN_WINDOW, CONVERGED, LAG_HEALTHY, OFFSETS_REPLICATED)
AFTER: Gates = (PODS_ARE_MEMBERS, GROUP_CONVERTED, CONVERGED, COVERED, PROGRESSED, LAG_HEALTHY, CALM)
HEALTHY: Gates = (PODS_ARE_MEMBERS, CONVERGED, COVERED, LAG_HEALTHY)
RECOVERED: Gates = (PODS_ARE_MEMBERS, CONVERGED, COVERED, LAG_RECOVERED)

to = partial(slots.forward_to, before=BEFORE, after=AFTER)
back_to = partial(slots.back_to, after=(PODS_ARE_MEMBERS,))
RESTART_ONE = slots.restart_one(after=(PODS_ARE_MEMBERS,))
"""One pod restarted: its joining makes a coordinator assign again that has forgotten to
(docs/facts/groups.md#upgrade-alone-from-43-on)."""

PREFLIGHT: Step[Picture] = Step(
    Name.PREFLIGHT, forward=Leg(done=preflight.GATES), back=Leg(one_way=True))
BASELINE: Step[Picture] = Step(
    Name.BASELINE,
    forward=Leg(
        enter=(WITHIN_WINDOW, MOVABLE), assigns=slots.assign_slots, goal=goals.claim,
        done=(CLAIMED, AUTOSCALERS_PAUSED, *HEALTHY)),
    back=Leg(
        watch=(COVERAGE_KEPT,), rescues=(Rescue((COVERAGE_KEPT,), RESTART_ONE),), goal=goals.release, done=(RELEASED,)))
SETTLE: Step[Picture] = Step(
    Name.SETTLE, back=Leg(),
    forward=Leg(watch=(OURS, ONE_COORDINATOR, GOES_ON, COVERAGE_KEPT), done=(SOAKED, ALL_MOVED, *HEALTHY)))
AUDIT: Step[Picture] = Step(
    Name.AUDIT, back=Leg(),
    forward=Leg(watch=(OURS, GOES_ON, COVERAGE_KEPT), goal=goals.audit_job, done=(AUDIT_CLEAN,)))
HAND_OVER: Step[Picture] = Step(
    Name.HAND_OVER, back=None, unbegun=until_seen(goals.check_release_begun),
    forward=Leg(keep=Correction(ahead=goals.corrections), goal=goals.release, done=(RELEASED,)))


@dataclass(frozen=True, slots=True)
class _Shape:
    """All of a spec that makes its plan another one: few plans are for many specs."""

    coordination: CoordinationMigration | None
    audited: bool
    offline: bool
    bridged: bool
    protocol: bool
    strategy: bool


def _first(spec: _Shape) -> tuple[Step[Picture], ...]:
    """From the original, over the canary: to the intermediate, or to the target where nothing is between."""
    enter: Gates = (
        WITHIN_WINDOW, CAPACITY, OFFSETS_REPLICATED, CONVERGED, *(() if spec.bridged else (PLAIN_ASSIGNMENTS, READY)))
    there = INTERMEDIATE if spec.bridged else TARGET
    names = (Name.BRIDGE_CANARY, Name.BRIDGE) if spec.bridged and spec.protocol else (
        (Name.BOUNCE_ONE_CANARY, Name.BOUNCE_ONE) if spec.bridged else (Name.CANARY, Name.ROLLOUT))
    return (
        Step(names[0],
             forward=Leg(enter=enter, watch=WATCH, goal=goals.template(there), rollouts=(to(there, canary=True),)),
             back=Leg(watch=(OURS,), goal=goals.template(ORIGINAL), rollouts=(back_to(ORIGINAL),))),
        Step(names[1], back=Leg(),
             forward=Leg(watch=WATCH, goal=goals.template(there), rollouts=(to(there, after_canary=True),))),
    )


def _second(spec: _Shape) -> tuple[Step[Picture], ...]:
    """From the intermediate to the target."""
    enter: Gates = (WITHIN_WINDOW, CAPACITY, CONVERGED, PLAIN_ASSIGNMENTS, READY)
    back: Leg[Picture] = Leg(watch=(OURS,), goal=goals.template(INTERMEDIATE), rollouts=(back_to(INTERMEDIATE),))
    if spec.strategy:
        forward: Leg[Picture] = Leg(
            enter=(*enter, OFFERED), watch=WATCH, goal=goals.template(TARGET), done=(SELECTED,),
            rollouts=(to(TARGET, before=(PROBE_EXPIRED, *BEFORE)),))
        return (Step(Name.BOUNCE_TWO, forward=forward, back=back),)
    return (
        Step(Name.CANARY, back=back,
             forward=Leg(enter=enter, watch=WATCH, goal=goals.template(TARGET), rollouts=(to(TARGET, canary=True),))),
        Step(Name.ROLLOUT, back=Leg(),
             forward=Leg(watch=WATCH, goal=goals.template(TARGET), rollouts=(to(TARGET, after_canary=True),))),
    )


OFFLINE: tuple[Step[Picture], ...] = (
    Step(Name.STOP,
         forward=Leg(enter=(WITHIN_WINDOW,), goal=goals.stopped, done=(EMPTY,)),
         back=Leg(goal=goals.started, done=RECOVERED)),
    Step(Name.START,
         forward=Leg(assigns=slots.assign_all(TARGET), watch=(NEW_PODS_JOIN,), goal=goals.started_as_target,
                     done=(ALL_MOVED, *RECOVERED)),
         back=Leg(assigns=slots.assign_all(ORIGINAL), goal=goals.stopped_as_original, done=(EMPTY,))),
)


def plan_of(spec: ConsumerGroupMigrationSpec) -> Plan[Picture]:
    """The steps that a spec asks for, each believed only with what was left behind before it."""
    return _plan(_Shape(
        spec.coordination, spec.audit.enabled, spec.protocol is not None and spec.protocol.strategy == "Offline",
        any(workload.bridge is not None for workload in spec.workloads), spec.protocol is not None,
        spec.assignment_strategy is not None))


def plans() -> Iterator[Plan[Picture]]:
    """Every plan that a spec can ask for."""
    moved = (CoordinationMigration.model_validate({"to": to, "replace": replace})
             for to, replace in product(("Kafka", "ZooKeeper"), ("All", "Nothing")))
    for between in (None, *moved):
        yield from (_plan(_Shape(between, *flags)) for flags in product((False, True), repeat=5))


@lru_cache(maxsize=64)
def _plan(spec: _Shape) -> Plan[Picture]:
    return Plan(tuple(_steps(spec)), rests_on=(RECORD_HOLDS,))


def _steps(spec: _Shape) -> Sequence[Step[Picture]]:
    audited = (AUDIT,) if spec.audited else ()
    if spec.coordination is not None:
        return coordination.plan_of(spec.coordination, audited=spec.audited).steps
    moving = OFFLINE if spec.offline else (*_first(spec), *(_second(spec) if spec.bridged else ()))
    return (PREFLIGHT, BASELINE, *map(_corrected, (*moving, SETTLE, *audited)), HAND_OVER)


def _corrected(step: Step[Picture]) -> Step[Picture]:
    """What others do to the workloads in the middle is taken back, also while a step waits to begin."""
    forward, back = (None if leg is None else replace(leg, keep=Correction(goals.corrections, ahead=goals.corrections))
                     for leg in (step.forward, step.back))
    assert forward is not None
    return replace(step, forward=forward, back=back)
