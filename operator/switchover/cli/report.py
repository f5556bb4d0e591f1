"""What a report says of a migration, read from its object and its Events: nobody is asked, nothing is guessed. Pure.

The object is JSON as the API server has it, of either kind, half written or by another release. What is not in it, or
cannot be read, is None or empty, which the pages call Unknown. Every text in a report is printable. Times are UTC as the
status has them (RFC 3339), durations whole seconds.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from switchover.api.kafka_migration import name_of
from switchover.cli.loose import mapping, mappings, text, texts, time, whole
from switchover.cli.objects import KAFKA_MIGRATION, Found
from switchover.cli.terminal import clean
from switchover.cli.timeline import Move, Stage, begins, move_of, stages_of
from switchover.cli.tree import seconds
from switchover.engine.status import HISTORY_KEPT
from switchover.outside.errors import Refused

LISTS = ("waitingFor", "approvals", "findings", "gates", "history", "evidence")
"""Lists of the status that a report shows."""


class Line(NamedTuple):
    """One thing with its name, such as the cluster's id."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval as the operator accepted it."""

    step: str
    approver: str
    reason: str
    time: str
    plan_hash: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A gate that does not pass."""

    gate: str
    verdict: str
    reason: str
    subject: str
    message: str
    observed: str
    threshold: str
    since: str
    unblocks: str
    runbook: str


@dataclass(frozen=True, slots=True)
class Gate:
    """What a gate has answered last, and since when."""

    name: str
    verdict: str
    since: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What Preflight or the rehearsal found."""

    code: str
    severity: str
    subject: str
    message: str
    cure: str


@dataclass(frozen=True, slots=True)
class Pace:
    """Of the batches restarted into a mode: how many, how long on average, and the slowest."""

    mode: str
    batches: int | None
    average_seconds: int | None
    slowest_seconds: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a gate answered at a time, and since when it had answered so."""

    gate: str
    time: str
    verdict: str
    message: str
    observed: str
    threshold: str
    since: str


@dataclass(frozen=True, slots=True)
class Irreversible:
    """A step that cannot be taken back. `begun` is True, False, or None where the status does not tell."""

    step: str
    begun: bool | None
    approvals: tuple[Approval, ...]
    move: str
    """With which it began: by whom it was approved, and on which backups."""
    answers: tuple[Answer, ...]
    """What every gate said before it began; empty where the status does not have it."""
    moves: tuple[Move, ...]
    """The last moves before it began, and the one with which it began; empty where the history no longer has them."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure over time, of a group or of the migration (""): (time, value), None where it could not be observed. A value
    is the worst since the time before."""

    figure: str
    of: str
    points: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes Event of the object."""

    time: str
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """All that is told; `written` is when. The three times are seconds, None where the status does not count them."""

    kind: str
    name: str
    namespace: str
    written: str
    phase: str
    sentence: str
    progress: str
    start: str
    end: str
    attempt: int | None
    plan_hash: str | None
    """"" where the status says that there is no plan."""
    active_seconds: int | None
    gate_seconds: int | None
    human_seconds: int | None
    rollback: str
    about: tuple[Line, ...]
    restarts: tuple[Line, ...]
    paces: tuple[Pace, ...]
    versions: tuple[Line, ...]
    stages: tuple[Stage, ...]
    waiting: tuple[Waiting, ...]
    irreversible: tuple[Irreversible, ...]
    approvals: tuple[Approval, ...]
    findings: tuple[Finding, ...]
    gates: tuple[Gate, ...]
    measured: tuple[Measured, ...] | None
    """None where the status does not have it."""
    moves: tuple[Move, ...]
    events: tuple[Event, ...]
    notes: tuple[str, ...]
    """What this report cannot tell, and why."""
    untold: tuple[str, ...]
    """Those of LISTS that the status does not have: that nothing is in them does not say that there was nothing."""


