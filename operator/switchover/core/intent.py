"""What the user wants of the walk, read from the spec."""

from switchover.api.meta import DesiredState, OnFailure
from switchover.api.status import Direction
from switchover.core.kind import Migration
from switchover.core.plan import Intent

PREFLIGHT = "Preflight"
"""Changes nothing, and the plan that an approval must name is on record only after it: it cannot be held."""
STANDING = (DesiredState.PAUSED, DesiredState.PLANNED)


def intent_of(migration: Migration) -> Intent:
    """Direction, pause, holds and the approvals that count: those for the plan on record.

    A migration that turned back by itself goes on back, although Running is what the spec still says.
    """
    spec, status = migration.spec, migration.status
    undo_known = spec.desired_state is DesiredState.ROLLED_BACK
    if spec.desired_state in STANDING:
        direction = status.progress.direction            # whichever way it was going
    else:
        direction = Direction.BACKWARD if undo_known or status.rollback.failure else Direction.FORWARD
    plan = status.plan_hash
    approved = {item.name for item in spec.approvals if plan and item.plan_hash == plan}
    return Intent(
        direction=direction,
        paused=spec.desired_state in STANDING,
        held=frozenset(map(str, spec.holds)) - {PREFLIGHT},
        approved=frozenset(approved),
        patience=float(spec.gates.step_patience_seconds),
        undo_failures=spec.on_failure is OnFailure.ROLL_BACK,
        undo_known=undo_known,
        void={
            item.name: f"{item.approver}'s approval was given for plan {item.plan_hash}, this is plan {plan} (attempt"
                       f" {status.attempt}): it does not count"
            for item in spec.approvals if plan and item.name not in approved
        },
    )
