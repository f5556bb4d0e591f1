"""From samples to one of eleven verdicts for each partition. The table: docs/facts/lag.md#the-verdicts.

What that leaves open is closed on the safe side: a commit beyond the high watermark in the newest sample alone is
UNKNOWN (as lag below zero it would pass), and BEHIND counts as growing only when T is known to be above T_ok and the lag
has not peaked (the slope of ten minutes still points up long after a burst). A last marker that retention deleted is not
LOST.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from switchover.lag.quantities import Quantities, measure
from switchover.lag.samples import NONE, Bools, Ints, Samples
from switchover.lag.thresholds import Baseline, Thresholds, allowed_quiet, allowed_time_lag

Codes = NDArray[np.int8]


class Verdict(IntEnum):
    """What a partition's samples say, in the order in which they are asked for."""

    UNKNOWN = 1
    LOST = 2
    BEYOND_END = 3
    UNCOMMITTED = 4
    REWOUND = 5
    IDLE = 6
    OK = 7
    STALLED = 8
    STOPPED = 9
    CATCHING_UP = 10
    BEHIND = 11


class Effect(IntEnum):
    """What it means for the group, whose own effect is the worst of its partitions'."""

    PASS = 0
    HOLD = 1
    INCONCLUSIVE = 2
    FAIL = 3


EFFECTS: Final = {
    Verdict.UNKNOWN: Effect.INCONCLUSIVE,
    Verdict.LOST: Effect.FAIL,
    Verdict.BEYOND_END: Effect.FAIL,
    Verdict.UNCOMMITTED: Effect.HOLD,
    Verdict.REWOUND: Effect.HOLD,           # Fail when it is large or lasts
    Verdict.IDLE: Effect.PASS,              # Hold when progress is required
    Verdict.OK: Effect.PASS,
    Verdict.STALLED: Effect.HOLD,           # these two and BEHIND fail in the end, see hysteresis.py
    Verdict.STOPPED: Effect.HOLD,
    Verdict.CATCHING_UP: Effect.HOLD,
    Verdict.BEHIND: Effect.HOLD,
}
_BY_CODE = np.array([Effect.INCONCLUSIVE, *(EFFECTS[verdict] for verdict in Verdict)], dtype=np.int8)


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """What a group's evaluation asks of P partitions at one moment."""

    verdict: Codes
    """Verdict of each."""
    effect: Codes
    """Effect of each, before anything escalates."""
    growing: Bools
    """T is known to be above T_ok, or L is above L_ok, and the lag grows and has not peaked: what makes BEHIND fail in the
    end."""
    strayed: Bools
    """Not known to be within 1.5·T_ok, or beyond 1.5·L_ok: a gate that has passed is left when this lasts."""


@dataclass(frozen=True, slots=True, eq=False)
class Judged(Verdicts):
    """P partitions at one moment; each row depends on the samples of its own partition alone."""

    quantities: Quantities
    time_lag_ok: Ints
    """T_ok in milliseconds; NONE: any age."""
    lag_ok: int
    """L_ok in records; NONE: any number."""
    quiet_ok: Ints
    """K in milliseconds."""
    baseline: Bools
    """T_ok comes from a baseline."""


def judge(samples: Samples, now: int, thresholds: Thresholds, *, baseline: Baseline | None = None,
          since: int | None = None, reset_declared: bool = False) -> Judged:
    """Judge the window that ends at `now` (ms since the epoch).

    `since` is when the running step began: evidence from before a change of ownership never passes the step after it.
    `reset_declared`: the running step sets offsets back itself, so a rewind is no finding.
    """
    q = measure(samples, now, thresholds, since)
    partitions = len(q.lag)
    t_ok, k = allowed_time_lag(thresholds, baseline, partitions), allowed_quiet(thresholds, baseline, partitions)
    uncommitted = q.committed == NONE
    drained = q.lag <= 0
    aged = t_ok != NONE
    late = aged & ~drained & (q.censored | (q.time_lag > t_ok))
    most = np.inf if thresholds.max_lag == NONE else thresholds.max_lag
    many = ~drained & (q.lag > most)
    standing = np.where(aged, late & (q.quiet > k), q.stood > k)      # of an age, what is not late need not have moved
    well = ~(late | many | standing)
    lasting = (q.drop > thresholds.max_redelivery) | (q.rewound >= k)
    rewinds = (q.drop > 0) & ~drained & (aged | lasting)            # else a short one is judged by its records
    commits = (q.silent != NONE) & (q.silent <= k)
    shrinks = q.growth < -q.dead_band
    waiting = ~q.judgeable & ~(thresholds.at_once & _seen_at_once(q, thresholds, ~aged))

    table = (
        (waiting,                                                       Verdict.UNKNOWN),
        (~uncommitted & (q.committed < q.start) & ~drained,             Verdict.LOST),
        (q.beyond & q.beyond_before,                                    Verdict.BEYOND_END),
        (q.beyond,                                                      Verdict.UNKNOWN),       # the next sample shows
        (uncommitted & (q.next >= q.end),                               Verdict.IDLE),
        (uncommitted,                                                   Verdict.UNCOMMITTED),
        (rewinds & (not reset_declared),                                Verdict.REWOUND),
        (well & q.still & (q.span > 0),                                 Verdict.IDLE),
        (well,                                                          Verdict.OK),
        (standing & commits,                                            Verdict.STALLED),
        (standing,                                                      Verdict.STOPPED),
        (shrinks & (q.eta * 1000 <= thresholds.max_catch_up),           Verdict.CATCHING_UP),
    )
    verdict = np.select([condition for condition, _ in table], [np.int8(code) for _, code in table],
                        np.int8(Verdict.BEHIND))

    effect = _BY_CODE[verdict]
    effect[(verdict == Verdict.REWOUND) & lasting] = Effect.FAIL
    effect[(verdict == Verdict.IDLE) & thresholds.require_progress] = Effect.HOLD
    return Judged(
        verdict, effect, growing=(q.growth > q.dead_band) & ~q.peaked & (many | (aged & (q.time_lag > t_ok))),
        strayed=~drained & ((aged & (q.censored | (2 * q.time_lag > 3 * t_ok))) | (2 * q.lag > 3 * most)),
        quantities=q, time_lag_ok=t_ok, lag_ok=thresholds.max_lag, quiet_ok=k,
        baseline=np.full(partitions, False) if baseline is None else baseline.time_lag_q99 != NONE)


def _seen_at_once(q: Quantities, thresholds: Thresholds, ageless: Bools) -> Bools:
    """Where one sample says what there is: nothing to consume, nothing committed, or records that were deleted before they
    were consumed; where no age is asked for, how many records there are. Whether a lag is worked off only time shows, and a
    commit beyond the end is nothing in one sample."""
    lost, nothing_left = (q.committed < q.start) & (q.lag > 0), (q.lag <= 0) & ~q.beyond
    counted = ageless & (~q.beyond | (q.count > 1))
    seen: Bools = (q.count > 0) & (q.age <= thresholds.max_age) & ((q.committed == NONE) | lost | nothing_left | counted)
    return seen


def drained(judged: Judged) -> Bools:
    """The other direction, for a step that stops the consumers: nothing is left to commit, and no commit came for K."""
    q = judged.quantities
    done: Bools = q.judgeable & (q.committed != NONE) & (q.lag <= 0) & ~q.beyond & (q.quiet > judged.quiet_ok)
    return done
