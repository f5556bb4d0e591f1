"""What the user wants of the walk, read from the spec."""

from switchover.api.kafka_migration import KafkaMigration
from switchover.api.meta import DesiredState, OnFailure
from switchover.api.status import Direction
from switchover.core.plan import Intent

STANDING = (DesiredState.PAUSED, DesiredState.PLANNED)


def intent_of(migration: KafkaMigration) -> Intent:
    """Direction, pause, holds and the approvals that count: those for the plan on record.

    A migration that turned back by itself goes on back, although Running is what the spec still says.
    """
    spec, status = migration.spec, migration.status
    undo_known = spec.desired_state is DesiredState.ROLLED_BACK
    if spec.desired_state in STANDING:
        direction = status.progress.direction            # whichever way it was going
    else:
        direction = Direction.BACKWARD if undo_known or status.rollback.failure else Direction.FORWARD
    return Intent(
        direction=direction,
        paused=spec.desired_state in STANDING,
        held=frozenset(step.value for step in spec.holds),
        approved=frozenset(
            item.name for item in spec.approvals if status.plan_hash and item.plan_hash == status.plan_hash),
        patience=float(spec.gates.step_patience_seconds),
        undo_failures=spec.on_failure is OnFailure.ROLL_BACK,
        undo_known=undo_known,
    )
