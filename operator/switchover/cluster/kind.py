"""KafkaMigration as a kind of migration."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from switchover.answers.observed import Known
from switchover.api.kafka_migration import KafkaMigration
from switchover.cluster import deletion, names, on_record
from switchover.cluster.digest import digest
from switchover.cluster.estimate import remaining
from switchover.cluster.facts import Facts
from switchover.cluster.figures import figures
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.cluster.status import cluster_id, next_status, telling
from switchover.engine.approvals import PREFLIGHT
from switchover.engine.figures import Figure
from switchover.engine.gate import Verdict
from switchover.engine.intent import intent_of
from switchover.engine.pace import Spent
from switchover.engine.plan import Decision, Intent, Plan
from switchover.engine.policy import Policy
from switchover.engine.status import cluster_of, entered_of, made_of, position_of


class KafkaMigrations:
    """`engine.kind.Kind` of KafkaMigration: every question goes to the room that knows."""

    short = "kmig"
    steps = PLAN.names

    def __init__(self, policy: Policy, image: str) -> None:
        self._policy = policy
        self._image = image

    def read(self, raw: Mapping[str, Any]) -> KafkaMigration:
        return KafkaMigration.model_validate(raw)

    def picture(self, migration: KafkaMigration, namespace: str, now: float) -> Picture:
        status = migration.status
        position = position_of(status, on_record.records_of(status), now)
        return Picture(
            migration.metadata.name, namespace, migration.metadata.uid, migration.spec, position, Facts(), now, PLAN,
            status.high_watermark, entered_of(status.steps), on_record.paces_of(status), on_record.volumes_of(status),
            on_record.rehearsed_of(status), made_of(status), self._policy, self._image,
            "" if position.step == PREFLIGHT else status.cluster_id)

    def reached_by(self, migration: KafkaMigration) -> object:
        spec = migration.spec
        return spec.kafka, spec.zookeeper, spec.controllers.name, spec.controllers.listener, spec.accepted_risks

    def plan(self, _: Picture) -> Plan[Picture]:
        return PLAN

    def intent(self, migration: KafkaMigration) -> Intent:
        return intent_of(migration, PLAN, self._policy)

    def claims(self, migration: KafkaMigration, picture: Picture) -> str:
        """One Lease for each Kafka cluster."""
        found = cluster_of(migration.status, cluster_id(picture))
        return names.lease(found) if found else ""

    def with_holder(self, picture: Picture, holder: str, now: float) -> Picture:
        facts = picture.facts
        if isinstance(facts.kubernetes, Known):
            state = replace(facts.kubernetes.value, lease_holder=holder)
            facts = replace(facts, kubernetes=Known(state, facts.kubernetes.at))
        return replace(picture, facts=facts, now=now)

    def remaining(self, picture: Picture, decision: Decision) -> float | None:
        return remaining(picture, decision)

    def observed_modes(self, picture: Picture) -> Mapping[str, str]:
        found = {name: picture.mode(record.node_id) for name, record in picture.position.nodes.items()}
        return {name: mode.value for name, mode in found.items() if isinstance(mode, Known)}

    def recorded_modes(self, migration: KafkaMigration) -> Mapping[str, str]:
        return {node.name: node.observed for node in migration.status.nodes}

    def fold(self, migration: KafkaMigration, picture: Picture, decision: Decision, spent: Spent,
             remaining: float | None, seen: Mapping[str, str]) -> KafkaMigration:
        return migration.evolve(status=next_status(migration, picture, decision, spent, remaining, seen))

    def is_news(self, before: KafkaMigration, after: KafkaMigration) -> bool:
        return telling(before.status) != telling(after.status)

    def figures(self, migration: KafkaMigration, picture: Picture | None) -> Sequence[Figure]:
        return figures(migration.spec, migration.status, picture)

    def digest(self, picture: Picture) -> Mapping[str, str]:
        return digest(picture)

    def may_go(self, migration: KafkaMigration) -> bool:
        return deletion.may_go(migration)

    def is_untouched(self, migration: KafkaMigration) -> bool:
        return migration.status.progress.step in deletion.UNTOUCHED

    def while_deleted(self, intent: Intent, picture: Picture) -> Intent:
        return deletion.while_deleted(intent, picture)

    def check_deletion(self, picture: Picture) -> Verdict:
        return deletion.check_deletion(picture)
