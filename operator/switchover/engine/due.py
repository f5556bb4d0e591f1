"""When a migration is looked at again: by what it does, not by how many there are."""

from switchover.engine.pace import waits_for_a_person, waits_for_a_window
from switchover.engine.plan import Decision
from switchover.engine.position import Position

AT_ONCE, MOVING, WAITING, STANDING, ENDED = 0.0, 1.0, 3.0, 30.0, 100.0
"""Seconds until the next pass: after a record; while a step is under way, whose gates count passes; while it waits to begin;
while only somebody else can change anything; at the end, where the watch tells of whatever is wanted next."""
SLOWING = 4.0
"""After so many seconds without a change the next look is a second later: what a person has just touched is seen soon."""


def due(before: Position, decision: Decision, now: float) -> float:
    """Seconds until the next pass over a migration that stood at `before` and was decided about at `now`."""
    if decision.position != before:
        return AT_ONCE
    judged = decision.judged.values()
    if before.finished:
        return ENDED if all(item.open for item in judged) else STANDING
    if decision.effects:
        return MOVING
    stands = decision.stalled is not None and before.batch is None
    if stands or waits_for_a_person(decision) or waits_for_a_window(decision):
        is_settling = any(item.held != ("", "") for item in judged)          # a gate counts passes, which it must get
        changed = max((item.streak.since for item in judged), default=now)
        return WAITING if is_settling else min(max((now - changed) / SLOWING, WAITING), STANDING)
    return WAITING if before.opened is None else MOVING


def is_moving(seconds: float) -> bool:
    """Whether a migration that is due in so many seconds goes before others: something of it is under way."""
    return seconds <= MOVING
