"""What every migration tells in figures (Prometheus): where it stands, and where the time goes.

Label values are words of ours, names of pods and uids: never a name that a tenant of the cluster chose. The name of a
migration, which Kubernetes keeps to a few characters, is in one metric of its own (`metrics.INFO`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from switchover.api.status import MigrationStatus, Phase
from switchover.engine.gate import Judgement


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


def on_record(status: MigrationStatus, steps: Iterable[str]) -> Iterator[Figure]:
    """The figures of METRICS but the waits. A step that is not among `steps` is told as Unknown."""
    for phase in Phase:
        yield Figure("switchover_phase", (phase.value,), phase is status.phase)
    step = status.progress.step if status.progress.step in steps else "Unknown"
    yield Figure("switchover_step", (step, status.progress.direction.value), 1)
    yield Figure("switchover_attempt", (), status.attempt)
    yield Figure("switchover_rollback_available", (), status.rollback.available)


def waits_of(judged: Iterable[Judgement], seconds: float) -> Mapping[str, float]:
    """The seconds since the last pass for every gate that is not open. A gate of one node counts for all of its kind."""
    return {item.gate.partition("/")[0]: seconds for item in judged if not item.open}
