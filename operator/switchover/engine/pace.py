"""How a migration's time was spent, and how long its batches took: what was measured, as far as it is on record."""

import zlib
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
    """Paused, before an approval, for somebody's backups or correction: it is not known for how long."""
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


# --- when a migration is looked at again --------------------------------------------------------------------------------


AT_ONCE, MOVING, WAITING, STANDING, ENDED = 0.0, 1.0, 3.0, 30.0, 100.0
"""Seconds until the next pass: after a record; while a step is under way, whose gates count passes; while it waits to begin;
while only somebody else can change anything; at the end, where the watch brings whatever is wanted next."""
SLOWING = 4.0
"""After so many seconds without news the next look is a second later: what a person has just touched is seen soon."""


def due(before: Position, decision: Decision, now: float, news: float) -> float:
    """Seconds until the next pass over a migration that stood at `before` and was decided about at `now`.

    `news` is when this operator last wrote something new about it, -inf where it never has: one that has just begun, and
    finds everything as it is on record, looks as seldom as the one before it did.
    """
    if decision.position != before:
        return AT_ONCE
    judged = decision.judged.values()
    if before.finished:
        return ENDED if all(item.open for item in judged) else STANDING
    if decision.effects:
        return MOVING
    stands = decision.stalled is not None and before.batch is None
    if stands or waits_for_a_person(decision) or waits_for_a_window(decision):
        return WAITING if is_settling(decision) else min(max((now - news) / SLOWING, WAITING), STANDING)
    return WAITING if before.opened is None else MOVING


def is_settling(decision: Decision) -> bool:
    """Whether a gate passes that has to go on passing: it counts passes, which it must get."""
    return any(item.held != ("", "") for item in decision.judged.values())


def is_moving(seconds: float) -> bool:
    """Whether a migration that is due in so many seconds goes before others: something of it is under way."""
    return seconds <= MOVING


def share(uid: str) -> float:
    """Of each object another one, from 0 to 1: what began together is not due together."""
    return zlib.crc32(uid.encode()) / 2**32
