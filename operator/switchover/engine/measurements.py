"""What was measured in the course of a migration, kept in its status for the report: bounded, the worst of it always."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, islice, repeat
from math import ceil

from switchover.api.status import Measurements, Series
from switchover.shared.partition import TopicPartition

PER_STEP = 16
"""Times that are kept of one stay in a step."""
KEPT = 384
"""Times that are kept in all: the last ones. A whole plan there and back has fewer."""
SERIES = 24
NAMED = 200
"""Characters of a group's name."""
GROUPS = 10
"""Groups that are measured: the first ones that are named."""


def measured_of(before: Measurements, figures: Mapping[str, int], since: float, now: float) -> Measurements:
    """The measurements with those of this pass. `since` is when the step on record was entered.

    Where there are too many of a step, the two that lie closest become one, which has the worse value of each figure and
    the later time: so the times stay apart evenly, however long the step takes.
    """
    begun, at = (datetime.fromtimestamp(int(each), UTC) for each in (since, now))
    names = sorted(tuple(dict.fromkeys((*figures, *(each.name for each in before.series))))[:SERIES])
    known = {each.name: each.values for each in before.series}
    rows = [islice(chain(known.get(name, ()), repeat(-1)), len(before.times)) for name in names]
    columns = list(zip(before.times, zip(*rows, strict=True) if rows else repeat(()), strict=False))
    columns.append((at, tuple(figures.get(name, -1) for name in names)))
    first = sum(time < begun for time, _ in columns)
    if len(columns) - first > PER_STEP:
        closest = min(range(first, len(columns) - 1), key=lambda index: _span(columns, index, first))
        (_, one), (time, other) = columns[closest: closest + 2]
        columns[closest: closest + 2] = [(time, tuple(map(max, one, other)))]
    columns = columns[-KEPT:]
    return Measurements(
        times=tuple(time for time, _ in columns),
        series=tuple(Series(name=name, values=values)
                     for name, values in zip(names, zip(*(values for _, values in columns), strict=True), strict=True)))


def group_figures(groups: Mapping[str, tuple[int, Mapping[TopicPartition, float]]]) -> Iterator[tuple[str, int]]:
    """Of each group that was swept: records that are not committed, and for how many seconds a partition has stood still
    at most although it has records; from the first, and from the seconds of each that stands."""
    for group, (lag, stood) in groups.items():
        name = _series(group)
        yield f"GroupLag/{name}", lag
        yield f"GroupGap/{name}", ceil(max(stood.values(), default=0.0))


def _series(group: str) -> str:
    """The group as a series is called; a long name begins as another one may."""
    return group if len(group) <= NAMED else f"{group[:NAMED]}…{hashlib.sha256(group.encode()).hexdigest()[:8]}"


def _span(columns: Sequence[tuple[datetime, object]], index: int, first: int) -> timedelta:
    """The time that the column and the next one stand for together."""
    return columns[index + 1][0] - columns[max(first, index - 1)][0]