def report_of(found: Found, events: Sequence[Mapping[str, Any]] | str, releases: Sequence[str], own: str,
              written: str) -> Report:
    """The report. `events` are the object's, or why they could not be read; `releases` those of the operators that were
    seen, `own` this program's."""
    resource = clean(found.resource)
    spec, status, metadata = (mapping(resource.get(key)) for key in ("spec", "status", "metadata"))
    progress = mapping(status.get("progress"))
    moves = tuple(map(move_of, mappings(status.get("history"))))
    approvals = tuple(Approval(text(each.get("name")), text(each.get("approver")), text(each.get("reason")),
                               time(each.get("acceptedTime")), text(each.get("planHash")))
                      for each in mappings(status.get("approvals")))
    held, final = _plan(found, spec, status)
    stages = tuple(_with_people(each, held, approvals) for each in stages_of(status, moves))
    told = () if isinstance(events, str) else tuple(sorted(map(_event, clean(events)), key=lambda each: each.time))
    return Report(
        kind=found.kind.name, name=text(metadata.get("name")), namespace=text(metadata.get("namespace")), written=written,
        phase=text(status.get("phase")), sentence=_sentence(status), progress=text(progress.get("summary")),
        start=time(progress.get("startTime")), end=time(progress.get("completeTime")),
        attempt=whole(status.get("attempt")), plan_hash=text(status["planHash"]) if "planHash" in status else None,
        active_seconds=whole(progress.get("activeSeconds")), gate_seconds=whole(progress.get("gateWaitSeconds")),
        human_seconds=whole(progress.get("humanWaitSeconds")), rollback=_rollback(status),
        about=tuple(_about(found, spec, status, metadata)), restarts=tuple(_restarts(found, status)),
        paces=tuple(Pace(name_of(text(each.get("name"))), whole(each.get("batches")), whole(each.get("averageSeconds")),
                         whole(each.get("slowestSeconds"))) for each in mappings(status.get("restarts"))),
        versions=tuple(_versions(resource, spec, clean(releases), own)),
        stages=stages, waiting=tuple(map(_waiting, mappings(status.get("waitingFor")))),
        irreversible=tuple(_irreversible(step, status, moves, approvals) for step in final), approvals=approvals,
        findings=tuple(Finding(text(each.get("code")), text(each.get("severity")), text(each.get("subject")),
                               text(each.get("message")), text(each.get("cure")))
                       for each in mappings(status.get("findings"))),
        gates=tuple(Gate(text(each.get("name")), text(each.get("verdict")), time(each.get("since")))
                    for each in mappings(status.get("gates"))),
        measured=_measured(status.get("measurements")), moves=moves, events=told,
        notes=tuple(_notes(status, metadata, moves, clean(events))),
        untold=tuple(key for key in LISTS if not isinstance(status.get(key), list)))


# --- the heading --------------------------------------------------------------------------------------------------------


def _sentence(status: Mapping[str, Any]) -> str:
    """Where it stands. An operator of an earlier release has written no summary; its conditions say so as well."""
    if said := text(status.get("summary")):
        return said
    conditions = {text(each.get("type")): each for each in mappings(status.get("conditions"))}
    if mapping(conditions.get("Stalled")).get("status") == "True":
        return text(conditions["Stalled"].get("message"))
    told = (text(mapping(conditions.get(kind)).get("message")) for kind in ("Ready", "Reconciling"))
    return next(filter(None, told), "")


def _rollback(status: Mapping[str, Any]) -> str:
    rollback = mapping(status.get("rollback"))
    lost, failure = text(rollback.get("lostAtStep")), text(rollback.get("failure"))
    step = text(rollback.get("failureStep"))
    because = f"; it rolled back by itself{f' from {step}' if step else ''} for {failure}" if failure else ""
    if status.get("phase") == "RolledBack":
        return f"gone to its end{because}"
    match rollback.get("available"):
        case True:
            return f"available{because}"
        case False:
            return f"not available{f', lost at {lost}' if lost else ''}{because}"
        case _:
            return ""


def _about(found: Found, spec: Mapping[str, Any], status: Mapping[str, Any], metadata: Mapping[str, Any]) -> Iterator[Line]:
    yield Line("Created", time(metadata.get("creationTimestamp")))
    yield Line("uid", text(metadata.get("uid")))
    yield Line("Kafka cluster id", text(status.get("clusterId")))
    if found.kind is KAFKA_MIGRATION:
        yield Line("Metadata", text(status.get("metadataState")))
        yield Line("Nodes by observed mode", _counted(status.get("nodes")))
        return
    group = mapping(status.get("group"))
    yield Line("Group", text(spec.get("group")))
    yield Line("Group as last seen", ", ".join(filter(None, (
        text(group.get("type")), text(group.get("state")), _number(group.get("members"), "members"),
        text(group.get("assignor")), _number(group.get("lag"), "records behind")))))
    yield Line("Slots by observed mode", _counted(status.get("slots")))


def _number(value: Any, unit: str) -> str:
    return "" if whole(value) is None else f"{value} {unit}"


def _counted(nodes: Any) -> str:
    modes = Counter(name_of(text(each.get("observed"))) or "not observed" for each in mappings(nodes))
    return ", ".join(f"{count} {mode}" for mode, count in sorted(modes.items()))


def _restarts(of: Found, status: Mapping[str, Any]) -> Iterator[Line]:
    if of.kind is KAFKA_MIGRATION:
        for name, key in (("Brokers' pods put on record to be replaced", "brokerRestarts"),
                          ("Controllers' pods put on record to be replaced", "controllerRestarts")):
            found = whole(status.get(key))
            yield Line(name, "" if found is None else str(found))


def _versions(resource: Mapping[str, Any], spec: Mapping[str, Any], releases: Iterable[str], own: str) -> Iterator[Line]:
    yield Line("Resource", text(resource.get("apiVersion")))
    yield Line("Operator, as seen when this was written", ", ".join(releases))
    yield Line("switchover report", own)
    if image := text(mapping(spec.get("upgrade")).get("image")):
        yield Line("Kafka, upgraded to", image)
    if image := text(mapping(mapping(spec.get("controllers")).get("template")).get("image")):
        yield Line("Controllers", image)
    for workload in mappings(spec.get("workloads")):
        for name, key in (("bridge", "bridge"), ("target", "template")):
            if image := text(mapping(workload.get(key)).get("image")):
                yield Line(f"{text(workload.get('name'))}, {name}", image)


