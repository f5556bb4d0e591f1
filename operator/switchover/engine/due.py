"""When a migration is looked at again: by what it does, not by how many there are."""

import zlib

from switchover.engine.pace import waits_for_a_person, waits_for_a_window
from switchover.engine.plan import Decision
from switchover.engine.position import Position

AT_ONCE, MOVING, WAITING, STANDING, ENDED = 0.0, 1.0, 3.0, 30.0, 100.0
"""Seconds until the next pass: after a record; while a step is under way, whose gates count passes; while it waits to begin;
while only somebody else can change anything; at the end, where the watch tells of whatever is wanted next."""
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
