"""What a report says of a migration, read from its object and its Events: nobody is asked, nothing is guessed. Pure.

The object is JSON as the API server has it, of either kind, half written or by another release. What is not in it, or
cannot be read, is None or empty, which the pages call Unknown. Every text in a report is printable. Times are those of the
status, durations whole seconds.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from pydantic.alias_generators import to_camel

from switchover.answers.errors import Refused
from switchover.api.conditions import ConditionStatus, ConditionType, find_condition
from switchover.api.consumer_group_migration import ConsumerGroupMigrationSpec, ConsumerGroupMigrationStatus, GroupSummary
from switchover.api.kafka_migration import KafkaMigrationSpec, KafkaMigrationStatus, RestartPace
from switchover.api.lenient import given, lenient
from switchover.api.meta import EventTimes, MigrationSpec, ObjectMeta
from switchover.api.schema import rfc3339
from switchover.api.status import AcceptedApproval, Answer, Finding, GateStreak, MigrationStatus, Transition, WaitingFor
from switchover.cli.command import clean
from switchover.cli.objects import Found, nodes_of, preview_of, spec_in, status_in
from switchover.cli.timeline import Stage, begins, stages_of, typed
from switchover.engine.status import HISTORY_KEPT

LISTS = ("waitingFor", "approvals", "findings", "gates", "history", "evidence")
"""Lists of the status that a report shows."""


class Line(NamedTuple):
    """One thing with its name, such as the cluster's id."""

    name: str
    value: str | datetime


@dataclass(frozen=True, slots=True)
class Irreversible:
    """A step that cannot be taken back. `begun` is True, False, or None where the status does not say."""

    step: str
    begun: bool | None
    approvals: tuple[AcceptedApproval, ...]
    move: str
    """With which it began: by whom it was approved, and on which backups."""
    answers: tuple[Answer, ...]
    """What every gate said before it began; empty where the status does not have it."""
    moves: tuple[Transition, ...]
    """The last moves before it began, and the one with which it began; empty where the history no longer has them."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure over time, of a group or of the migration (""): (time, value), None where it could not be observed. A value
    is the worst since the time before."""

    figure: str
    of: str
    points: tuple[tuple[datetime, int | None], ...]


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes Event of the object. `time` is None where it has none that can be read."""

    time: datetime | None
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """All that it says; `written` is when. The three times are seconds, None where the status does not count them."""

    kind: str
    name: str
    namespace: str
    written: datetime
    phase: str
    sentence: str
    progress: str
    start: datetime | None
    end: datetime | None
    attempt: int | None
    plan_hash: str | None
    """"" where the status says that there is no plan."""
    active_seconds: int | None
    gate_seconds: int | None
    human_seconds: int | None
    rollback: str
    about: tuple[Line, ...]
    restarts: tuple[Line, ...]
    paces: tuple[RestartPace, ...]
    versions: tuple[Line, ...]
    stages: tuple[Stage, ...]
    waiting: tuple[WaitingFor, ...]
    irreversible: tuple[Irreversible, ...]
    approvals: tuple[AcceptedApproval, ...]
    findings: tuple[Finding, ...]
    gates: tuple[GateStreak, ...]
    measured: tuple[Measured, ...] | None
    """None where the status does not have it, or it cannot be read."""
    moves: tuple[Transition, ...]
    events: tuple[Event, ...]
    notes: tuple[str, ...]
    """What this report cannot say, and why."""
    untold: tuple[str, ...]
    """Those of LISTS that the status does not have: that nothing is in them does not say that there was nothing."""


def report_of(found: Found, events: Sequence[Mapping[str, Any]] | str, releases: Sequence[str], own: str,
              written: datetime) -> Report:
    """The report. `events` are the object's, or why they could not be read; `releases` those of the operators that were
    seen, `own` this program's."""
    resource = clean(found.named)
    metadata, _ = lenient(ObjectMeta, resource["metadata"])
    (status, left), (spec, refused) = status_in(resource), spec_in(resource)
    progress = status.progress
    moves = tuple(map(typed, status.history))
    held, final = _plan(found, spec, status)
    read = () if isinstance(events, str) else tuple(sorted(
        map(_event, clean(events)), key=lambda each: each.time.timestamp() if each.time else 0.0))
    return Report(
        kind=found.kind.name, name=metadata.name, namespace=metadata.namespace, written=written,
        phase=given(status, "phase") or "", sentence=_sentence(status), progress=progress.summary,
        start=progress.start_time, end=progress.complete_time,
        attempt=given(status, "attempt"), plan_hash=given(status, "plan_hash"),
        active_seconds=given(progress, "active_seconds"), gate_seconds=given(progress, "gate_wait_seconds"),
        human_seconds=given(progress, "human_wait_seconds"), rollback=_rollback(status),
        about=tuple(_about(spec, status, metadata)), restarts=tuple(_restarts(status)),
        paces=status.restarts if isinstance(status, KafkaMigrationStatus) else (),
        versions=tuple(_versions(str(resource.get("apiVersion", "")), spec, clean(releases), own)),
        stages=tuple(_with_people(each, held, status.approvals) for each in stages_of(status, moves)),
        waiting=status.waiting_for, irreversible=tuple(_irreversible(step, status, moves) for step in final),
        approvals=status.approvals, findings=status.findings, gates=status.gates, measured=_measured(status), moves=moves,
        events=read, notes=tuple(_notes(status, metadata, (refused, left), clean(events))),
        untold=tuple(key for key in LISTS if key not in map(to_camel, status.model_fields_set)))


