"""The numbers that a lag verdict depends on, and what a partition is used to.

Times are milliseconds. Defaults and formulas: docs/facts/lag.md#quantities.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from switchover.lag.samples import NONE, Ints

MOST: Final = 600
"""Samples of a partition that stay, however long the window is."""
RECENT: Final = 24
"""The newest of them, which all stay. Of a window that would have more than MOST, older ones stay apart."""
SHORTEST: Final = 600_000
"""The window of a cluster's groups at least: so long a standstill is measured, whatever is allowed."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """One set for a whole group. Raises ValueError when a window could not show what is asked of it."""

    poll: int = 15_000
    """Time between two samples, and between two evaluations."""
    window: int = 600_000
    """How far back samples count."""
    min_samples: int = 8
    """Valid samples without which nothing is judged."""
    min_span: int = 120_000
    """Time from the first to the newest sample without which nothing is judged."""
    at_once: bool = False
    """What one sample proves needs no more evidence."""
    max_time_lag: int = 60_000
    """T_ok, the age that the oldest uncommitted record may have, where there is no baseline; NONE: any age."""
    max_lag: int = NONE
    """L_ok, the records that a partition may be behind; NONE: any number."""
    min_time_lag: int = 30_000
    """T_ok of a partition that is used to less."""
    slo_ceiling: int = 300_000
    """T_ok of a partition that is used to more."""
    max_stall: int = 60_000
    """K, how long the committed offset may stand, where there is no baseline."""
    min_quiet: int = 60_000
    """K of a partition that is used to commit more often."""
    quiet_ceiling: int = 600_000
    """K of a partition that is used to commit more seldom; never more than `max_quiet`."""
    max_catch_up: int = 1_800_000
    """A backlog that is gone within this time is being caught up."""
    max_redelivery: int = 10_000
    """Records that a rewind may bring a second time."""
    marker_slack: int = 1
    """Offsets at the end of a transactional partition that are markers and never committed."""
    require_progress: bool = False
    """An idle partition holds: only a record that was consumed proves that the consumer works."""
    pass_evaluations: int = 5
    """Consecutive evaluations that must pass before the gate does."""
    pass_time: int = 120_000
    """Time that those evaluations must span."""
    leave_evaluations: int = 2
    """Consecutive evaluations with T > 1.5·T_ok that make the gate leave Pass."""
    standing_evaluations: int = 3
    """Consecutive evaluations of a partition as STALLED or STOPPED that fail."""
    behind_evaluations: int = 10
    """Consecutive evaluations of a partition as BEHIND that fail once its lag grows."""
    deadline: int = 1_800_000
    """Time in Hold after which a person must look."""

    def __post_init__(self) -> None:
        if self.min_samples < 2 or self.min_span < 1:
            raise ValueError("a trend needs at least two samples at different times")
        longest = max(self.max_time_lag, self.slo_ceiling, self.min_time_lag, self.max_stall, self.min_quiet, self.min_span)
        if longest > self.max_quiet:
            raise ValueError(f"a window of {self.window} ms with holes of {self.max_hole} ms cannot show {longest} ms")
        if self.min_samples > (sure := RECENT if self.apart else self.width):
            raise ValueError(f"a window of {self.window} ms with a sample every {self.poll} ms is sure to have {sure} of "
                             f"them, not {self.min_samples}")

    @property
    def width(self) -> int:
        """Samples of each partition."""
        return min(self.window // self.poll, MOST)

    @property
    def apart(self) -> int:
        """Time between two samples older than the RECENT newest that both stay; 0: every one does."""
        return 0 if self.window // self.poll <= MOST else -(-self.window // (MOST - RECENT))

    @property
    def max_age(self) -> int:
        """Age of the newest sample beyond which nothing is judged."""
        return 2 * self.poll + 5_000

    @property
    def max_hole(self) -> int:
        """Time between two valid samples beyond which nothing is judged."""
        return 4 * max(self.poll, self.apart)

    @property
    def max_pause(self) -> int:
        """Time between two evaluations beyond which the gate starts over."""
        return 4 * self.poll

    @property
    def max_quiet(self) -> int:
        """The largest K: what a window still shows when a hole lies before it.

        It is not 10 minutes, which a window of 10 minutes can never exceed.
        """
        return self.window - self.max_hole


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """What each of P partitions is used to at this hour of the week; NONE where nothing is known.

    `time_lag_q99`: 0.99 quantile of the head age T. `commit_interval_p99`: 0.99 quantile of the time between two commits.
    """

    time_lag_q99: Ints
    commit_interval_p99: Ints


def allowed_time_lag(thresholds: Thresholds, baseline: Baseline | None, partitions: int) -> Ints:
    """T_ok of each partition; NONE where any age is."""
    without = np.full(partitions, thresholds.max_time_lag)
    if baseline is None:
        return without
    used_to = np.clip(2 * baseline.time_lag_q99, thresholds.min_time_lag, thresholds.slo_ceiling)
    return np.where(baseline.time_lag_q99 == NONE, without, used_to)


def allowed_quiet(thresholds: Thresholds, baseline: Baseline | None, partitions: int) -> Ints:
    """K of each partition."""
    without = np.full(partitions, max(2 * thresholds.poll, thresholds.max_stall))
    if baseline is None:
        return without
    smallest = max(2 * thresholds.poll, thresholds.min_quiet)
    largest = max(min(thresholds.quiet_ceiling, thresholds.max_quiet), smallest)
    used_to = np.clip(3 * baseline.commit_interval_p99, smallest, largest)
    return np.where(baseline.commit_interval_p99 == NONE, without, used_to)


def of_a_cluster(poll: int, max_lag: int, max_stall: int) -> Thresholds:
    """What a KafkaMigration's gate judges a group by (times in ms): what the user allows, and a window that can show it.

    Records are counted and a standstill is timed, so one sample is enough to begin with, and a hole between two spoils
    nothing.
    """
    return Thresholds(
        poll=poll, window=max(2 * max_stall + 10 * poll, SHORTEST), min_samples=2, min_span=1, at_once=True,
        max_time_lag=NONE, min_time_lag=0, slo_ceiling=0, max_lag=max_lag, max_stall=max_stall, min_quiet=max_stall,
        quiet_ceiling=max_stall)


def of_a_migration(poll: int, max_time_lag: int, max_stall: int, pass_time: int) -> Thresholds:
    """What a ConsumerGroupMigration's gate judges by (all in ms): what the user allows, and a window that can show it.

    A baseline only tightens it: T_ok stays between 30 s and what the user allows, K between 60 s (a member that was killed
    leaves its partitions to nobody until its session has ended) and what the user allows.
    """
    return Thresholds(
        poll=poll, window=2 * max(max_time_lag, max_stall) + 10 * poll, min_samples=5, min_span=4 * poll,
        max_time_lag=max_time_lag, min_time_lag=min(30_000, max_time_lag), slo_ceiling=max_time_lag,
        max_stall=max_stall, min_quiet=min(60_000, max_stall), quiet_ceiling=max_stall, pass_evaluations=3,
        pass_time=pass_time)
