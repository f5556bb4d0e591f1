"""What a ConsumerGroupMigration says in figures (Prometheus) besides what every migration does.

A group goes by its position in the spec, and partitions are counted by verdict. So a group has a fixed number of series
however many partitions it reads; which ones are in trouble stands in the status.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from switchover.answers.observed import NOT_ASKED, Known
from switchover.api.consumer_group_migration import ConsumerGroupMigrationStatus
from switchover.engine.figures import Figure, Metric, on_record
from switchover.groups.picture import Picture
from switchover.lag.verdicts import Effect, Verdict
from switchover.lag.watch import Assessment

LAG_METRICS: Final[Mapping[str, Metric]] = {
    "switchover_group_lag_records": Metric("Records that a group has not committed, over all its partitions", ("group",)),
    "switchover_group_time_lag_seconds": Metric("Age of the oldest record that a group has not committed", ("group",)),
    "switchover_group_time_lag_censored": Metric("1 when that record may be older than the age that is told", ("group",)),
    "switchover_group_gate": Metric("1 for what the gate of a group's lag says, 0 for the others", ("group", "effect")),
    "switchover_group_partitions": Metric("Partitions of a group by verdict", ("group", "verdict")),
    "switchover_group_sampled_timestamp_seconds": Metric(
        "When that partition of a group was sampled which was sampled longest ago, since the epoch", ("group",)),
}


def lag_figures(assessed: Sequence[Assessment]) -> tuple[Figure, ...]:
    """The figures of the groups of one migration, in the order in which its spec names them.

    What was never sampled is absent. Staleness is given as the time of the samples and not as their age, which would stand
    still with whoever takes them.
    """
    return tuple(figure for position, each in enumerate(assessed) for figure in _figures(str(position), each))


def _figures(group: str, assessment: Assessment) -> Iterator[Figure]:
    if assessment.lag is not None:
        yield Figure("switchover_group_lag_records", (group,), assessment.lag)
    if assessment.time_lag is not None:
        age, censored = assessment.time_lag
        yield Figure("switchover_group_time_lag_seconds", (group,), age / 1000)
        yield Figure("switchover_group_time_lag_censored", (group,), censored)
    for effect in Effect:
        yield Figure("switchover_group_gate", (group, effect.name), effect is assessment.gate.effect)
    counts = assessment.verdicts
    for verdict in Verdict:
        yield Figure("switchover_group_partitions", (group, verdict.name), counts[verdict])
    if assessment.sampled is not None:
        yield Figure("switchover_group_sampled_timestamp_seconds", (group,), assessment.sampled / 1000)


METRICS: Mapping[str, Metric] = {
    "switchover_group_members": Metric("Members of the group, by the protocol they take part in", ("protocol",)),
    "switchover_slots": Metric("Places of pods, by the mode that is assigned to them", ("mode",)),
}


def figures(status: ConsumerGroupMigrationStatus, steps: tuple[str, ...], picture: Picture | None) -> tuple[Figure, ...]:
    """Everything that can be said now. Without a picture: what is on record alone."""
    lag = picture.facts.lag if picture is not None else NOT_ASKED
    return (*on_record(status, steps), *_own(status), *(lag_figures([lag.value]) if isinstance(lag, Known) else ()))


def _own(status: ConsumerGroupMigrationStatus) -> Iterator[Figure]:
    for mode in ("Original", "Intermediate", "Target"):
        yield Figure("switchover_slots", (mode,), sum(slot.assigned == mode for slot in status.slots))
    if status.group is not None:
        classic = status.group.classic_members
        yield Figure("switchover_group_members", ("classic",), classic)
        yield Figure("switchover_group_members", ("consumer",), status.group.members - classic)
