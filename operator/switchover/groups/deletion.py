"""What a deletion means on the way: everything is taken back, until the way back has been given up."""

from dataclasses import replace

from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.api.consumer_group_migration import ConsumerGroupMigrationStep as Name
from switchover.api.status import Direction
from switchover.engine.gate import Verdict, wait
from switchover.engine.intent import ABANDON, LET_GO
from switchover.engine.plan import Intent
from switchover.groups.picture import Picture
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
                    unblocks=f"the workloads are handed over; {LET_GO}")
    return wait(BEING_DELETED, "it is being deleted: all that it changed is taken back first", subject=picture.name,
                unblocks=f"the rollback ends; {LET_GO}")
