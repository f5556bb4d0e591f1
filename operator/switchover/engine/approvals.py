"""Approvals: given for one plan, counted until their step begins, and then history.

What they are given for is computed from the object in every pass: the hash in its status is for people to copy. The API
server checks who may give them (the chart's policy); as far as the object shows it, it is checked here as well.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from switchover.api.meta import UNBOUND, Approval, MigrationSpec
from switchover.api.status import MOST_REQUESTERS, AcceptedApproval, Direction
from switchover.engine.kind import Migration, P
from switchover.engine.plan import Plan
from switchover.engine.policy import Policy, matches
from switchover.engine.position import PREFLIGHT as PREFLIGHT
from switchover.engine.position import Position

HASH_DIGITS = 32
"""128 bits: whoever writes both, a harmless spec to be approved and another of the same hash, must not find them."""


def plan_hash(uid: str, attempt: int, steps: Sequence[str], spec: MigrationSpec) -> str:
    """What an approval is given for: this object, this attempt, its steps, and all of the spec that bears on them.

    Fields with their default do not count, so that a release that adds a field does not ask for approvals again.
    """
    covered = spec.model_dump(mode="json", exclude=set(UNBOUND), exclude_defaults=True)
    body = json.dumps([uid, attempt, list(steps), covered], sort_keys=True)
    return hashlib.sha256(body.encode()).hexdigest()[:HASH_DIGITS]


def plan_to_approve(migration: Migration, at: Position, steps: Sequence[str]) -> str:
    """None in Preflight, and none after a rollback: until the next plan is on record the whole spec may change."""
    if at.step == PREFLIGHT and (at.finished or at.direction is Direction.FORWARD):
        return ""
    return plan_hash(migration.metadata.uid, at.attempt, steps, migration.spec)


REQUESTER = "switchover.dev/requested-by"
"""Annotation that names who last changed what an approval covers."""
SERVICE_ACCOUNT = "system:serviceaccount:"


def noted(known: Sequence[str], named: str) -> tuple[str, ...]:
    """Who was named by REQUESTER so far. Where there is no room left, the policy lets nobody else change the spec."""
    known, name = tuple(known), named[:253]
    return known if not name or name in known or len(known) >= MOST_REQUESTERS else (*known, name)


def objection(given: Approval, migration: Migration, plan: Plan[P], policy: Policy) -> str:
    """Why an approval of this plan does not count by who gave it; "" where it does."""
    if given.name in plan.final and given.approver.startswith(SERVICE_ACCOUNT) and not matches(
            given.approver, policy.approvers):
        return (f"{given.approver} is a service account, and {given.name} cannot be taken back: a person approves it, unless"
                " the chart's admissionPolicies.approvers.serviceAccounts names that account")
    if policy.four_eyes and given.approver in (
            *migration.status.requesters, migration.metadata.annotations.get(REQUESTER, "")):
        return f"{given.approver} has changed the spec (status.requesters): somebody else approves {given.name}"
    return ""


def counted(migration: Migration, hashed: str, plan: Plan[P], policy: Policy) -> Iterator[Approval]:
    """The approvals that count."""
    return (given for given in migration.spec.approvals
            if given.plan_hash == hashed and not objection(given, migration, plan, policy))


def accepted(migration: Migration, before: Position, hashed: str, plan: Plan[P], policy: Policy,
             now: float) -> tuple[AcceptedApproval, ...]:
    """The approvals for this plan, and those with which a step has begun: these are history, whatever the plan is since."""
    found = {item.name: item for item in migration.status.approvals if _begun(before, item.name, plan.names)}
    known = {(item.name, item.approver, item.reason): item for item in migration.status.approvals
             if item.plan_hash == hashed}
    for given in counted(migration, hashed, plan, policy):
        if given.name not in found:
            found[given.name] = known.get((given.name, given.approver, given.reason)) or AcceptedApproval(
                name=given.name, plan_hash=given.plan_hash, approver=given.approver, reason=given.reason,
                accepted_time=datetime.fromtimestamp(now, UTC))
    return tuple(found.values())


def _begun(at: Position, step: str, steps: Sequence[str]) -> bool:
    if at.step == step:
        return at.opened is not None
    return step in steps and at.step in steps and steps.index(step) < steps.index(at.step)


def begins(before: Position, at: Position) -> bool:
    """Whether a step begins in this pass, going forward."""
    return at.opened is not None and before.opened is None and at.direction is Direction.FORWARD


def on_whose_word(before: Position, at: Position, approvals: tuple[AcceptedApproval, ...]) -> str:
    """Who let the step begin; "" when none begins in this pass, or nobody was asked."""
    approved = [f"approved by {item.approver}" + (f" ({item.reason})" if item.reason else "")
                for item in approvals if item.name == at.step]
    return "; ".join(approved) if begins(before, at) else ""
