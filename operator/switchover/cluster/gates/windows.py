"""The windows of a KafkaMigration."""

from dataclasses import replace

from switchover.api.kafka_migration import KafkaMigrationStep as Step
from switchover.cluster.estimate import work_of
from switchover.cluster.picture import Picture
from switchover.engine.gate import Gate, Verdict
from switchover.engine.within_window import judge

ONE_PIECE = (Step.COPY_METADATA, Step.FINALIZE)
"""Steps that end once they have begun to restart nodes."""


def check_within_window(picture: Picture) -> Verdict:
    at = picture.position
    return judge(picture.spec.windows, at, picture.now, lambda: seconds_needed(picture), at.step in ONE_PIECE)


def seconds_needed(picture: Picture) -> float:
    """How long what starts next in this step takes, at the pace of the slowest batch so far."""
    at = picture.position
    work = work_of(picture.at(replace(at, batch=None)), at.step, slowest=True)
    return next((each.seconds for each in work if each.disrupts), 0.0)


WITHIN_WINDOW: Gate[Picture] = Gate("WithinWindow", check_within_window)