# --- the heading --------------------------------------------------------------------------------------------------------


def _sentence(status: MigrationStatus) -> str:
    """Where it stands. An operator of an earlier release has written no summary; its conditions say so as well."""
    stalled, *others = (find_condition(status.conditions, each) for each in (
        ConditionType.STALLED, ConditionType.READY, ConditionType.RECONCILING))
    if not status.summary and stalled is not None and stalled.status is ConditionStatus.TRUE:
        return stalled.message
    return next(filter(None, (status.summary, *(each.message for each in others if each is not None))), "")


def _rollback(status: MigrationStatus) -> str:
    rollback, of = status.rollback, f" from {status.rollback.failure_step}" if status.rollback.failure_step else ""
    because = f"; it rolled back by itself{of} for {rollback.failure}" if rollback.failure else ""
    if status.phase == "RolledBack":
        return f"gone to its end{because}"
    match given(rollback, "available"):
        case True:
            return f"available{because}"
        case False:
            return f"not available{f', lost at {rollback.lost_at_step}' if rollback.lost_at_step else ''}{because}"
        case _:
            return ""


def _about(spec: MigrationSpec | None, status: MigrationStatus, metadata: ObjectMeta) -> Iterator[Line]:
    yield Line("Created", metadata.creation_timestamp or "")
    yield Line("uid", metadata.uid)
    yield Line("Kafka cluster id", status.cluster_id)
    if isinstance(status, KafkaMigrationStatus):
        yield Line("Metadata", given(status, "metadata_state") or "")
    if isinstance(status, ConsumerGroupMigrationStatus):
        group = status.group or GroupSummary()
        yield Line("Group", spec.group if isinstance(spec, ConsumerGroupMigrationSpec) else "")
        yield Line("Group as last seen", ", ".join(filter(None, (
            group.type, group.state, _number(group, "members", "members"), group.assignor,
            _number(group, "lag", "records behind")))))
    modes = sorted(Counter(each.observed or "not observed" for each in nodes_of(status)).items())
    yield Line(f"{'Nodes' if isinstance(status, KafkaMigrationStatus) else 'Slots'} by observed mode",
               ", ".join(f"{count} {mode}" for mode, count in modes))


def _number(group: GroupSummary, field: str, unit: str) -> str:
    return "" if given(group, field) is None else f"{given(group, field)} {unit}"


def _restarts(status: MigrationStatus) -> Iterator[Line]:
    if isinstance(status, KafkaMigrationStatus):
        for whose in ("Broker", "Controller"):
            found = given(status, f"{whose.lower()}_restarts")
            yield Line(f"{whose}s' pods put on record to be replaced", "" if found is None else str(found))


