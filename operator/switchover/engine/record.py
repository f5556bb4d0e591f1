"""The part of the status that every migration has, folded in one place from what was decided in a pass."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from switchover.api.conditions import (
    SENTENCE,
    Condition,
    ConditionStatus,
    ConditionType,
    find_condition,
    set_condition,
)
from switchover.api.lenient import lenient
from switchover.api.meta import DesiredState, ReadinessPolicy
from switchover.api.status import (
    AcceptedApproval,
    Direction,
    Finding,
    MigrationStatus,
    MoveKind,
    Phase,
    Rollback,
    Severity,
    Transition,
    WaitingFor,
)
from switchover.api.status import Verdict as Outcome
from switchover.engine import status as fold
from switchover.engine.approvals import PREFLIGHT, REQUESTER, noted
from switchover.engine.figures import measured_of
from switchover.engine.intent import is_retried
from switchover.engine.kind import Migration, Picture
from switchover.engine.pace import Spent
from switchover.engine.plan import Decision
from switchover.engine.position import Position
from switchover.reasons.reason import Reason
from switchover.reasons.walk import INVALID_SPEC, RECORD_OF_ANOTHER


@dataclass(frozen=True, slots=True)
class Outlook:
    """What only the plan itself can say of the position that was decided on.

    `final` are the steps that cannot be taken back. `success` and `proof` are the messages of Ready and Succeeded once it
    has succeeded. `lost` names the step from which no rollback is possible; `back_seconds` is how long one would take. From
    a record that is not `believed` there is none. `measured` are the figures of this pass.
    """

    steps: Sequence[str]
    final: Collection[str]
    succeeded: bool
    success: str
    proof: str
    lost: str
    believed: bool
    can_go_back: bool
    back_seconds: float
    measured: Mapping[str, int]


RECORD = "RecordHolds"
"""The gate on which every step rests: what is seen confirms the step on record."""


def is_contradicted(decision: Decision) -> bool:
    """What is seen says that the step on record is not where the migration is."""
    found = decision.judged.get(RECORD)
    return found is not None and found.verdict.outcome is Outcome.FAIL


def has_succeeded(decision: Decision, before: MigrationStatus, *, proven: bool) -> bool:
    """Whether a step on record after which it is `proven` is believed; what cannot be seen in this pass stays as it was."""
    found = decision.judged.get(RECORD)
    if not proven or is_contradicted(decision):
        return False
    if found is None or found.verdict.outcome is Outcome.UNKNOWN:
        was = find_condition(before.conditions, ConditionType.SUCCEEDED)
        return was is not None and was.status is ConditionStatus.TRUE
    return True


def shared(migration: Migration, picture: Picture, decision: Decision, outlook: Outlook, plan_hash: str,
           approvals: tuple[AcceptedApproval, ...], spent: Spent, remaining: float | None, note: str,
           befallen: Iterable[tuple[MoveKind, str]] = ()) -> dict[str, Any]:
    """The fields of MigrationStatus after this pass; pure, so that the same pass always folds to the same status."""
    old, at, before, now = migration.status, decision.position, picture.position, picture.now
    findings = fold.findings_of(decision.judged, () if before.step == PREFLIGHT else old.findings)
    rollback = fold.rollback_of(old.rollback, before, decision, available=outlook.can_go_back, seconds=outlook.back_seconds,
                                lost=outlook.lost)
    if fold.rolls_back_by_itself(before, at):
        decision = replace(decision, stalled=None)          # what had stalled it is answered
    given_up = None
    if _is_given_up(migration, decision):
        given_up = fold.given_up(rollback, picture.named, at.attempt, old.progress, now)
    waiting = fold.waiting_of(decision.judged)
    if at.finished and decision.stalled is None:
        waiting = () if given_up is None else (given_up,)
    standstill = _standstill(decision, outlook, given_up)
    summary = standstill[1] if standstill is not None else _summary(migration, before, decision, outlook, waiting, rollback)
    remaining = None if standstill is not None else remaining       # until somebody acts
    return {
        "observed_generation": migration.metadata.generation,
        "phase": _phase(migration, decision, outlook),
        "summary": summary,
        "uid": migration.metadata.uid,
        "attempt": at.attempt,
        "plan_hash": plan_hash,
        "progress": fold.progress_of(at, old.progress, outlook.steps, spent, remaining, now),
        "waiting_for": waiting[: fold.WAITING_SHOWN],
        "waiting_for_count": len(waiting),
        "waiting_for_summary": fold.column_of(waiting),
        "gates": fold.streaks_of(decision.judged),
        "rollback": rollback,
        "approvals": approvals,
        "requesters": noted(old.requesters, migration.metadata.annotations.get(REQUESTER, "")),
        "steps": fold.steps_of(old.steps, before, at, now),
        "history": fold.history_of(old.history, before, at, note, now, befallen),
        "evidence": fold.evidence_of(old.evidence, before, at, decision.judged, outlook.final, note, now),
        "measurements": old.measurements if before.finished else measured_of(
            old.measurements, outlook.measured, before.entered, now),
        "made": fold.with_made(old.made, fold.backups_in(decision.effects)),
        "findings": findings,
        "conditions": _conditions(migration, decision, outlook, standstill, summary, findings,
                                  datetime.fromtimestamp(now, UTC)),
    }


def stopped_status(migration: Mapping[str, Any], reason: Reason, why: str, now: float) -> dict[str, Any] | None:
    """The status of an object for which no pass came to a decision, with `why`; None where it says so already.

    What is on record stays as it is: it may be read again, by this operator or by another.
    """
    found, generation, why = migration.get("status"), migration["metadata"]["generation"], SENTENCE.cut(why)
    before: dict[str, Any] = found if isinstance(found, dict) else {}
    conditions = lenient(MigrationStatus, before)[0].conditions
    stalled = find_condition(conditions, ConditionType.STALLED)
    known, named = before.get("requesters", []), (migration["metadata"].get("annotations") or {}).get(REQUESTER, "")
    names = [*noted(known, named)] if isinstance(known, list) else known
    wanted = (ConditionStatus.TRUE, reason.name, why, generation, why, known)
    if stalled is not None and (
            stalled.status, stalled.reason, stalled.message, stalled.observed_generation, before.get("summary"),
            names) == wanted:
        return None
    at = datetime.fromtimestamp(now, UTC)
    for kind, value in ((ConditionType.READY, False), (ConditionType.STALLED, True)):
        conditions = set_condition(conditions, kind, value, reason.name, why, at, generation)
    return {
        **before,
        **({"observedGeneration": generation} if reason is INVALID_SPEC else {}),
        **({"requesters": names} if names else {}),
        "phase": Phase.STALLED.value,
        "summary": why,
        "waitingForSummary": reason.name,
        "conditions": [condition.manifest() for condition in conditions],
    }


def telling(status: MigrationStatus) -> tuple[object, ...]:
    """What makes a status worth writing before its heartbeat is due; figures alone do not."""
    return (
        status.observed_generation,
        status.phase,
        status.plan_hash,
        status.approvals,
        status.requesters,
        status.made,
        (status.rollback.available, status.rollback.lost_at_step, status.rollback.failure),
        [(item.code, item.severity, item.subject) for item in status.findings],
        [(item.gate, item.verdict, item.reason, item.subject) for item in status.waiting_for],
        [(item.type, item.status, item.reason) for item in status.conditions],
    )


def _phase(migration: Migration, decision: Decision, outlook: Outlook) -> Phase:
    at = decision.position
    if migration.metadata.deletion_timestamp is not None:
        return Phase.TERMINATING
    if at.direction is Direction.BACKWARD:
        return Phase.STALLED if decision.stalled else Phase.ROLLED_BACK if at.finished else Phase.ROLLING_BACK
    if outlook.succeeded and (decision.stalled is None or at.batch is None):
        return Phase.SUCCEEDED                              # what follows may wait, a node that does not come back may not
    if decision.stalled is not None:
        return Phase.STALLED
    if migration.spec.desired_state is DesiredState.PLANNED and at.step == PREFLIGHT:
        return Phase.PLANNED
    if migration.spec.desired_state is DesiredState.PAUSED:
        return Phase.PAUSED
    return Phase.AWAITING_APPROVAL if "Approval" in decision.judged else Phase.RUNNING


def _is_given_up(migration: Migration, decision: Decision) -> bool:
    """It has rolled back automatically, to the end, and nobody has acknowledged that or wants another attempt."""
    at = decision.position
    back = at.finished and at.direction is Direction.BACKWARD and decision.stalled is None
    return back and bool(at.failure) and not is_retried(migration)


def _standstill(decision: Decision, outlook: Outlook, given_up: WaitingFor | None) -> tuple[str, str] | None:
    """Reason and message where somebody must act before the migration is what was asked for."""
    at, stalled = decision.position, decision.stalled
    if given_up is not None:
        return at.failure, f"{given_up.message}; {given_up.unblocks}"
    if stalled is None or (outlook.succeeded and at.batch is None):
        return None
    return stalled.verdict.reason, stalled.verdict.message


def _summary(migration: Migration, before: Position, decision: Decision, outlook: Outlook, waiting: Sequence[WaitingFor],
             rollback: Rollback) -> str:
    """The one sentence that `status.summary` and the conditions have where nobody must act, and so `kubectl wait`, Flux and
    Argo CD print."""
    at = decision.position
    if at.finished:
        return outlook.success if outlook.succeeded else "every step is taken back"
    sentence = fold.sentence_of(before, at, waiting, decision.note)
    if at.direction is Direction.BACKWARD:
        because = f"rolling back {fold.by_itself(rollback)}; " if at.failure else ""
        return f"{because}{sentence}{f'; then attempt {at.attempt + 1} begins' if is_retried(migration) else ''}"
    return f"{outlook.success}; {sentence}" if outlook.succeeded else sentence


def _is_accepted(at: Position) -> bool:
    """The plan is on record, and it is the user's own wish that is carried out."""
    return (at.step != PREFLIGHT or at.direction is Direction.BACKWARD) and not at.failure


