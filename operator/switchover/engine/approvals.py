"""Approvals: given for one plan, counted until their step begins, and then history.

What they are given for is computed from the object in every pass: what stands in its status is for people to copy.
"""

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime

from switchover.api.meta import UNBOUND, MigrationSpec
from switchover.api.status import AcceptedApproval, Direction
from switchover.engine.kind import Migration
from switchover.engine.position import PREFLIGHT as PREFLIGHT
from switchover.engine.position import Position

HASH_DIGITS = 32
"""128 bits: whoever writes both, a harmless spec to be approved and another of the same hash, must not find them."""


def plan_hash(uid: str, attempt: int, steps: Sequence[str], spec: MigrationSpec) -> str:
    """What an approval is given for: this object, this attempt, its steps, and all of the spec that bears on them.

    What is as a spec has it by default does not count, so that a release that adds a field asks for no approval anew.
    """
    covered = spec.model_dump(mode="json", exclude=set(UNBOUND), exclude_defaults=True)
    body = json.dumps([uid, attempt, list(steps), covered], sort_keys=True)
    return hashlib.sha256(body.encode()).hexdigest()[:HASH_DIGITS]


def plan_to_approve(migration: Migration, at: Position, steps: Sequence[str]) -> str:
    """None in Preflight, and none after a rollback: until the next plan is on record the whole spec may change."""
    if at.step == PREFLIGHT and (at.finished or at.direction is Direction.FORWARD):
        return ""
    return plan_hash(migration.metadata.uid, at.attempt, steps, migration.spec)


def accepted(migration: Migration, before: Position, hashed: str, steps: Sequence[str],
             now: float) -> tuple[AcceptedApproval, ...]:
    """The approvals for this plan, and those with which a step has begun: these are history, whatever the plan is since."""
    found = {item.name: item for item in migration.status.approvals if _begun(before, item.name, steps)}
    known = {(item.name, item.approver, item.reason): item for item in migration.status.approvals
             if item.plan_hash == hashed}
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
