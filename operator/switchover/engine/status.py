"""Between the position that decisions rest on and the status that people read: one place to read it, one to fold it."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from switchover.api.status import (
    MOST_MADE,
    MOST_STEPS,
    Answer,
    Direction,
    Evidence,
    Finding,
    GateStreak,
    Made,
    MigrationStatus,
    MoveKind,
    Progress,
    Rollback,
    Severity,
    StepRecord,
    Transition,
    WaitingFor,
)
from switchover.api.status import Verdict as Outcome
from switchover.engine.approvals import PREFLIGHT
from switchover.engine.effects import Apply, Effect
from switchover.engine.gate import Judgement, several
from switchover.engine.pace import Spent
from switchover.engine.plan import Decision
from switchover.engine.position import Batch, NodeRecord, Position
from switchover.kubernetes.names import digest
from switchover.reasons import runbook_of
from switchover.reasons.walk import MUST_HOLD
from switchover.shared.grouped import grouped
from switchover.text.command import command

WAITING_SHOWN = 20
HISTORY_KEPT = 50
ANSWERS_KEPT = 64
DOCS = "docs"
FINDINGS_KEPT = 100
LASTING = (MoveKind.INCIDENT, MoveKind.DUAL_WRITE_REPAIRED)
_WEIGHT = {Severity.BLOCKER: 0, Severity.WARNING: 1, Severity.INFO: 2}
_URGENCY = {Outcome.FAIL: 0, Outcome.UNKNOWN: 1, Outcome.WAIT: 2, Outcome.PASS: 3}


def made_of(status: MigrationStatus) -> Mapping[str, str]:
    """How each object that was made is known, by kind and name."""
    return {each.name: each.proof for each in status.made}


def with_made(before: Iterable[Made], more: Mapping[str, str]) -> tuple[Made, ...]:
    """With these as well, the newest last."""
    found = [each for each in before if each.name not in more]
    return (*found, *(Made(name=name, proof=proof) for name, proof in more.items()))[-MOST_MADE:]


def backups_in(effects: Iterable[Effect]) -> Mapping[str, str]:
    """The ControllerRevisions that are about to be written, with a digest of the data of each: on record before they are."""
    written = (effect.manifest for effect in effects if isinstance(effect, Apply))
    return {named(manifest): digest(manifest["data"]) for manifest in written if manifest["kind"] == "ControllerRevision"}


def named(manifest: Mapping[str, Any]) -> str:
    """An object as the record names it."""
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()


def position_of(status: MigrationStatus, nodes: Mapping[str, NodeRecord], now: float) -> Position:
    """The position on record; the start of every plan where nothing is recorded yet."""
    progress = status.progress
    if not progress.step:
        return Position(attempt=status.attempt, step=PREFLIGHT, entered=now)
    batch = None
    if progress.batch_nodes:
        batch = Batch(progress.batch, progress.batch_nodes, _seconds(progress.batch_start_time) or now,
                      _seconds(progress.bake_start_time), progress.batch_is_remediation)
    return Position(
        attempt=status.attempt,
        step=progress.step,
        direction=progress.direction,
        entered=_seconds(progress.step_start_time) or now,
        opened=_seconds(progress.open_time),
        batch=batch,
        batches_done=progress.batch - 1 if batch is not None else progress.batch,
        finished=progress.complete_time is not None,
        failure=status.rollback.failure,
        nodes=nodes,
        rescued=progress.remediated_nodes,
    )


def cluster_of(status: MigrationStatus, answers: str) -> str:
    """The id of the cluster: that on record, and in Preflight that of whichever answers, since nothing was walked yet."""
    return (answers or status.cluster_id) if status.progress.step in ("", PREFLIGHT) else (status.cluster_id or answers)


def entered_of(steps: Iterable[StepRecord]) -> dict[str, float]:
    """When each step on record was entered last."""
    return {step.name: step.start_time.timestamp() for step in steps if step.start_time is not None}


def spent_of(progress: Progress) -> Spent:
    """The time on record: what an operator that has just started counts on from."""
    return Spent(progress.active_seconds, progress.gate_wait_seconds, progress.human_wait_seconds, progress.batch_seconds)


def progress_of(at: Position, before: Progress, steps: Iterable[str], spent: Spent, remaining: float | None,
                now: float) -> Progress:
    """Where the position stands in its plan. `remaining` is the estimate in seconds, None while it is not known."""
    names = list(steps)
    index = names.index(at.step) if at.step in names else 0
    done = len(names) if at.finished and at.direction is Direction.FORWARD else index
    if at.finished and at.direction is Direction.BACKWARD:
        done = 0
    percent = 100 * done // len(names)
    complete = before.complete_time or _time(now) if at.finished else None
    return Progress(
        step=at.step,
        index=index,
        total=len(names),
        direction=at.direction,
        batch=at.batch.index if at.batch is not None else at.batches_done,
        batch_nodes=at.batch.nodes if at.batch is not None else (),
        batch_start_time=_time(at.batch.started) if at.batch is not None else None,
        bake_start_time=_time(at.batch.proven) if at.batch is not None else None,
        batch_is_remediation=at.batch is not None and at.batch.rescue,
        remediated_nodes=at.rescued,
        percent=percent,
        summary=f"{done}/{len(names)} {percent}%",
        start_time=before.start_time or _time(now),
        step_start_time=_time(at.entered),
        open_time=_time(at.opened),
        complete_time=complete,
        estimated_completion_time=None if remaining is None or at.finished else _time(now + remaining),
        active_seconds=int(spent.active),
        gate_wait_seconds=int(spent.gates),
        human_wait_seconds=int(spent.human),
        batch_seconds=int(spent.batch),
    )


def put_on_record_to_be_replaced(old: Position, new: Position) -> frozenset[str]:
    """The nodes of which a pod is on record to be replaced that was not before: each pod is once, whatever follows."""
    return frozenset(
        name for name, record in new.nodes.items()
        if record.evicting and (name not in old.nodes or old.nodes[name].evicting != record.evicting))


def waiting_of(judged: Mapping[str, Judgement]) -> tuple[WaitingFor, ...]:
    """What is waited for, the most urgent first; what several gates found is there once, with their names. So is a gate that
    passes, but not for long enough yet."""
    waiting = sorted((item for item in judged.values() if not item.open),
                     key=lambda item: (_URGENCY[item.verdict.outcome], item.streak.since))
    same = grouped(((each.verdict, each.reason, each.subject, each.message, each.unblocks), each)
                   for each in map(_waiting, waiting))
    return tuple(each[0].evolve(gate=several(one.gate for one in each)) if len(each) > 1 else each[0]
                 for each in same.values())


def _waiting(item: Judgement) -> WaitingFor:
    verdict, (lasted, wanted) = item.verdict, item.held
    if verdict.outcome is not Outcome.PASS:
        return WaitingFor(
            gate=item.gate, verdict=verdict.outcome, reason=verdict.reason, subject=verdict.subject,
            message=verdict.message, observed=verdict.observed, threshold=verdict.threshold,
            since=_time(item.streak.since), unblocks=verdict.unblocks, runbook_url=f"{DOCS}/{runbook_of(verdict.reason)}")
    state = f"passes, and must go on passing ({lasted.partition(' ')[0]} of {wanted})"
    return WaitingFor(
        gate=item.gate, verdict=Outcome.WAIT, reason=MUST_HOLD.name, subject=verdict.subject,
        message=f"{state}: {verdict.message}" if verdict.message else state, observed=lasted, threshold=wanted,
        since=_time(item.streak.since), unblocks="nothing to do: it must hold a little longer",
        runbook_url=f"{DOCS}/{MUST_HOLD.runbook}")


def linked(status: Mapping[str, Any], docs: str) -> dict[str, Any]:
    """A status's manifest with each runbookURL below `docs`, the address of a copy of docs/; "": as in the sources."""
    waiting = [{**each, "runbookURL": docs + each["runbookURL"].removeprefix(DOCS)} if each.get("runbookURL") else each
               for each in status.get("waitingFor", ())]
    return {**status, "waitingFor": waiting} if docs and waiting else dict(status)


