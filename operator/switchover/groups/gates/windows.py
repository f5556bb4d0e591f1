"""The windows of a ConsumerGroupMigration."""

from switchover.engine.gate import Gate, Verdict
from switchover.engine.within_window import judge
from switchover.groups.picture import Picture
from switchover.groups.slots import BATCH_SECONDS, sizes


def check_within_window(picture: Picture) -> Verdict:
    return judge(picture.spec.windows, picture.position, picture.now, lambda: seconds_needed(picture), one_piece=False)


def seconds_needed(picture: Picture) -> float:
    """How long the next batch takes."""
    batches = sizes(picture)
    return BATCH_SECONDS + batches[min(picture.position.batches_done, len(batches) - 1)].bake


WITHIN_WINDOW: Gate[Picture] = Gate("WithinWindow", check_within_window)
