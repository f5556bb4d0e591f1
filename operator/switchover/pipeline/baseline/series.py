"""The history of one partition of one group, one sample for each capture, and its quantiles by hour of week."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from switchover.lag.baseline import HOURS, hour_of_week
from switchover.lag.samples import NONE, Bools, Ints, Samples

NOW: Final = 10**15
"""The moment, in ms, to which the clock of every window is moved: the kernel asks for differences of times alone."""
ROWS: Final = 8_192
"""Windows that are judged at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Commits:
    """Commits of one partition in the order in which they were written; `offset` NONE: the offset was deleted.

    `time` is by the clock of whoever wrote it, in ms since the epoch; it may go back, or be in the future. `writes` counts
    the writes up to each where ZooKeeper has it (a snapshot shows only the last of them), else it is NONE.
    """

    time: Ints
    offset: Ints
    writes: Ints

    def at(self, times: Ints) -> tuple[Ints, Bools]:
        """The committed offset at each of these times, and whether it is known: before the first commit it is not.

        Of those that bear no later time it is the one that was written last: a clock that was ahead once makes its commit
        count late and no other one wrong.
        """
        order = np.argsort(self.time, kind="stable")
        last = np.maximum.accumulate(order)
        found = np.searchsorted(self.time[order], times, side="right") - 1
        known: Bools = found >= 0
        return np.where(known, self.offset[last[np.maximum(found, 0)]], NONE), known

    def intervals(self) -> tuple[Ints, Ints]:
        """The times between two commits, and when each of them ended. Where a clock was put back there is none.

        Between two writes with others in between that nobody saw it is their mean.
        """
        commit = self.offset != NONE
        time, writes = self.time[commit], self.writes[commit]
        step, between = np.diff(time), np.where(writes[1:] == NONE, 1, np.diff(writes))
        usable = (step >= 0) & (between >= 1)
        return step[usable] // between[usable], time[1:][usable]


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One sample for each sweep, as `lag.samples.Samples` has them; arrays as long as there are sweeps.

    `skewed`: how many samples were ahead of the end because clocks differ, and were put right.
    """

    time: Ints
    committed: Ints
    end: Ints
    start: Ints
    valid: Bools
    skewed: int

    def windows(self, now: Ints, width: int, first: int = 0) -> Iterator[tuple[slice, Samples]]:
        """For the sweeps from `first` on, each at its time `now`, the last `width` samples as rows that end at NOW.

        Many at a time: which sweeps, and their samples.
        """
        padded = {name: sliding_window_view(np.pad(getattr(self, name), (width - 1, 0)), width)
                  for name in ("time", "committed", "end", "start", "valid")}
        for begin in range(first, len(now), ROWS):
            part = slice(begin, min(begin + ROWS, len(now)))
            yield part, Samples(padded["time"][part] - now[part, None] + NOW, padded["committed"][part], padded["end"][part],
                                padded["start"][part], padded["valid"][part])


def sampled(commits: Commits, sweep: Ints, time: Ints, end: Ints, start: Ints, sweeps: int) -> Series:
    """The series of a partition whose log ended at `end` and began at `start` when each `sweep` read it at `time`.

    A commit that is ahead of its sample's end though not of the next one's was stamped by another clock than the sample:
    nothing was beyond the end. What is ahead of both is left to the verdict.
    """
    order = np.argsort(sweep, kind="stable")
    sweep, time, end, start = sweep[order], time[order], end[order], start[order]
    committed, known = commits.at(time)
    following = np.append(end[1:], np.iinfo(np.int64).max)
    skewed = (committed > end) & (committed <= following)
    committed = np.where(skewed, end, committed)

    def laid(values: Ints) -> Ints:
        cells = np.zeros(sweeps, dtype=np.int64)
        cells[sweep] = values
        return cells

    return Series(laid(time), laid(committed), laid(end), laid(start), laid(known.astype(np.int64)).astype(np.bool_),
                  int(skewed.sum()))


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
