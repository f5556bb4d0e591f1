"""ConsumerGroupMigration as a kind of migration: each question with the function that answers it."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from switchover.answers.observed import NOT_ASKED, Known
from switchover.api.consumer_group_migration import (
    ConsumerGroupMigration,
    ConsumerGroupMigrationStatus,
    ConsumerGroupMigrationStep,
)
from switchover.api.consumer_group_migration import ConsumerGroupMigrationStep as Name
from switchover.api.status import Direction
from switchover.engine.gate import Verdict, wait
from switchover.engine.intent import ABANDON, intent_of, or_abandon
from switchover.engine.kind import Deletion, Kind
from switchover.engine.pace import Spent, waits_for_a_person
from switchover.engine.plan import Decision, Intent
from switchover.engine.policy import Policy
from switchover.engine.status import cluster_of, entered_of, made_of, position_of
from switchover.groups import slots
from switchover.groups.figures import figures
from switchover.groups.picture import Facts, Picture
from switchover.groups.plan import plan_of
from switchover.groups.status import cluster_id, next_status, records_of, telling
from switchover.kafka.group import NO_EPOCH, Group
from switchover.reasons.walk import BEING_DELETED, HELD_UNTIL_THE_END

UNTOUCHED = ("", Name.PREFLIGHT)


def may_go(migration: ConsumerGroupMigration) -> bool:
    """Nothing was touched, the migration has ended one way or the other, or somebody wants it gone as it is."""
    progress = migration.status.progress
    return progress.step in UNTOUCHED or progress.complete_time is not None or ABANDON in migration.metadata.annotations


def while_deleted(intent: Intent, picture: Picture) -> Intent:
    """The intent of an object that is being deleted."""
    if picture.position.step == Name.HAND_OVER:
        return replace(intent, direction=Direction.FORWARD, paused=False)
    return replace(intent, direction=Direction.BACKWARD, paused=False)


def check_deletion(picture: Picture) -> Verdict:
    """Why an object that is being deleted is still there, and what ends that."""
    if picture.position.step == Name.HAND_OVER:
        return wait(HELD_UNTIL_THE_END, "it is being deleted: what it made is removed first", subject=picture.name,
                    unblocks=f"wait until the workloads are handed over, {or_abandon(picture.named)}")
    return wait(BEING_DELETED, "it is being deleted: all that it changed is taken back first", subject=picture.name,
                unblocks=f"wait until the rollback has ended, {or_abandon(picture.named)}")


def digest(picture: Picture) -> Mapping[str, str]:
    """Sentences by their subject. Modes, states and counts alone: a group may have a thousand members."""
    return dict(_digested(picture))


def _digested(picture: Picture) -> Iterator[tuple[str, str]]:
    facts = picture.facts
    if picture.position.nodes:
        sights = (slots.sight(picture, slot) for slot in picture.position.nodes)
        modes = Counter(found.value.mode if isinstance(found, Known) else "" for found in sights)
        yield "slots", "are " + ", ".join(f"{modes[mode]} {mode or 'in no mode'}" for mode in sorted(modes))
    if isinstance(facts.group, Known):
        yield "the group", _group(facts.group.value)
        yield "its coordinator", f"is broker {facts.group.value.coordinator}"
    elif facts.group is not NOT_ASKED:
        yield "the group", "cannot be seen"
    if isinstance(facts.lag, Known):
        yield "its lag", f"is judged {facts.lag.value.gate.effect.name}"
    if isinstance(facts.zookeeper, Known):
        world = facts.zookeeper.value
        yield "the mode in ZooKeeper", f"is {world.mode or 'none'}"
        yield "members in ZooKeeper", f"are {len(world.acknowledgements)}, and {len(world.old)} of the old consumer"


def _group(group: Group) -> str:
    epoch = f", epoch {group.epoch}" if group.epoch != NO_EPOCH else ""
    return f"is {group.type} and {group.state} with {len(group.members)} members{epoch}"


def consumer_group_migrations(policy: Policy) -> Kind[ConsumerGroupMigration, Picture]:
    """All of them, with what the chart allows them."""
    def picture(migration: ConsumerGroupMigration, namespace: str, now: float) -> Picture:
        status = migration.status
        position = position_of(status, records_of(status), now)
        return Picture(migration.metadata.name, namespace, migration.metadata.uid, migration.spec, position, Facts(), now,
                       entered_of(status.steps), policy=policy, made=made_of(status))

    steps = tuple(ConsumerGroupMigrationStep)
    return Kind(
        short="cgmig", steps=steps, read=ConsumerGroupMigration.model_validate, picture=picture, reached_by=_reached_by,
        plan=lambda picture: plan_of(picture.spec),
        intent=lambda migration: intent_of(migration, plan_of(migration.spec), policy), claims=_claims,
        recorded_modes=lambda migration: {slot.name: slot.observed for slot in migration.status.slots},
        next_status=_next_status, telling=telling,
        figures=lambda migration, picture: figures(migration.status, steps, picture), digest=digest,
        deletion=Deletion(UNTOUCHED, may_go, while_deleted, check_deletion))


def _reached_by(migration: ConsumerGroupMigration) -> object:
    spec = migration.spec
    return spec.kafka, spec.zookeeper, spec.group, spec.accepted_risks


def _claims(migration: ConsumerGroupMigration, picture: Picture) -> str:
    """One Lease for each group of each Kafka cluster."""
    if not (found := cluster_of(migration.status, cluster_id(picture))):
        return ""
    return f"switchover-group-{hashlib.sha256(f'{found}/{migration.spec.group}'.encode()).hexdigest()[:12]}"


def _next_status(migration: ConsumerGroupMigration, picture: Picture, decision: Decision, spent: Spent,
                 seen: Mapping[str, str]) -> ConsumerGroupMigrationStatus:
    return next_status(
        migration, picture, decision, spent, _remaining(picture, decision), {**seen, **_observed_modes(picture)})


def _remaining(picture: Picture, decision: Decision) -> float | None:
    if decision.position.finished or waits_for_a_person(decision):
        return None
    return slots.seconds_left(picture.at(decision.position))


def _observed_modes(picture: Picture) -> Mapping[str, str]:
    seen = {slot: slots.sight(picture, slot) for slot in picture.position.nodes}
    return {slot: found.value.mode for slot, found in seen.items() if isinstance(found, Known) and found.value.mode}
