"""What a deletion means on the way: before the claim everything is taken back, after it the migration goes on to its end.

Nothing is ever stranded (docs/architecture.md#promises), and nothing is held without words: an annotation lets go of it
as it is.
"""

from dataclasses import replace

from switchover.answers.observed import Known
from switchover.api.kafka_migration import KafkaMigration
from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.api.status import Direction
from switchover.cluster.picture import Picture
from switchover.cluster.reading import is_claimed
from switchover.engine.gate import Verdict, wait
from switchover.engine.intent import ABANDON, LET_GO
from switchover.engine.plan import Intent
from switchover.reasons.walk import BEING_DELETED, HELD_UNTIL_THE_END

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
    """The intent of an object that is being deleted. A way back that was begun is not turned again."""
    if is_before_the_claim(picture):
        return replace(intent, direction=Direction.BACKWARD, paused=False)
    if picture.position.direction is Direction.BACKWARD:
        return replace(intent, direction=Direction.BACKWARD)
    return intent


def check_deletion(picture: Picture) -> Verdict:
    """Why an object that is being deleted is still there, and what ends that."""
    if picture.position.direction is Direction.BACKWARD or is_before_the_claim(picture):
        return wait(BEING_DELETED, "it is being deleted: all that it changed is taken back first", subject=picture.name,
                    unblocks=f"the rollback ends; {LET_GO}")
    return wait(HELD_UNTIL_THE_END, "it is being deleted, but Kafka has claimed the cluster for KRaft: it is kept and goes"
                " on until the migration has ended", subject=picture.name,
                unblocks=f"let it end, or set desiredState to RolledBack while that is available; {LET_GO}")
