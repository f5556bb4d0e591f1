"""How the time of a KafkaMigration is spent, pass by pass."""

from dataclasses import replace

from switchover.core.kraft.estimate import direction_seconds
from switchover.core.kraft.picture import Picture
from switchover.core.pace import Spent, batch_time
from switchover.core.plan import Decision
from switchover.core.position import Position

WAITS_FOR_WINDOWS = frozenset({"OutsideWindow", "WindowTooShort", "NoWindowFits"})


def waits_for_a_person(decision: Decision) -> bool:
    """Paused, before an approval, or for somebody's backups: nobody can tell for how long."""
    asked = any(item.verdict.reason == "BackupsMissing" for item in decision.judged.values())
    return asked or bool({"Approval", "Paused"} & decision.judged.keys())


def waits_for_a_window(decision: Decision) -> bool:
    return any(item.verdict.reason in WAITS_FOR_WINDOWS for item in decision.judged.values())


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


def remaining(picture: Picture, decision: Decision) -> float | None:
    """Seconds until the end of the direction on record; None while a person is waited for, and while nobody can tell."""
    if decision.position.finished or waits_for_a_person(decision):
        return None
    return direction_seconds(picture.at(decision.position))
