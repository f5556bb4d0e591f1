"""ConsumerGroupMigration as a kind of migration."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import ConsumerGroupMigration, ConsumerGroupMigrationStep
from switchover.engine.figures import Figure
from switchover.engine.gate import Verdict
from switchover.engine.intent import intent_of
from switchover.engine.pace import Spent, waits_for_a_person
from switchover.engine.plan import Decision, Intent, Plan
from switchover.engine.policy import Policy
from switchover.engine.status import cluster_of, entered_of, made_of, position_of
from switchover.groups import deletion, slots
from switchover.groups.digest import digest
from switchover.groups.figures import figures
from switchover.groups.picture import Facts, Picture
from switchover.groups.plan import plan_of
from switchover.groups.status import cluster_id, next_status, records_of, telling


class ConsumerGroupMigrations:
    """`engine.kind.Kind` of ConsumerGroupMigration: every question goes to the room that knows."""

    short = "cgmig"
    steps = tuple(ConsumerGroupMigrationStep)

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def read(self, raw: Mapping[str, Any]) -> ConsumerGroupMigration:
        return ConsumerGroupMigration.model_validate(raw)

    def picture(self, migration: ConsumerGroupMigration, namespace: str, now: float) -> Picture:
        status = migration.status
        position = position_of(status, records_of(status), now)
        return Picture(migration.metadata.name, namespace, migration.metadata.uid, migration.spec, position, Facts(), now,
                       entered_of(status.steps), policy=self._policy, made=made_of(status))

    def reached_by(self, migration: ConsumerGroupMigration) -> object:
        spec = migration.spec
        return spec.kafka, spec.zookeeper, spec.group, spec.accepted_risks

    def plan(self, picture: Picture) -> Plan[Picture]:
        return plan_of(picture.spec)

    def intent(self, migration: ConsumerGroupMigration) -> Intent:
        return intent_of(migration, plan_of(migration.spec), self._policy)

    def claims(self, migration: ConsumerGroupMigration, picture: Picture) -> str:
        """One Lease for each group of each Kafka cluster."""
        if not (found := cluster_of(migration.status, cluster_id(picture))):
            return ""
        return f"switchover-group-{hashlib.sha256(f'{found}/{migration.spec.group}'.encode()).hexdigest()[:12]}"

    def with_holder(self, picture: Picture, holder: str, now: float) -> Picture:
        return replace(picture, facts=replace(picture.facts, lease_holder=holder), now=now)

    def remaining(self, picture: Picture, decision: Decision) -> float | None:
        if decision.position.finished or waits_for_a_person(decision):
            return None
        return slots.seconds_left(picture.at(decision.position))

    def observed_modes(self, picture: Picture) -> Mapping[str, str]:
        seen = {slot: slots.sight(picture, slot) for slot in picture.position.nodes}
        return {slot: found.value.mode for slot, found in seen.items() if isinstance(found, Known) and found.value.mode}

    def recorded_modes(self, migration: ConsumerGroupMigration) -> Mapping[str, str]:
        return {slot.name: slot.observed for slot in migration.status.slots}

    def fold(self, migration: ConsumerGroupMigration, picture: Picture, decision: Decision, spent: Spent,
             remaining: float | None, seen: Mapping[str, str]) -> ConsumerGroupMigration:
        return migration.evolve(status=next_status(migration, picture, decision, spent, remaining, seen))

    def is_news(self, before: ConsumerGroupMigration, after: ConsumerGroupMigration) -> bool:
        return telling(before.status) != telling(after.status)

    def figures(self, migration: ConsumerGroupMigration, picture: Picture | None) -> Sequence[Figure]:
        return figures(migration.status, self.steps, picture)

    def digest(self, picture: Picture) -> Mapping[str, str]:
        return digest(picture)

    def may_go(self, migration: ConsumerGroupMigration) -> bool:
        return deletion.may_go(migration)

    def is_untouched(self, migration: ConsumerGroupMigration) -> bool:
        return migration.status.progress.step in deletion.UNTOUCHED

    def while_deleted(self, intent: Intent, picture: Picture) -> Intent:
        return deletion.while_deleted(intent, picture)

    def check_deletion(self, picture: Picture) -> Verdict:
        return deletion.check_deletion(picture)