def _versions(resource: str, spec: MigrationSpec | None, releases: Iterable[str], own: str) -> Iterator[Line]:
    yield Line("Resource", resource)
    yield Line("Operator, as seen when this was written", ", ".join(releases))
    yield Line("switchover report", own)
    if isinstance(spec, KafkaMigrationSpec):
        if spec.upgrade is not None:
            yield Line("Kafka, upgraded to", spec.upgrade.image)
        if image := spec.controllers.template.image:
            yield Line("Controllers", image)
    elif isinstance(spec, ConsumerGroupMigrationSpec):
        for workload in spec.workloads:
            for name, change in (("bridge", workload.bridge), ("target", workload.template)):
                if change is not None and change.image:
                    yield Line(f"{workload.name}, {name}", change.image)


def _notes(status: MigrationStatus, metadata: ObjectMeta, unread: Iterable[str], events: Any) -> Iterator[str]:
    if status.observed_generation < 0:
        yield "No operator has looked at this object yet, or its status does not say so."
    elif status.observed_generation != metadata.generation:
        yield "The status speaks of an earlier spec: an operator has not looked at the newest one."
    if len(status.history) >= HISTORY_KEPT:
        yield (f"The status keeps the last {HISTORY_KEPT} moves. Of what happened before "
               f"{rfc3339(status.history[0].time)} it has the times of the steps alone: no batches, and no rollback.")
    yield from (f"Left out, since this program cannot read it in the {part}: {why}"
                for part, why in zip(("spec", "status"), unread, strict=True) if why)
    if isinstance(events, str):
        yield f"Events could not be read: {events}"


def _event(each: Mapping[str, Any]) -> Event:
    (at, _), keys = lenient(EventTimes, each), ("type", "reason", "message")
    return Event(at.last_timestamp or at.event_time, *(str(each.get(key) or "") for key in keys))


def _measured(status: MigrationStatus) -> tuple[Measured, ...] | None:
    found = status.measurements
    read = [each for each in found.series if given(each, "values") is not None]
    if given(found, "series") is None or (found.series and not (found.times and read)):
        return None
    named = ((each.name.partition("/"), each.values) for each in read)
    return tuple(Measured(figure, of, tuple(
        (time, value if value >= 0 else None) for time, value in zip(found.times, values, strict=False)))
        for (figure, _, of), values in named)


# --- the plan, and what it cannot take back -----------------------------------------------------------------------------


def _plan(found: Found, spec: MigrationSpec | None, status: MigrationStatus) -> tuple[frozenset[str], tuple[str, ...]]:
    """The steps that are held, and those that cannot be taken back: by the plan the one at which rollback is lost, and
    all of which there is evidence; of a spec that cannot be read what is on record."""
    planned = (each.name for each in preview_of(status).steps if each.hold)
    held = frozenset((*(spec.holds if spec is not None else ()), *planned))
    recorded = [each.name for each in status.evidence]
    try:
        plan = found.plan()
    except Refused:
        return held, tuple(dict.fromkeys(filter(None, (status.rollback.lost_at_step, *recorded))))
    return held | {each.name for each in plan.steps if each.hold}, tuple(
        each for each in plan.names if each == plan.point_of_no_return or each in recorded)


def _irreversible(step: str, status: MigrationStatus, moves: Sequence[Transition]) -> Irreversible:
    available = given(status.rollback, "available")
    recorded = next((each for each in status.evidence if each.name == step), None)
    begun = None if recorded is None else recorded.begin_time is not None
    if available is True or status.rollback.lost_at_step == step:
        begun = available is not True
    opened = max((index for index, move in enumerate(moves) if begins(move, step)), default=None)
    before = () if opened is None or begun is False else tuple(moves[max(0, opened - 2): opened + 1])
    move = recorded.message if recorded is not None else ""
    return Irreversible(step, begun, tuple(each for each in status.approvals if each.name == step),
                        move or (before[-1].message if before else ""),
                        () if recorded is None or begun is False else recorded.gates, before)


def _with_people(stage: Stage, held: frozenset[str], approvals: Sequence[AcceptedApproval]) -> Stage:
    if stage.backward:
        return stage
    by = ", ".join(each.approver for each in approvals
                   if each.name == stage.step and (stage.end is None or each.accepted_time <= stage.end))
    return replace(stage, held=stage.step in held, said=stage.said or (f"approved by {by}" if by else ""))