def _notes(status: Mapping[str, Any], metadata: Mapping[str, Any], moves: Sequence[Move], events: Any) -> Iterator[str]:
    observed, generation = whole(status.get("observedGeneration")), whole(metadata.get("generation"))
    if observed is None or observed < 0:
        yield "No operator has looked at this object yet, or its status does not say so."
    elif observed != generation:
        yield "The status speaks of an earlier spec: an operator has not looked at the newest one."
    if len(moves) >= HISTORY_KEPT:
        yield (f"The status keeps the last {HISTORY_KEPT} moves. Of what happened before {moves[0].time or 'them'} it has "
               "the times of the steps alone: no batches, and no rollback.")
    if isinstance(events, str):
        yield f"Events could not be read: {events}"


def _waiting(each: Mapping[str, Any]) -> Waiting:
    gate, verdict, reason, subject, message, observed, threshold, unblocks, runbook = (text(each.get(key)) for key in (
        "gate", "verdict", "reason", "subject", "message", "observed", "threshold", "unblocks", "runbookURL"))
    since = time(each.get("since"))
    return Waiting(gate, verdict, reason, subject, message, observed, threshold, since, unblocks, runbook)


def _event(each: Mapping[str, Any]) -> Event:
    return Event(time(each.get("lastTimestamp")) or time(each.get("eventTime")), text(each.get("type")),
                 text(each.get("reason")), text(each.get("message")))


def _measured(told: Any) -> tuple[Measured, ...] | None:
    if not isinstance(told, Mapping):
        return None
    times, found = told.get("times"), []
    for series in mappings(told.get("series")):
        figure, _, of = text(series.get("name")).partition("/")
        values = series.get("values")
        if not isinstance(times, list) or not isinstance(values, list):
            continue
        points = [(time(at), whole(value)) for at, value in zip(times, values, strict=False)]
        found.append(Measured(figure, of, tuple(
            (at, value if value is not None and value >= 0 else None) for at, value in points if at)))
    return tuple(found)


# --- the plan, and what it cannot take back -----------------------------------------------------------------------------


def _plan(found: Found, spec: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The steps that are held, and those that cannot be taken back: by the plan the one at which the way back is lost, and
    all of which there is evidence; of a spec that cannot be read what is on record."""
    planned = mappings(mapping(status.get("plan")).get("steps"))
    held = {*texts(spec.get("holds")), *(text(each.get("name")) for each in planned if each.get("hold") is True)}
    recorded = [text(each.get("name")) for each in mappings(status.get("evidence"))]
    try:
        steps = found.plan().steps
    except Refused:
        lost = text(mapping(status.get("rollback")).get("lostAtStep"))
        return frozenset(held), tuple(dict.fromkeys(filter(None, (lost, *recorded))))
    return frozenset(held | {each.name for each in steps if each.hold}), tuple(
        each.name for each in steps if each.irreversible or each.name in recorded)


def _irreversible(step: str, status: Mapping[str, Any], moves: Sequence[Move],
                  approvals: Sequence[Approval]) -> Irreversible:
    rollback = mapping(status.get("rollback"))
    told = next((each for each in mappings(status.get("evidence")) if each.get("name") == step), None)
    begun = None if told is None else bool(time(told.get("beginTime")))
    if rollback.get("available") is True or rollback.get("lostAtStep") == step:
        begun = rollback.get("available") is not True
    opened = max((index for index, move in enumerate(moves) if begins(move, step)), default=None)
    before = () if opened is None or begun is False else tuple(moves[max(0, opened - 2): opened + 1])
    answers = () if told is None or begun is False else tuple(map(_answer, mappings(told.get("gates"))))
    move = text(told.get("message")) if told is not None else ""
    return Irreversible(step, begun, tuple(each for each in approvals if each.step == step),
                        move or (before[-1].message if before else ""), answers, before)


def _answer(each: Mapping[str, Any]) -> Answer:
    gate, verdict, message, observed, threshold = (text(each.get(key)) for key in (
        "name", "verdict", "message", "observed", "threshold"))
    return Answer(gate, time(each.get("time")), verdict, message, observed, threshold, time(each.get("since")))


def _with_people(stage: Stage, held: frozenset[str], approvals: Sequence[Approval]) -> Stage:
    if stage.backward:
        return stage
    by = ", ".join(each.approver for each in approvals if each.step == stage.step and not _after(each.time, stage.end))
    return replace(stage, held=stage.step in held, said=stage.said or (f"approved by {by}" if by else ""))


def _after(time: str, end: str) -> bool:
    return bool(time and end) and seconds(time) > seconds(end)
