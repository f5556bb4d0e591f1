"""Approvals on record: given for one plan, counted until their step begins, and then history."""

from collections.abc import Sequence
from datetime import UTC, datetime

from switchover.api.status import AcceptedApproval, Direction
from switchover.core.kind import Migration
from switchover.core.position import Position


def accepted(migration: Migration, at: Position, hashed: str, steps: Sequence[str],
             now: float) -> tuple[AcceptedApproval, ...]:
    """The approvals for this plan. One that is changed or taken back counts so until its step begins; then it is history."""
    before = [item for item in migration.status.approvals if item.plan_hash == hashed]
    found = {item.name: item for item in before if _begun(at, item.name, steps)}
    known = {(item.name, item.approver, item.reason): item for item in before}
    for given in migration.spec.approvals:
        if given.plan_hash == hashed and given.name not in found:
            found[given.name] = known.get((given.name, given.approver, given.reason)) or AcceptedApproval(
                name=given.name, plan_hash=given.plan_hash, approver=given.approver, reason=given.reason,
                accepted_time=datetime.fromtimestamp(now, UTC))
    return tuple(found.values())


def _begun(at: Position, step: str, steps: Sequence[str]) -> bool:
    if at.step == step:
        return at.opened is not None
    return step in steps and at.step in steps and steps.index(step) < steps.index(at.step)


def begins(before: Position, at: Position) -> bool:
    """Whether a step's way forward begins in this pass."""
    return at.opened is not None and before.opened is None and at.direction is Direction.FORWARD


def on_whose_word(before: Position, at: Position, approvals: tuple[AcceptedApproval, ...]) -> str:
    """Who let the step begin; "" when none begins in this pass, or nobody was asked."""
    words = [f"approved by {item.approver}" + (f" ({item.reason})" if item.reason else "")
             for item in approvals if item.name == at.step]
    return "; ".join(words) if begins(before, at) else ""
