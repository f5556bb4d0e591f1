"""How a migration's time was spent, and how long its batches took: what was measured, as far as it is kept on record."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from switchover.engine.plan import Decision
from switchover.engine.position import Position
from switchover.reasons.walk import BACKUPS_MISSING, NO_SUCH_STEP, OF_WINDOWS, ZOOKEEPER_RUNS

WAITS_FOR_A_PERSON = frozenset({BACKUPS_MISSING.name, NO_SUCH_STEP.name, ZOOKEEPER_RUNS.name})


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of the migration so far: something was done, gates or bakes were waited for, a person was waited for.

    `batch` is of the batch on record alone: from its first eviction until its gates had passed, without waits for people.
    """

    active: float = 0.0
    gates: float = 0.0
    human: float = 0.0
    batch: float = 0.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How long batches took to come back in one mode, from their first eviction until their gates passed, in seconds."""

    batches: int
    average: float
    slowest: float


def under_way(at: Position) -> bool:
    """Whether a pod of the batch on record has been put on record to be evicted: from then on the batch must end."""
    return at.batch is not None and any(at.nodes[name].evictions > 0 for name in at.batch.nodes)


def batch_time(spent: float, seconds: float, before: Position, after: Position, idle: bool) -> float:
    """The time of the batch on record, `seconds` after it was `spent`; `idle` are those in which a person was waited for."""
    if before.batch is None or (after.batch is not None and after.batch.started != before.batch.started):
        return 0.0
    return spent if idle or before.batch.proven is not None or not under_way(before) else spent + seconds


def with_batch(paces: Mapping[str, Pace], before: Position, after: Position, seconds: float) -> Mapping[str, Pace]:
    """The paces with the batch that `after` has just done, if it has; it took so many seconds."""
    done = before.batch
    if done is None or after.batch is not None or after.step != before.step or after.batches_done == before.batches_done:
        return paces
    mode = before.nodes[done.nodes[0]].assigned
    old = paces.get(mode, Pace(0, 0.0, 0.0))
    average = (old.average * old.batches + seconds) / (old.batches + 1)
    return {**paces, mode: replace(old, batches=old.batches + 1, average=average, slowest=max(old.slowest, seconds))}


def waits_for_a_person(decision: Decision) -> bool:
    """Paused, before an approval, for somebody's backups or correction: nobody can tell for how long."""
    asked = WAITS_FOR_A_PERSON & {item.verdict.reason for item in decision.judged.values()}
    return bool(asked) or bool({"Approval", "Paused"} & decision.judged.keys())


def waits_for_a_window(decision: Decision) -> bool:
    return any(item.verdict.reason in OF_WINDOWS for item in decision.judged.values())


def spend(spent: Spent, seconds: float, before: Position, decision: Decision) -> Spent:
    """`spent` with the seconds since the last pass put where they belong. Windows are a person's wish, like a pause."""
    if decision.position.finished:
        return spent
    human = waits_for_a_person(decision) or waits_for_a_window(decision)
    spent = replace(spent, batch=batch_time(spent.batch, seconds, before, decision.position, human))
    if human:
        return replace(spent, human=spent.human + seconds)
    waits = any(not item.open for item in decision.judged.values())
    if decision.effects or decision.position != before or not waits:
        return replace(spent, active=spent.active + seconds)
    return replace(spent, gates=spent.gates + seconds)
