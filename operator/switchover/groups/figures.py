"""What a ConsumerGroupMigration tells in figures beside what every migration does."""

from collections.abc import Iterator, Mapping

from switchover.api.consumer_group_migration import ConsumerGroupMigrationStatus
from switchover.engine.figures import Figure, Metric, on_record
from switchover.groups.lag_figures import lag_figures
from switchover.groups.picture import Picture
from switchover.outside.observed import NOT_ASKED, Known

METRICS: Mapping[str, Metric] = {
    "switchover_group_members": Metric("Members of the group, by the protocol they take part in", ("protocol",)),
    "switchover_slots": Metric("Places of pods, by the mode that is assigned to them", ("mode",)),
}


def figures(status: ConsumerGroupMigrationStatus, steps: tuple[str, ...], picture: Picture | None) -> tuple[Figure, ...]:
    """Everything that can be told now. Without a picture: what is on record alone."""
    lag = picture.facts.lag if picture is not None else NOT_ASKED
    return (*on_record(status, steps), *_own(status), *(lag_figures([lag.value]) if isinstance(lag, Known) else ()))


def _own(status: ConsumerGroupMigrationStatus) -> Iterator[Figure]:
    for mode in ("Original", "Intermediate", "Target"):
        yield Figure("switchover_slots", (mode,), sum(slot.assigned == mode for slot in status.slots))
    if status.group is not None:
        classic = status.group.classic_members
        yield Figure("switchover_group_members", ("classic",), classic)
        yield Figure("switchover_group_members", ("consumer",), status.group.members - classic)