def column_of(waiting: Sequence[WaitingFor]) -> str:
    """The first of what is waited for, in a column's few characters."""
    if not waiting:
        return ""
    first = waiting[0]
    if first.reason == MUST_HOLD.name:
        return f"{first.gate} {first.observed.partition(' ')[0]}/{first.threshold}"
    return f"{first.reason} {first.subject}".strip()


def sentence_of(before: Position, at: Position, waiting: Sequence[WaitingFor], note: str) -> str:
    """What is done or waited for, in one sentence."""
    place = at.step if at.direction is Direction.FORWARD else f"taking {at.step} back"
    if at.batch is not None:
        place += f", batch {at.batch.index} ({', '.join(at.batch.nodes[:3])}{', …' if len(at.batch.nodes) > 3 else ''})"
    if not waiting:
        names_it = kind_of(before, at) in (MoveKind.STEP_BEGUN, MoveKind.STEP_WAITS_AGAIN)
        return note if names_it else f"{place}: {note or 'under way'}"
    others = len(waiting) - 1
    more = f" (and {others} more in status.waitingFor)" if others else ""
    return f"{place} waits for {waiting[0].gate}: {waiting[0].message}{more}"


def streaks_of(judged: Mapping[str, Judgement]) -> tuple[GateStreak, ...]:
    """Every gate judged in this pass with its streak."""
    return tuple(
        GateStreak(name=item.gate, passes=item.streak.passes, since=_time(item.streak.since),
                   verdict=item.verdict.outcome)
        for item in sorted(judged.values(), key=lambda item: item.gate)
    )


