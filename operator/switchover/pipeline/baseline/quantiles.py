"""Quantiles of integers over all hours and by the hour of the week."""

from collections.abc import Iterator, Sequence

import numpy as np

from switchover.lag.baseline import HOURS, hour_of_week
from switchover.lag.samples import NONE, Ints

ALWAYS = -1
"""Stands for all hours where an hour of the week is named."""


def quantiles(values: Ints, percents: Sequence[int]) -> list[int]:
    """The smallest of the values that so many percent of them do not exceed (SQL's PERCENTILE_DISC); NONE of no values."""
    if not len(values):
        return [NONE] * len(percents)
    ranks = [max(-(-len(values) * percent // 100), 1) - 1 for percent in percents]
    parted = np.partition(values, ranks)
    return [int(parted[rank]) for rank in ranks]


def by_hour(values: Ints, times: Ints, least: int) -> Iterator[tuple[int, Ints]]:
    """All values under ALWAYS, and for every hour of the week those of that hour, the hour before and the one after it.

    None where there are fewer than `least`.
    """
    if len(values) < least:
        return
    yield ALWAYS, values
    hours = hour_of_week(times)
    order = np.argsort(hours, kind="stable")
    ordered = values[order]
    edges = np.searchsorted(hours[order], np.arange(HOURS + 1))
    for hour in range(HOURS):
        around = [ordered[edges[each % HOURS]:edges[each % HOURS + 1]] for each in (hour - 1, hour, hour + 1)]
        if sum(map(len, around)) >= least:
            yield hour, np.concatenate(around)
