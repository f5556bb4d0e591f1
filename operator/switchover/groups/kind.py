"""ConsumerGroupMigration as a kind of migration: each question with the function that answers it."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import ConsumerGroupMigration, ConsumerGroupMigrationStep
from switchover.engine.intent import intent_of
from switchover.engine.kind import Kind
from switchover.engine.pace import waits_for_a_person
from switchover.engine.plan import Decision
from switchover.engine.policy import Policy
from switchover.engine.status import cluster_of, entered_of, made_of, position_of
from switchover.groups import deletion, slots
from switchover.groups.digest import digest
from switchover.groups.figures import figures
from switchover.groups.picture import Facts, Picture
from switchover.groups.plan import plan_of
from switchover.groups.status import cluster_id, next_status, records_of, telling


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
        with_holder=_with_holder, remaining=_remaining, observed_modes=_observed_modes,
        recorded_modes=lambda migration: {slot.name: slot.observed for slot in migration.status.slots},
        next_status=next_status, telling=telling,
        figures=lambda migration, picture: figures(migration.status, steps, picture), digest=digest,
        untouched=deletion.UNTOUCHED, may_go=deletion.may_go, while_deleted=deletion.while_deleted,
        check_deletion=deletion.check_deletion)


def _reached_by(migration: ConsumerGroupMigration) -> object:
    spec = migration.spec
    return spec.kafka, spec.zookeeper, spec.group, spec.accepted_risks


def _claims(migration: ConsumerGroupMigration, picture: Picture) -> str:
    """One Lease for each group of each Kafka cluster."""
    if not (found := cluster_of(migration.status, cluster_id(picture))):
        return ""
    return f"switchover-group-{hashlib.sha256(f'{found}/{migration.spec.group}'.encode()).hexdigest()[:12]}"


def _with_holder(picture: Picture, holder: str, now: float) -> Picture:
    return replace(picture, facts=replace(picture.facts, lease_holder=holder), now=now)


def _remaining(picture: Picture, decision: Decision) -> float | None:
    if decision.position.finished or waits_for_a_person(decision):
        return None
    return slots.seconds_left(picture.at(decision.position))


def _observed_modes(picture: Picture) -> Mapping[str, str]:
    seen = {slot: slots.sight(picture, slot) for slot in picture.position.nodes}
    return {slot: found.value.mode for slot, found in seen.items() if isinstance(found, Known) and found.value.mode}