def findings_of(judged: Mapping[str, Judgement], before: Iterable[Finding] = ()) -> tuple[Finding, ...]:
    """What the gates found that may find several things (those of Preflight and of the rehearsal), the gravest first.

    What gates found before that are not judged in this pass stays.
    """
    findings = [finding for finding in before if finding.gate not in judged]
    findings += [
        Finding(gate=gate, code=item.reason, severity=item.severity, subject=item.subject, message=item.message,
                cure=item.unblocks)
        for gate, judgement in judged.items() for item in judgement.verdict.findings if item.severity is not None
    ]
    return tuple(sorted(findings, key=lambda item: _WEIGHT[item.severity])[:FINDINGS_KEPT])


def summary_of(findings: Iterable[Finding]) -> str:
    """How many findings there are of each severity, and the messages of the gravest three."""
    every = tuple(findings)
    counts = Counter(finding.severity for finding in every)
    numbers = [f"{counts[severity]} {name}{'' if counts[severity] == 1 else 's'}"
               for severity, name in ((Severity.BLOCKER, "blocker"), (Severity.WARNING, "warning")) if counts[severity]]
    messages = [finding.message for finding in every if finding.severity is not Severity.INFO]
    return f"{', '.join(numbers)}: {'; '.join(messages[:3])}" if numbers else ""


def steps_of(before: Iterable[StepRecord], old: Position, new: Position, now: float) -> tuple[StepRecord, ...]:
    """The record of when each step ran, with the step just left closed and the one just entered begun."""
    records = {record.name: record for record in before}
    if old.step not in records:
        records[old.step] = StepRecord(name=old.step, start_time=_time(old.entered))
    if new.step != old.step or (new.finished and not old.finished):
        begun = _seconds(records[old.step].start_time) or old.entered
        records[old.step] = StepRecord(name=old.step, start_time=_time(begun), end_time=_time(now),
                                       seconds=max(0, round(now - begun)))
    if new.step != old.step:
        records[new.step] = StepRecord(name=new.step, start_time=_time(now))
    return tuple(records.values())[-MOST_STEPS:]


def rolls_back_by_itself(old: Position, new: Position) -> bool:
    """Whether it begins to in this pass."""
    return bool(new.failure) and not old.failure


def rollback_of(before: Rollback, old: Position, decision: Decision, *, available: bool, seconds: float,
                lost: str) -> Rollback:
    """Whether every step can be taken back, and what caused an automatic rollback."""
    at, turned = decision.position, decision.stalled
    if rolls_back_by_itself(old, at) and turned is not None:
        step, gate, message = old.step, turned.gate, turned.verdict.message
    elif at.failure:
        step, gate, message = before.failure_step, before.failure_gate, before.failure_message
    else:
        step = gate = message = ""
    return Rollback(available=available, estimated_seconds=round(seconds) if available else None, lost_at_step=lost,
                    failure=at.failure, failure_step=step, failure_gate=gate, failure_message=message)


def by_itself(rollback: Rollback) -> str:
    """From where it rolls back automatically, and why. An earlier release has recorded the reason alone."""
    begun = f" from {rollback.failure_step}" if rollback.failure_step else ""
    found = f": {rollback.failure_gate}: {rollback.failure_message}" if rollback.failure_gate else ""
    return f"automatically{begun} because of {rollback.failure}{found}"


