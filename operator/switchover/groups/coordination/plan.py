"""The plan of a group whose coordination moves between ZooKeeper and Kafka (KIP-125; docs/facts/coordination.md#kip-125).

To Kafka: old consumers give way to migration-enabled ones, the mode is toggled, and these give way to KafkaConsumers. To
ZooKeeper the same backwards: the rollback of the one is the way forward of the other.
"""

from collections.abc import Mapping

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import ConsumerGroupMigrationStep as Name
from switchover.api.consumer_group_migration import CoordinationMigration
from switchover.coordination.mode import Mode
from switchover.engine.effects import Effect
from switchover.engine.plan import Correction, Leg, Plan, Step, until_seen
from switchover.groups import goals, slots
from switchover.groups.coordination import mode, preflight
from switchover.groups.coordination.brokers import BROKERS_VISIBLE, CAPACITY
from switchover.groups.coordination.members import Consumer, consumers
from switchover.groups.coordination.membership import (
    ALL_MOVED,
    CONVERGED,
    COVERAGE_KEPT,
    COVERED,
    NEW_PODS_JOIN,
    NO_FOREIGN_MEMBERS,
    PODS_ARE_MEMBERS,
    PROGRESSED,
)
from switchover.groups.coordination.mode import RemoveGuards
from switchover.groups.coordination.toggle import (
    FOLLOWED,
    INTRUDERS,
    KAFKA_CONSUMERS_GONE,
    KAFKA_REACHED,
    MODE_KEPT,
    QUIET,
    UNGUARDED,
    ZOOKEEPER_REACHED,
)
from switchover.groups.gates.convergence import CALM, OFFSETS_REPLICATED, ONE_COORDINATOR
from switchover.groups.gates.ending import AUDIT_CLEAN, SOAKED, WITHIN_WINDOW
from switchover.groups.gates.lag import GOES_ON, LAG_HEALTHY
from switchover.groups.gates.workloads import AUTOSCALERS_PAUSED, CLAIMED, OURS, RELEASED
from switchover.groups.picture import INTERMEDIATE, ORIGINAL, TARGET, Picture
from switchover.groups.preflight.workloads import MOVABLE
from switchover.groups.slots import Gates

GUARDED: Gates = (OURS, ONE_COORDINATOR, INTRUDERS, MODE_KEPT)
"""What stops a rollout at once. A rollback may be what takes an intruder away: it goes on."""
WATCH: Gates = (*GUARDED, NEW_PODS_JOIN, GOES_ON, COVERAGE_KEPT, NO_FOREIGN_MEMBERS)
BEFORE: Gates = (WITHIN_WINDOW, CONVERGED, LAG_HEALTHY, OFFSETS_REPLICATED)
AFTER: Gates = (PODS_ARE_MEMBERS, FOLLOWED, CONVERGED, COVERED, PROGRESSED, LAG_HEALTHY, CALM)
HEALTHY: Gates = (PODS_ARE_MEMBERS, FOLLOWED, CONVERGED, COVERED, LAG_HEALTHY)
CORRECTIONS: Correction[Picture] = Correction(mode.corrections, ahead=mode.corrections)
READS: Mapping[Consumer, Gates] = {
    Consumer.OLD: (BROKERS_VISIBLE, ZOOKEEPER_REACHED), Consumer.ENABLED: (), Consumer.KAFKA: (KAFKA_REACHED,)}
"""What must hold before a consumer of this kind starts: it reads one store, a migration-enabled one reads both."""


def _replaced(to: str, consumer: Consumer) -> Leg[Picture]:
    """Pods of the next mode, canary first."""
    return Leg(
        enter=(WITHIN_WINDOW, CAPACITY, OFFSETS_REPLICATED, MODE_KEPT, FOLLOWED, CONVERGED),
        watch=WATCH, keep=CORRECTIONS, goal=goals.template(to),
        rollouts=(slots.forward_to(to, before=(*BEFORE, *READS[consumer]), after=AFTER),))


def _put_back(to: str, consumer: Consumer) -> Leg[Picture]:
    return Leg(
        watch=(OURS, ONE_COORDINATOR, MODE_KEPT), done=(INTRUDERS,), keep=CORRECTIONS,
        goal=goals.template(to),
        rollouts=(slots.back_to(to, before=READS[consumer], after=(PODS_ARE_MEMBERS,)),))


