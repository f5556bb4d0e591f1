"""The figures that a lag verdict is made of, from the samples of one window. `n` is the newest sample of a partition.

Integers in, integers out (docs/facts/lag.md#the-sample), so that the operator and Spark agree to
the bit. Fewer than 2^40 records may arrive between two samples.
"""

from dataclasses import dataclass

import numpy as np

from switchover.lag.samples import NONE, Bools, Floats, Ints, Samples
from switchover.lag.thresholds import Thresholds

DEAD_BAND = 0.02
"""A trend of less than this share of what arrives is none."""
SMALLEST_DEAD_BAND = 1 / 60
"""Records per second: one in a minute is no trend."""


@dataclass(frozen=True, slots=True, eq=False)
class Quantities:
    """Arrays with one figure for each of P partitions; meaningless where not `judgeable`.

    Times are milliseconds, rates records per second, `eta` seconds. Where the group has no commit, the log start stands
    for it: the whole log is to be read.
    """

    judgeable: Bools
    """Enough valid samples over enough time, the newest young enough, and no hole between them."""
    count: Ints
    """Valid samples in the window."""
    span: Ints
    """From the first of them to the newest."""
    age: Ints
    """From the newest to now."""
    hole: Ints
    """The longest time between two of them."""
    committed: Ints
    """C_n, or NONE."""
    end: Ints
    """E_n."""
    start: Ints
    """S_n."""
    next: Ints
    """Where the oldest record that is not committed may be: C_n, or further where nothing can be read up to there."""
    lag: Ints
    """L = E_n - C_n - m, below zero when the commit is beyond the end; E_n - next where that is further than C_n."""
    time_lag: Ints
    """T, the age of the oldest record that is not committed; 0 without lag."""
    censored: Bools
    """That record is older than the window: T is at least `time_lag`."""
    arriving: Floats
    """r, records per second."""
    growth: Floats
    """g, the resistant slope of the lag: negative when it shrinks."""
    peaked: Bools
    """The newest lag is below the median of the last third: it falls by now, whatever the slope of the whole window says."""
    dead_band: Floats
    """eps: a growth between -eps and eps is none."""
    eta: Floats
    """Time until the lag is gone at this growth, infinite when it does not shrink."""
    stood: Ints
    """For how long the newest samples all have the same commit and something behind it to consume; 0 without either."""
    quiet: Ints
    """Since the committed offset changed; the whole span when it never did."""
    silent: Ints
    """Since the last commit, even of the same offset; NONE where commit times are not known."""
    drop: Ints
    """By how much C_n is below the largest commit of the window: a rewind that is not made up for."""
    rewound: Ints
    """Since the commit fell below that largest one, 0 without a drop."""
    beyond: Bools
    """C_n is beyond the high watermark, of a log in which there was something to consume at any time in the window."""
    beyond_before: Bools
    """So it was in the sample before."""
    still: Bools
    """E and C are what they were in the first sample."""


def measure(samples: Samples, now: int, thresholds: Thresholds, since: int | None = None) -> Quantities:
    """The figures of the window that ends at `now`, without samples taken before `since`."""
    usable = _usable(samples, now, thresholds, since)
    count, window = usable.sum(axis=1), samples.packed(usable)
    time, end, start = window.time, window.end, window.start
    committed = np.where(window.committed == NONE, start, window.committed)
    newest, at = committed[:, -1], time[:, -1]

    slack = 0 if samples.transactional is None else thresholds.marker_slack * samples.transactional
    readable = newest if samples.readable is None else np.minimum(samples.readable, end[:, -1])
    following = np.maximum(newest, readable)
    lag = end[:, -1] - following - np.where(following > newest, 0, slack)
    emptied = start[:, -1] >= end[:, -1]            # by retention: whatever was committed, nothing is there to be consumed
    lag = np.where(emptied, np.minimum(lag, 0), lag)
    time_lag, censored = _head_age(time, end, following)
    span, age, hole = at - time[:, 0], now - at, _largest(np.diff(time))
    arriving = _per_second(end[:, -1] - end[:, 0], span)
    growth, recent = _resistant_slope(time, end - committed, count)
    dead_band = np.maximum(DEAD_BAND * arriving, SMALLEST_DEAD_BAND)
    shrinking = growth < -dead_band

    waits = (window.committed == window.committed[:, -1:]) & (end > (end[:, -1] - lag)[:, None])
    stands = np.where(waits.all(axis=1), 0, np.minimum(_last(~waits) + 1, time.shape[1] - 1))

    top = np.maximum.accumulate(committed, axis=1)
    drop = top[:, -1] - newest
    fell = _last(committed >= top) + 1             # the sample after the last one that was not below the largest
    high = end if window.high is None else window.high
    beyond = (window.committed > high) & ~(start >= high).all(axis=1, keepdims=True)
    commit_time = np.full(len(at), NONE) if window.commit_time is None else window.commit_time[:, -1]
    return Quantities(
        judgeable=((count >= thresholds.min_samples) & (span >= thresholds.min_span) & (age <= thresholds.max_age)
                   & (hole <= thresholds.max_hole)),
        count=count, span=span, age=age, hole=hole,
        committed=window.committed[:, -1], end=end[:, -1], start=start[:, -1],
        next=following, lag=lag, time_lag=np.where(lag > 0, time_lag, 0), censored=censored & (lag > 0),
        arriving=arriving, growth=growth, peaked=2 * (end[:, -1] - newest) < recent, dead_band=dead_band,
        eta=np.divide(lag, -growth, out=np.full(len(at), np.inf), where=shrinking),
        stood=np.where((lag > 0) & (window.committed[:, -1] != NONE), at - _at(time, stands), 0),
        quiet=at - _at(time, _last(np.diff(committed, prepend=committed[:, :1]) != 0)),
        silent=np.where(commit_time == NONE, NONE, np.maximum(at - commit_time, 0)),
        drop=drop, rewound=np.where(drop > 0, at - _at(time, np.minimum(fell, time.shape[1] - 1)), 0),
        beyond=beyond[:, -1], beyond_before=beyond[:, -2:][:, 0],
        still=(end[:, -1] == end[:, 0]) & (newest == committed[:, 0]))


