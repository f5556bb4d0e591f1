"""What every migration tells in figures (Prometheus): where it stands, and where the time goes.

Label values are words of ours, names of pods and uids: never a name that a tenant of the cluster chose. The name of a
migration, which Kubernetes keeps to a few characters, is in one metric of its own (`metrics.INFO`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from switchover.api.conditions import Condition, ConditionStatus, ConditionType
from switchover.api.lenient import lenient
from switchover.api.status import Direction, MigrationStatus, Phase
from switchover.engine.gate import Judgement
from switchover.engine.position import PREFLIGHT
from switchover.reasons import REASONS, runbook_of

UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: what it says, its labels beside `migration`, and whether it only grows."""

    says: str
    labels: tuple[str, ...] = ()
    counter: bool = False


METRICS: Mapping[str, Metric] = {
    "switchover_gate_wait_seconds": Metric("Time in which a gate kept the migration waiting", ("gate",), counter=True),
    "switchover_step": Metric("1 for the step on record and the way it is walked", ("step", "direction")),
    "switchover_phase": Metric("1 for the phase, 0 for the others", ("phase",)),
    "switchover_attempt": Metric("Number of the attempt, from 1"),
    "switchover_rollback_available": Metric("1 while every step can be taken back"),
    "switchover_stalled": Metric(
        "1 while the condition Stalled is True, with its reason and its runbook's place below docs/", ("reason", "runbook")),
    "switchover_stalled_since_timestamp_seconds": Metric(
        "Since when the condition Stalled is True, whatever its reasons were since, in seconds since the epoch"),
    "switchover_automatic_rollback": Metric(
        "1 from when it begins to roll back by itself until a person acknowledges that, with the reason and its runbook",
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
    """The same figure, once for all migrations that tell it: of most that is the case, which are 0 or 1."""
    return figure


def on_record(status: MigrationStatus, steps: Collection[str]) -> Iterator[Figure]:
    """The figures of METRICS but the waits. A step that is not among `steps` is told as Unknown."""
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
    """A reason and its runbook; one that this release does not know may be any word."""
    return (reason if reason in REASONS else UNKNOWN), runbook_of(reason)


def waits_of(judged: Iterable[Judgement], seconds: float) -> Mapping[str, float]:
    """The seconds since the last pass for every gate that is not open. A gate of one node counts for all of its kind."""
    return {item.gate.partition("/")[0]: seconds for item in judged if not item.open}
