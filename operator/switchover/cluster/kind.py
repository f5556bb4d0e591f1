"""KafkaMigration as a kind of migration: each question with the function that answers it."""

from collections.abc import Mapping
from dataclasses import replace

from switchover.answers.observed import Known
from switchover.api.kafka_migration import KafkaMigration, KafkaMigrationStatus
from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.api.status import Direction
from switchover.cluster import names
from switchover.cluster.estimate import remaining
from switchover.cluster.facts import Facts
from switchover.cluster.figures import digest, figures
from switchover.cluster.picture import Picture
from switchover.cluster.plan import PLAN
from switchover.cluster.reading import is_claimed
from switchover.cluster.status import cluster_id, next_status, paces_of, records_of, rehearsed_of, telling, volumes_of
from switchover.engine.approvals import PREFLIGHT
from switchover.engine.gate import Verdict, wait
from switchover.engine.intent import ABANDON, intent_of, or_abandon
from switchover.engine.kind import Deletion, Kind
from switchover.engine.pace import Spent
from switchover.engine.plan import Decision, Intent
from switchover.engine.policy import Policy
from switchover.engine.status import cluster_of, entered_of, made_of, position_of
from switchover.reasons.walk import BEING_DELETED, HELD_UNTIL_THE_END

# --- deletion -------------------------------------------------------------------------------------------------------------
# A deletion while the migration is under way: before the claim everything is taken back, after it the migration goes on to
# its end. So nothing is left half done (docs/architecture.md#promises). With an annotation the object is deleted at once.

UNTOUCHED = ("", Step.PREFLIGHT, Step.REHEARSE)
UNCLAIMED = (*UNTOUCHED, Step.UPGRADE_BROKERS, Step.RAISE_PROTOCOL_VERSION, Step.PROVISION_CONTROLLERS,
             Step.ENABLE_MIGRATION)
SUCCEEDED = (Step.HAND_OVER, Step.RELEASE_ZOOKEEPER)


def may_go(migration: KafkaMigration) -> bool:
    """Nothing was touched, the migration has ended one way or the other, or somebody wants it gone as it is."""
    progress = migration.status.progress
    ended = progress.complete_time is not None or (
        progress.step in SUCCEEDED and progress.direction is Direction.FORWARD)
    return progress.step in UNTOUCHED or ended or ABANDON in migration.metadata.annotations


def is_before_the_claim(picture: Picture) -> bool:
    """A broker still holds `/controller`. In the step that loses it, only what was seen in this pass says so."""
    if picture.position.step != Step.COPY_METADATA:
        return picture.position.step in UNCLAIMED
    zookeeper = picture.facts.zookeeper
    return isinstance(zookeeper, Known) and zookeeper.value.controller is not None and not is_claimed(zookeeper.value)


def while_deleted(intent: Intent, picture: Picture) -> Intent:
    """The intent of an object that is being deleted. A rollback that has begun goes on."""
    if is_before_the_claim(picture):
        return replace(intent, direction=Direction.BACKWARD, paused=False)
    if picture.position.direction is Direction.BACKWARD:
        return replace(intent, direction=Direction.BACKWARD)
    return intent


def check_deletion(picture: Picture) -> Verdict:
    """Why an object that is being deleted is still there, and what ends that."""
    if picture.position.direction is Direction.BACKWARD or is_before_the_claim(picture):
        return wait(BEING_DELETED, "it is being deleted: all that it changed is taken back first", subject=picture.name,
                    unblocks=f"wait until the rollback has ended, {or_abandon(picture.named)}")
    return wait(HELD_UNTIL_THE_END, "it is being deleted, but Kafka has claimed the cluster for KRaft: the migration"
                " goes on to its end first", subject=picture.name,
                unblocks="wait until it has ended, or set spec.desiredState to RolledBack while a rollback is available,"
                         f" {or_abandon(picture.named)}")


def kafka_migrations(policy: Policy, image: str) -> Kind[KafkaMigration, Picture]:
    """All of them, with what the chart allows them, and the operator's own image."""
    def picture(migration: KafkaMigration, namespace: str, now: float) -> Picture:
        status = migration.status
        position = position_of(status, records_of(status), now)
        return Picture(
            migration.metadata.name, namespace, migration.metadata.uid, migration.spec, position, Facts(), now, PLAN,
            status.high_watermark, entered_of(status.steps), paces_of(status), volumes_of(status),
            rehearsed_of(status), made_of(status), policy, image,
            "" if position.step == PREFLIGHT else status.cluster_id)

    return Kind(
        short="kmig", steps=PLAN.names, read=KafkaMigration.model_validate, picture=picture, reached_by=_reached_by,
        plan=lambda _: PLAN, intent=lambda migration: intent_of(migration, PLAN, policy), claims=_claims,
        recorded_modes=lambda migration: {node.name: node.observed for node in migration.status.nodes},
        next_status=_next_status, telling=telling,
        figures=lambda migration, picture: figures(migration.spec, migration.status, picture), digest=digest,
        deletion=Deletion(UNTOUCHED, may_go, while_deleted, check_deletion))


def _reached_by(migration: KafkaMigration) -> object:
    spec = migration.spec
    return spec.kafka, spec.zookeeper, spec.controllers.name, spec.controllers.listener, spec.accepted_risks


def _claims(migration: KafkaMigration, picture: Picture) -> str:
    """One Lease for each Kafka cluster."""
    found = cluster_of(migration.status, cluster_id(picture))
    return names.lease(found) if found else ""


def _next_status(migration: KafkaMigration, picture: Picture, decision: Decision, spent: Spent,
                 seen: Mapping[str, str]) -> KafkaMigrationStatus:
    return next_status(
        migration, picture, decision, spent, remaining(picture, decision), {**seen, **observed_modes(picture)})


def observed_modes(picture: Picture) -> Mapping[str, str]:
    """The mode in which each node on record was seen, as far as it was seen in this pass."""
    found = {name: picture.mode(record.node_id) for name, record in picture.position.nodes.items()}
    return {name: mode.value for name, mode in found.items() if isinstance(mode, Known)}
