"""The windows of a KafkaMigration."""

from dataclasses import replace

from switchover.cluster.estimate import work_of
from switchover.cluster.picture import Picture
from switchover.engine.gate import Gate, Verdict
from switchover.engine.within_window import judge


def check_within_window(picture: Picture) -> Verdict:
    return judge(picture.spec.windows, picture.position, picture.now, lambda: seconds_needed(picture),
                 picture.step.one_piece)


def seconds_needed(picture: Picture) -> float:
    """How long what starts next in this step takes, at the pace of the slowest batch so far."""
    work = work_of(picture.at(replace(picture.position, batch=None)), picture.step, slowest=True)
    return next((each.seconds for each in work if each.disrupts), 0.0)


WITHIN_WINDOW: Gate[Picture] = Gate("WithinWindow", check_within_window)
