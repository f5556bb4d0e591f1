"""How long a KafkaMigration still takes."""

from switchover.cluster.estimate import direction_seconds
from switchover.cluster.picture import Picture
from switchover.engine.pace import waits_for_a_person
from switchover.engine.plan import Decision


def remaining(picture: Picture, decision: Decision) -> float | None:
    """Seconds until the end of the direction on record; None while a person is waited for, and while nobody can tell."""
    if decision.position.finished or waits_for_a_person(decision):
        return None
    return direction_seconds(picture.at(decision.position))