def _toggled(to: Mode, *, back: bool) -> Leg[Picture]:
    """The mode is written and followed. In a rollback it asks for what keeps two consumers apart, not for health."""
    apart: Gates = (QUIET,) if to is Mode.KAFKA else (KAFKA_CONSUMERS_GONE, AUTOSCALERS_PAUSED)
    well: Gates = () if back else (WITHIN_WINDOW, CAPACITY, OFFSETS_REPLICATED, PODS_ARE_MEMBERS, FOLLOWED, CONVERGED,
                                   LAG_HEALTHY)
    unguarded: Gates = (UNGUARDED,) if to is Mode.ZOOKEEPER else ()
    return Leg(
        enter=(*apart, *well), watch=(OURS, ONE_COORDINATOR, INTRUDERS),
        keep=Correction(mode.corrections_in_toggle, ahead=mode.corrections), goal=toggled,
        done=(MODE_KEPT, FOLLOWED, *unguarded, CONVERGED, COVERED, *(() if back else (LAG_HEALTHY,))))


def toggled(picture: Picture) -> tuple[Effect, ...]:
    """The mode that is wanted; and when every member follows ZooKeeper's, no guards."""
    return mode.toggled(picture) or _unguarded(picture)


def _unguarded(picture: Picture) -> tuple[Effect, ...]:
    if not isinstance(picture.members, Known) or mode.wanted(picture) is not Mode.ZOOKEEPER:
        return ()
    members = picture.members.value
    if not members.guards or members.followed != {Mode.ZOOKEEPER} or FOLLOWED.check(picture).outcome != "Pass":
        return ()
    return (RemoveGuards(picture.spec.group, members.guards),)


def claimed(picture: Picture) -> tuple[Effect, ...]:
    """The workloads first, then the mode that the first migration-enabled member must find."""
    return goals.claim(picture) or mode.corrections(picture)


BASELINE: Step[Picture] = Step(
    Name.BASELINE, back=Leg(goal=goals.release, done=(RELEASED,)),
    forward=Leg(
        enter=(WITHIN_WINDOW, MOVABLE), assigns=slots.assign_slots, goal=claimed,
        done=(CLAIMED, AUTOSCALERS_PAUSED, MODE_KEPT, *HEALTHY)))
SETTLE: Step[Picture] = Step(
    Name.SETTLE, back=Leg(),
    forward=Leg(watch=(*GUARDED, GOES_ON, COVERAGE_KEPT), keep=CORRECTIONS,
                done=(SOAKED, ALL_MOVED, *HEALTHY)))
AUDIT: Step[Picture] = Step(
    Name.AUDIT, back=Leg(),
    forward=Leg(watch=(*GUARDED, GOES_ON, COVERAGE_KEPT), keep=CORRECTIONS, goal=goals.audit_job,
                done=(AUDIT_CLEAN,)))
HAND_OVER: Step[Picture] = Step(
    Name.HAND_OVER, back=None, unbegun=until_seen(goals.check_release_begun),
    forward=Leg(goal=goals.release, done=(RELEASED,)))
PREFLIGHT: Step[Picture] = Step(Name.PREFLIGHT, forward=Leg(done=preflight.GATES), back=Leg(one_way=True))


def plan_of(migration: CoordinationMigration, *, audited: bool = False) -> Plan[Picture]:
    """The steps that a spec asks for; with the audit's where they are to be `audited`."""
    end = (SETTLE, AUDIT, HAND_OVER) if audited else (SETTLE, HAND_OVER)
    there, back = (Mode.KAFKA, Mode.ZOOKEEPER) if migration.to == "Kafka" else (Mode.ZOOKEEPER, Mode.KAFKA)
    toggle = Step(Name.TOGGLE, forward=_toggled(there, back=False), back=_toggled(back, back=True))
    if migration.replace == "Nothing":
        return Plan((PREFLIGHT, BASELINE, toggle, *end))
    first, between, last = consumers(migration)
    onward = Name.REPLACE_WITH_KAFKA_CONSUMERS if last is Consumer.KAFKA else Name.REPLACE_WITH_OLD_CONSUMERS
    return Plan((
        PREFLIGHT, BASELINE,
        Step(Name.REPLACE_WITH_MIGRATION_ENABLED, forward=_replaced(INTERMEDIATE, between),
             back=_put_back(ORIGINAL, first)),
        toggle,
        Step(onward, forward=_replaced(TARGET, last),
             back=_put_back(INTERMEDIATE, between)),
        *end))