def _conditions(migration: Migration, decision: Decision, outlook: Outlook, standstill: tuple[str, str] | None,
                summary: str, findings: tuple[Finding, ...], now: datetime) -> tuple[Condition, ...]:
    at, generation = decision.position, migration.metadata.generation
    conditions = migration.status.conditions

    def put(kind: ConditionType, value: bool, reason: str, message: str = "") -> None:
        nonlocal conditions
        conditions = set_condition(conditions, kind, value, reason, message, now, generation)

    done = outlook.succeeded
    awaiting = decision.judged.get("Approval")
    is_back = at.finished and at.direction is Direction.BACKWARD and not is_retried(migration)
    accepted = migration.spec.readiness_policy is ReadinessPolicy.ON_ACCEPTANCE and _is_accepted(at)
    settled = "Succeeded" if done else "RolledBack" if is_back else "Accepted" if accepted else ""
    if standstill is not None:
        put(ConditionType.STALLED, True, standstill[0], summary)
        put(ConditionType.READY, False, standstill[0], summary)
    else:
        put(ConditionType.STALLED, False, "Progressing", "")
        put(ConditionType.RECONCILING, not settled, settled or at.step, summary)
        put(ConditionType.READY, bool(settled), settled or at.step, summary)
    put(ConditionType.SUCCEEDED, done, "Finalized" if done else "NotFinalized", outlook.proof if done else "")
    paused = migration.spec.desired_state is DesiredState.PAUSED
    put(ConditionType.PAUSED, paused, "DesiredState", "spec.desiredState is Paused" if paused else "")
    put(ConditionType.AWAITING_APPROVAL, awaiting is not None, "Hold" if awaiting else "NoHold",
        awaiting.verdict.message if awaiting else "")
    back = outlook.can_go_back
    put(ConditionType.ROLLBACK_AVAILABLE, back,
        *(("CanGoBack", "") if back else ("PointOfNoReturn", f"lost at {outlook.lost}") if outlook.lost else
          ("UndoNotAvailable", "this version of Switchover cannot take every step back") if outlook.believed else
          ("RecordContradicted", "the cluster is not where the step on record says")))
    passed = at.step != PREFLIGHT
    blocked = any(finding.severity is Severity.BLOCKER for finding in findings)
    put(ConditionType.PREFLIGHT_PASSED, passed, "Passed" if passed else "Findings" if blocked else "Checking",
        fold.summary_of(findings))
    return conditions


# --- a record of another object -----------------------------------------------------------------------------------------


def without_foreign_record(migration: Mapping[str, Any], now: float) -> tuple[Mapping[str, Any], str]:
    """The object, and "". Where its status is another object's: the object with a status that says so, and the message.

    Preflight finds what the other one has made or claimed, like anything else that is in the way.
    """
    found, uid = migration.get("status"), migration["metadata"]["uid"]
    status: Mapping[str, Any] = found if isinstance(found, dict) else {}
    written_for = status.get("uid")
    if not isinstance(written_for, str) or written_for in ("", uid):
        return migration, ""
    progress = status.get("progress")
    step = str(progress.get("step", ""))[:63] if isinstance(progress, dict) else ""
    message = (f"the status was written for the object with uid {written_for[:128]}, at {step or 'no step'} (attempt"
               f" {str(status.get('attempt', 1))[:9]}): it is ignored, and no approval in it counts")
    move = Transition(
        time=datetime.fromtimestamp(now, UTC), from_=step, to=PREFLIGHT, reason=RECORD_OF_ANOTHER.name, message=message)
    return {**migration, "status": {"history": [move.manifest()]}}, message
