"""What the user wants of the walk, read from the spec."""

from switchover.api.meta import DesiredState, OnFailure
from switchover.api.status import Direction
from switchover.engine.approvals import PREFLIGHT, counted, objection, plan_to_approve
from switchover.engine.kind import Migration, P
from switchover.engine.plan import Intent, Plan
from switchover.engine.policy import Policy
from switchover.engine.status import position_of
from switchover.text.command import command

STANDING = (DesiredState.PAUSED, DesiredState.PLANNED)


def intent_of(migration: Migration, walked: Plan[P], policy: Policy) -> Intent:
    """Direction, pause, holds and the approvals that count: those for the plan as it is now, by who may give them.

    After an automatic rollback it goes on rolling back, although the spec still says Running. Before another attempt it
    finishes its rollback.
    """
    spec, status = migration.spec, migration.status
    undo_known = spec.desired_state is DesiredState.ROLLED_BACK
    if spec.desired_state in STANDING:
        direction = status.progress.direction            # whichever way it was going
    elif is_retried(migration):
        direction = Direction.FORWARD if status.progress.complete_time is not None else Direction.BACKWARD
    else:
        direction = Direction.BACKWARD if undo_known or status.rollback.failure else Direction.FORWARD
    plan = plan_to_approve(migration, position_of(status, {}, 0.0), walked.names)
    approved = {item.name for item in counted(migration, plan, walked, policy) if plan}
    return Intent(
        direction=direction,
        paused=spec.desired_state in STANDING,
        held=frozenset(map(str, spec.holds)) - {PREFLIGHT},
        approved=frozenset(approved),
        patience=float(spec.gates.step_patience_seconds),
        undo_failures=spec.on_failure is OnFailure.ROLL_BACK,
        undo_known=undo_known,
        changed=bool(status.plan_hash and plan) and status.plan_hash != plan,
        void={
            item.name: f"{item.approver}'s approval was given for plan {item.plan_hash}, this is plan {plan} (attempt"
                       f" {status.attempt}): it does not count" if item.plan_hash != plan
            else objection(item, migration, walked, policy)
            for item in spec.approvals if plan and item.name not in approved
        },
    )


ABANDON = "switchover.dev/abandon"
"""Annotation by which a migration is deleted although it is under way; what stays behind is listed."""


def or_abandon(named: tuple[str, str]) -> str:
    """The other way, with its command, to end a deletion that is under way."""
    return f"or delete it at once, and leave everything as it is: {command('switchover abandon {} --namespace {}', *named)}"


RETRY = "switchover.dev/retry"
"""Annotation that begins another attempt: it names the object and the attempt that was rolled back, and so counts once."""


def retry_of(uid: str, attempt: int) -> str:
    """What RETRY says for another attempt after this one."""
    return f"{uid}/{attempt}"


def is_retried(migration: Migration) -> bool:
    """Whether somebody wants another attempt after the one that is being rolled back, or was."""
    metadata, status = migration.metadata, migration.status
    return (status.progress.direction is Direction.BACKWARD
            and migration.spec.desired_state is DesiredState.RUNNING
            and metadata.annotations.get(RETRY) == retry_of(metadata.uid, status.attempt))
