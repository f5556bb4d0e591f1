"""Readings of partitions for the tests of the lag kernel: by hand, or made up by a dice."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from switchover.lag.group import TopicPartition
from switchover.lag.samples import NONE, Samples
from switchover.lag.thresholds import Thresholds
from switchover.lag.verdicts import Judged, Verdict, judge

T0 = 1_795_000_000_000
"""Some day of 2026, in ms."""
POLL = 15_000
DEFAULTS = Thresholds()
ORDERS = TopicPartition("orders", 0)


@dataclass(frozen=True)
class Reading:
    """One sample of one partition."""

    t: int
    c: int
    e: int
    s: int = 0
    valid: bool = True
    high: int | None = None
    tc: int = NONE

    @property
    def hw(self) -> int:
        return self.e if self.high is None else self.high


def every_poll(commits: Sequence[int], ends: Sequence[int], start: int = 0, poll: int = POLL) -> list[Reading]:
    """One valid reading every 15 s."""
    assert len(commits) == len(ends)
    return [Reading(T0 + i * poll, c, e, start) for i, (c, e) in enumerate(zip(commits, ends, strict=True))]


def samples_of(partitions: Sequence[Sequence[Reading]], transactional: Sequence[bool] | None = None,
               readable: Sequence[int] | None = None) -> Samples:
    def ints(name: str) -> np.ndarray:
        return np.array([[getattr(reading, name) for reading in row] for row in partitions], dtype=np.int64)

    return Samples(ints("t"), ints("c"), ints("e"), ints("s"),
                   np.array([[reading.valid for reading in row] for row in partitions], dtype=np.bool_),
                   high=ints("hw"), commit_time=ints("tc"),
                   transactional=None if transactional is None else np.array(transactional, dtype=np.bool_),
                   readable=None if readable is None else np.array(readable, dtype=np.int64))


def judged(readings: Sequence[Reading], now: int | None = None, thresholds: Thresholds = DEFAULTS, *,
           transactional: bool = False, readable: int = NONE, **more: object) -> Judged:
    """One partition, judged when it was read last unless `now` is given."""
    at = readings[-1].t if now is None else now
    return judge(samples_of([readings], [transactional], [readable]), at, thresholds, **more)  # type: ignore[arg-type]


# --- made up ------------------------------------------------------------------------------------------------------------

REGIMES = ("steady", "steady", "leak", "stop", "stall", "idle", "catch up", "rewind", "beyond", "vanish", "retention",
           "blind")


def made_up(dice: Random, count: int) -> list[Reading]:
    """A history of `count` readings out of stretches in which one thing goes on; every verdict comes out of some."""
    time, end, start = T0, dice.choice((0, 5000, 10**12)), 0
    commit, commit_time = dice.choice((end, end, max(end - 20_000, 0), NONE)), T0
    start = dice.choice((0, end, max(end - 50_000, 0)))
    readings: list[Reading] = []
    while len(readings) < count:
        regime, rate = dice.choice(REGIMES), dice.choice((0, 1, 30, 1000))
        for _ in range(dice.randint(1, 20)):
            step = dice.choice((*[POLL] * 50, *[POLL + dice.randint(-3000, 3000)] * 10, 61_000))
            time += step
            end += 0 if regime == "idle" else rate * step // 1000 + dice.randint(0, rate)
            commit, moved = _committed(dice, regime, commit, end, rate * step // 1000)
            commit_time = time - 100 if moved else commit_time
            if regime == "retention":
                start = min(end, max(start, commit + dice.randint(-2, 2)))
            high = end + dice.choice((0, 0, 0, 3))
            readings.append(Reading(time, commit, end, start, regime != "blind" or dice.random() < .5, high,
                                    NONE if rate == 30 else commit_time))
    return readings[:count]


def _committed(dice: Random, regime: str, commit: int, end: int, arrived: int) -> tuple[int, bool]:
    """The commit after one poll, and whether one was written."""
    if regime == "vanish":
        return NONE, False
    if commit == NONE:
        return (end if dice.random() < .2 else NONE), True
    match regime:
        case "steady":
            return max(commit, end - dice.randint(0, 20)), True
        case "leak":
            return min(end, commit + arrived * 9 // 10), True
        case "catch up":
            return min(end, commit + arrived * 2 + 100), True
        case "rewind":
            return max(0, commit - dice.randint(0, 20_000)), True
        case "beyond":
            return end + dice.choice((0, 1, 50)), True
        case "stop" | "retention":
            return commit, False
        case _:
            return commit, True


def verdict(readings: list[Reading], **more: object) -> str:
    """The name of the verdict on one partition."""
    return Verdict(judged(readings, **more).verdict[0]).name
