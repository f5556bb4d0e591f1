"""KafkaMigration as a kind of migration: each question with the function that answers it."""

from collections.abc import Mapping
from dataclasses import replace

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
from switchover.engine.intent import intent_of
from switchover.engine.kind import Kind
from switchover.engine.policy import Policy
from switchover.engine.status import cluster_of, entered_of, made_of, position_of


def kafka_migrations(policy: Policy, image: str) -> Kind[KafkaMigration, Picture]:
    """All of them, with what the chart allows them, and the operator's own image."""
    def picture(migration: KafkaMigration, namespace: str, now: float) -> Picture:
        status = migration.status
        position = position_of(status, on_record.records_of(status), now)
        return Picture(
            migration.metadata.name, namespace, migration.metadata.uid, migration.spec, position, Facts(), now, PLAN,
            status.high_watermark, entered_of(status.steps), on_record.paces_of(status), on_record.volumes_of(status),
            on_record.rehearsed_of(status), made_of(status), policy, image,
            "" if position.step == PREFLIGHT else status.cluster_id)

    return Kind(
        short="kmig", steps=PLAN.names, read=KafkaMigration.model_validate, picture=picture, reached_by=_reached_by,
        plan=lambda _: PLAN, intent=lambda migration: intent_of(migration, PLAN, policy), claims=_claims,
        with_holder=_with_holder, remaining=remaining, observed_modes=_observed_modes,
        recorded_modes=lambda migration: {node.name: node.observed for node in migration.status.nodes},
        next_status=next_status, telling=telling,
        figures=lambda migration, picture: figures(migration.spec, migration.status, picture), digest=digest,
        untouched=deletion.UNTOUCHED, may_go=deletion.may_go, while_deleted=deletion.while_deleted,
        check_deletion=deletion.check_deletion)


def _reached_by(migration: KafkaMigration) -> object:
    spec = migration.spec
    return spec.kafka, spec.zookeeper, spec.controllers.name, spec.controllers.listener, spec.accepted_risks


def _claims(migration: KafkaMigration, picture: Picture) -> str:
    """One Lease for each Kafka cluster."""
    found = cluster_of(migration.status, cluster_id(picture))
    return names.lease(found) if found else ""


def _with_holder(picture: Picture, holder: str, now: float) -> Picture:
    facts = picture.facts
    if isinstance(facts.kubernetes, Known):
        state = replace(facts.kubernetes.value, lease_holder=holder)
        facts = replace(facts, kubernetes=Known(state, facts.kubernetes.at))
    return replace(picture, facts=facts, now=now)


def _observed_modes(picture: Picture) -> Mapping[str, str]:
    found = {name: picture.mode(record.node_id) for name, record in picture.position.nodes.items()}
    return {name: mode.value for name, mode in found.items() if isinstance(mode, Known)}