def _usable(samples: Samples, now: int, thresholds: Thresholds, since: int | None) -> Bools:
    """Valid, in the window, and later than every such sample before it (a clock may have been put back)."""
    time = samples.time
    usable: Bools = samples.valid & (time <= now) & (time > now - thresholds.window)
    if since is not None:
        usable &= time >= since
    known = np.where(usable, time, np.iinfo(np.int64).min)
    usable[:, 1:] &= time[:, 1:] > np.maximum.accumulate(known, axis=1)[:, :-1]
    return usable


def _head_age(time: Ints, end: Ints, committed: Ints) -> tuple[Ints, Bools]:
    """How long ago the end was where the commit is now, between the two samples around it; or the span, and censored."""
    covered = end <= committed[:, None]
    before = np.minimum(_last(covered), end.shape[1] - 2)      # covered to the last sample: no lag, and no age is asked
    passed = _at(end, before)
    arrived = np.maximum(_at(end, before + 1) - passed, 1)
    since = _at(time, before)
    age = time[:, -1] - since - (committed - passed) * (_at(time, before + 1) - since) // arrived
    censored: Bools = np.logical_not(covered.any(axis=1))
    return np.where(censored, time[:, -1] - time[:, 0], age), censored


def _resistant_slope(time: Ints, lag: Ints, count: Ints) -> tuple[Floats, Ints]:
    """Tukey's resistant line: from the median of the first third of the samples to that of the last, per second.

    And twice that last median.
    """
    size = np.maximum((count + 1) // 3, 1)
    first = np.minimum(time.shape[1] - count, time.shape[1] - 1)
    last = time.shape[1] - size
    recent = _twice_median(lag, last, size)
    return _per_second(recent - _twice_median(lag, first, size),
                       _twice_median(time, last, size) - _twice_median(time, first, size)), recent


def _twice_median(values: Ints, first: Ints, size: Ints) -> Ints:
    """Twice the median (so that it stays an integer) of `size` values of each row, from column `first` on."""
    offsets = np.arange(size.max(initial=1))
    columns = np.minimum(first[:, None] + offsets, values.shape[1] - 1)
    chosen = np.where(offsets < size[:, None], np.take_along_axis(values, columns, axis=1), np.iinfo(np.int64).max)
    chosen.sort(axis=1)
    return _at(chosen, (size - 1) // 2) + _at(chosen, size // 2)


def _per_second(difference: Ints, milliseconds: Ints) -> Floats:
    return difference * 1000 / np.maximum(milliseconds, 1)


def _last(where: Bools) -> Ints:
    """The last column that is True in each row, 0 where none is."""
    width = where.shape[1]
    return np.where(where.any(axis=1), width - 1 - where[:, ::-1].argmax(axis=1), 0)


def _at(values: Ints, columns: Ints) -> Ints:
    return np.take_along_axis(values, columns[:, None], axis=1)[:, 0]


def _largest(values: Ints) -> Ints:
    largest: Ints = values.max(axis=1, initial=0)
    return largest
