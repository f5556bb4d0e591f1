"""The figures of every migration (Prometheus): where it stands, and where the time goes.

Label values are names of ours, of pods, and uids: never a name that a tenant of the cluster chose. The name of a migration,
which Kubernetes limits to a few characters, is in one metric of its own (`metrics.INFO`).
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain, islice, repeat
from math import ceil

from switchover.api.conditions import Condition, ConditionStatus, ConditionType
from switchover.api.lenient import lenient
from switchover.api.status import Direction, Measurements, MigrationStatus, Phase, Series
from switchover.engine.gate import Judgement
from switchover.engine.position import PREFLIGHT
from switchover.reasons import REASONS, runbook_of
from switchover.shared.partition import TopicPartition

UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: what it says, its labels other than `migration`, and whether it only grows."""

    says: str
    labels: tuple[str, ...] = ()
    counter: bool = False


METRICS: Mapping[str, Metric] = {
    "switchover_gate_wait_seconds": Metric("Time for which a gate made the migration wait", ("gate",), counter=True),
    "switchover_step": Metric("1 for the step on record and the way it is walked", ("step", "direction")),
    "switchover_phase": Metric("1 for the phase, 0 for the others", ("phase",)),
    "switchover_attempt": Metric("Number of the attempt, from 1"),
    "switchover_rollback_available": Metric("1 while every step can be taken back"),
    "switchover_stalled": Metric(
        "1 while the condition Stalled is True, with its reason and its runbook's place below docs/", ("reason", "runbook")),
    "switchover_stalled_since_timestamp_seconds": Metric(
        "Since when the condition Stalled is True, whatever its reasons were since, in seconds since the epoch"),
    "switchover_automatic_rollback": Metric(
        "1 from the beginning of an automatic rollback until a person acknowledges it, with the reason and its runbook",
        ("reason", "runbook")),
    "switchover_awaiting_approval": Metric(
        "1 while the condition AwaitingApproval is True, with the step that waits", ("step",)),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One value of a metric."""

    metric: str
    labels: tuple[str, ...]
    value: float


@lru_cache(maxsize=1024)
def shared(figure: Figure) -> Figure:
    """The same figure, once for all migrations that have it: most have it, as it is 0 or 1."""
    return figure


def on_record(status: MigrationStatus, steps: Collection[str]) -> Iterator[Figure]:
    """The figures of METRICS but the waits. A step that is not among `steps` is Unknown."""
    yield from _where(status.phase, status.progress.step, status.progress.direction, steps)
    yield Figure("switchover_attempt", (), status.attempt)
    yield Figure("switchover_rollback_available", (), status.rollback.available)
    yield from _calling(status.conditions, status.progress.step, status.rollback.failure, steps)


def without_decision(status: object, steps: Collection[str]) -> Iterator[Figure]:
    """Those of an object of which no pass comes to a decision: its spec or its status may be unreadable."""
    read, _ = lenient(MigrationStatus, status)
    yield from _where(Phase.STALLED, read.progress.step, read.progress.direction, steps)
    yield from _calling(read.conditions, read.progress.step, read.rollback.failure, steps)


def _where(phase: Phase, step: str, direction: Direction, steps: Collection[str]) -> Iterator[Figure]:
    for each in Phase:
        yield Figure("switchover_phase", (each.value,), each is phase)
    yield Figure("switchover_step", (_bounded(step, steps), direction.value), 1)


def _calling(conditions: Iterable[Condition], step: str, failure: str, steps: Collection[str]) -> Iterator[Figure]:
    """What a person is called for: by the conditions, whatever the phase."""
    found = {each.type: each for each in conditions if each.status is ConditionStatus.TRUE}
    if (stalled := found.get(ConditionType.STALLED)) is not None:
        yield Figure("switchover_stalled", _with_runbook(stalled.reason), 1)
        yield Figure("switchover_stalled_since_timestamp_seconds", (), stalled.last_transition_time.timestamp())
    if failure:
        yield Figure("switchover_automatic_rollback", _with_runbook(failure), 1)
    if ConditionType.AWAITING_APPROVAL in found:
        yield Figure("switchover_awaiting_approval", (_bounded(step, steps),), 1)


def _bounded(step: str, steps: Collection[str]) -> str:
    return step if step in steps else UNKNOWN if step else PREFLIGHT


def _with_runbook(reason: str) -> tuple[str, str]:
    """A reason and its runbook; one that this release does not know may be any text."""
    return (reason if reason in REASONS else UNKNOWN), runbook_of(reason)


def waits_of(judged: Iterable[Judgement], seconds: float) -> Mapping[str, float]:
    """The seconds since the last pass for every gate that is not open. A gate of one node counts for all of its kind."""
    return {item.gate.partition("/")[0]: seconds for item in judged if not item.open}


# --- what is measured in the course of a migration ----------------------------------------------------------------------


PER_STEP = 16
"""Times that are stored of one stay in a step."""
STORED = 384
"""Times that are stored in all: the last ones. A whole plan forward and back has fewer."""
SERIES = 24
NAMED = 200
"""Characters of a group's name."""
GROUPS = 10
"""Groups that are measured: the first ones that are named."""


def measured_of(before: Measurements, figures: Mapping[str, int], since: float, now: float) -> Measurements:
    """The measurements with those of this pass. `since` is when the step on record was entered.

    Where there are too many of a step, the two that lie closest become one, which has the worse value of each figure and
    the later time: so the times stay apart evenly, however long the step takes.
    """
    begun, at = (datetime.fromtimestamp(int(each), UTC) for each in (since, now))
    names = sorted(tuple(dict.fromkeys((*figures, *(each.name for each in before.series))))[:SERIES])
    known = {each.name: each.values for each in before.series}
    rows = [islice(chain(known.get(name, ()), repeat(-1)), len(before.times)) for name in names]
    columns = list(zip(before.times, zip(*rows, strict=True) if rows else repeat(()), strict=False))
    columns.append((at, tuple(figures.get(name, -1) for name in names)))
    first = sum(time < begun for time, _ in columns)
    if len(columns) - first > PER_STEP:
        closest = min(range(first, len(columns) - 1), key=lambda index: _span(columns, index, first))
        (_, one), (time, other) = columns[closest: closest + 2]
        columns[closest: closest + 2] = [(time, tuple(map(max, one, other)))]
    columns = columns[-STORED:]
    return Measurements(
        times=tuple(time for time, _ in columns),
        series=tuple(Series(name=name, values=values)
                     for name, values in zip(names, zip(*(values for _, values in columns), strict=True), strict=True)))


def group_figures(groups: Mapping[str, tuple[int, Mapping[TopicPartition, float]]]) -> Iterator[tuple[str, int]]:
    """Of each group that was swept: records that are not committed, and for how many seconds a partition has stood still
    at most although it has records; from the first, and from the seconds of each that stands."""
    for group, (lag, stood) in groups.items():
        name = _series(group)
        yield f"GroupLag/{name}", lag
        yield f"GroupGap/{name}", ceil(max(stood.values(), default=0.0))


def _series(group: str) -> str:
    """The group as a series is called; a long name begins as another one may."""
    return group if len(group) <= NAMED else f"{group[:NAMED]}…{hashlib.sha256(group.encode()).hexdigest()[:8]}"


def _span(columns: Sequence[tuple[datetime, object]], index: int, first: int) -> timedelta:
    """The time that the column and the next one stand for together."""
    return columns[index + 1][0] - columns[max(first, index - 1)][0]