def given_up(rollback: Rollback, named: tuple[str, str], attempt: int, before: Progress, now: float) -> WaitingFor:
    """What a migration waits for that has rolled back automatically, to the end."""
    return WaitingFor(
        gate="Rollback", verdict=Outcome.FAIL, reason=rollback.failure,
        subject=rollback.failure_step, message=f"rolled back {by_itself(rollback)}",
        since=before.complete_time or _time(now),
        unblocks=f"repair the cause, then begin attempt {attempt + 1}:"
                 f" {command('switchover retry {} --namespace {}', *named)}",
        runbook_url=f"{DOCS}/{runbook_of(rollback.failure)}")


def kind_of(old: Position, new: Position) -> MoveKind:
    """What kind of move leads from one position to the other."""
    if new.direction is not old.direction:
        return MoveKind.AUTOMATIC_ROLLBACK if rolls_back_by_itself(old, new) else MoveKind.TURNED
    if old.failure and not new.failure:
        return MoveKind.ROLLBACK_ACKNOWLEDGED
    if new.step != old.step or new.finished is not old.finished:
        again = new.step == PREFLIGHT and new.direction is Direction.FORWARD
        return MoveKind.SPEC_CHANGED if again else MoveKind.STEP_DONE
    if (old.opened is None) is not (new.opened is None):
        return MoveKind.STEP_WAITS_AGAIN if new.opened is None else MoveKind.STEP_BEGUN
    return _kind_within(old, new)


def _kind_within(old: Position, new: Position) -> MoveKind:
    """Of a move within a step. No step has both a remediation and batches that can be void."""
    before, after = old.batch, new.batch
    if after is not None and (before is None or before.rescue is not after.rescue):
        return MoveKind.REMEDIATION_BEGUN if after.rescue else MoveKind.BATCH_BEGUN
    if before is not None and after is None:
        done = before.rescue or new.batches_done > old.batches_done
        return MoveKind.BATCH_DONE if done else MoveKind.BATCH_VOID
    if before is not None and after is not None and before.proven != after.proven:
        return MoveKind.BAKE_RESTARTED if after.proven is None else MoveKind.BATCH_PROVEN
    return MoveKind.POD_CHOSEN if put_on_record_to_be_replaced(old, new) else MoveKind.MOVED


def history_of(before: tuple[Transition, ...], old: Position, new: Position, note: str, now: float,
               befallen: Iterable[tuple[MoveKind, str]] = ()) -> tuple[Transition, ...]:
    """The last moves, this one at the end, and what has `befallen`; of that what lasts is noted once."""
    moves = [Transition(time=datetime.fromtimestamp(now, UTC), from_=_place(old), to=_place(new), direction=new.direction,
                        reason=kind_of(old, new), message=note)] if note else []
    there = {(each.reason, each.message) for each in before if each.reason in LASTING}
    noted = (Transition(time=datetime.fromtimestamp(now, UTC), from_=_place(new), to=_place(new), direction=new.direction,
                        reason=kind, message=message) for kind, message in befallen)
    return (*before, *moves, *(each for each in noted if (each.reason, each.message) not in there))[-HISTORY_KEPT:]


def evidence_of(before: tuple[Evidence, ...], old: Position, new: Position, judged: Mapping[str, Judgement],
                final: Collection[str], note: str, now: float) -> tuple[Evidence, ...]:
    """What the gates said before each step of `final`, those that cannot be taken back. It is noted from the end of the step
    before until it begins; one that waits again after all has not begun."""
    entered, opened = new.step != old.step, new.opened is not None and old.opened is None
    if new.step not in final or new.direction is Direction.BACKWARD or not (entered or opened or new.opened is None):
        return before
    known = next((item for item in before if item.name == new.step), Evidence(name=new.step))
    gates = {} if entered else {item.name: item for item in known.gates}
    if entered or opened:
        gates |= {name: _answer(item, now) for name, item in sorted(judged.items())}
    evidence = Evidence(name=new.step, begin_time=_time(new.opened), message=note if opened else "",
                        gates=tuple(gates.values())[-ANSWERS_KEPT:])
    return (*(item for item in before if item.name != new.step), evidence)


def _answer(item: Judgement, now: float) -> Answer:
    verdict = item.verdict
    return Answer(name=item.gate, time=datetime.fromtimestamp(now, UTC), verdict=verdict.outcome, message=verdict.message,
                  observed=verdict.observed, threshold=verdict.threshold, since=_time(item.streak.since))


def _place(at: Position) -> str:
    if at.finished:
        return "Completed" if at.direction is Direction.FORWARD else "RolledBack"
    return at.step if at.batch is None else f"{at.step}/{at.batch.index}"
