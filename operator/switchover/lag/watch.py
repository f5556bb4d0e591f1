"""One group watched: its window, its verdicts and its gate."""

from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from switchover.lag.baseline import WeeklyBaseline
from switchover.lag.group import Evaluation, Group, TopicPartition, evaluate
from switchover.lag.hysteresis import State, fold
from switchover.lag.samples import NONE, Ints
from switchover.lag.thresholds import Thresholds
from switchover.lag.unreadable import Doubt, Stretch
from switchover.lag.verdicts import Judged, Verdict, judge
from switchover.lag.window import Reading, Window


@dataclass(frozen=True, slots=True, eq=False)
class JudgedGroup:
    """The partitions of a group, the rows of `judged`, and those of them (or more) that count."""

    partitions: tuple[TopicPartition, ...]
    judged: Judged
    expected: frozenset[TopicPartition]

    @property
    def rows(self) -> list[int]:
        """Those of the expected partitions."""
        return [row for row, each in enumerate(self.partitions) if each in self.expected]

    @property
    def lag(self) -> int | None:
        """Records that are not committed, of all expected partitions that were sampled; None when none was."""
        q = self.judged.quantities
        seen = self._with_samples(1)
        return int(np.maximum(q.lag[seen], 0).sum()) if len(seen) else None

    @property
    def stood(self) -> dict[TopicPartition, float]:
        """For how many seconds the commit has stood of those that have something to consume."""
        stood = self.judged.quantities.stood
        return {self.partitions[row]: int(stood[row]) / 1000 for row in self.rows if stood[row] > 0}

    def _with_samples(self, count: int) -> Ints:
        rows = np.array(self.rows, dtype=np.int64)
        return rows[self.judged.quantities.count[rows] >= count]


@dataclass(frozen=True, slots=True, eq=False)
class Assessment(JudgedGroup):
    """What is known of a group after one sweep.

    `sampled` is when that partition was read which was read longest ago (ms since the epoch), None while one never was.
    """

    group: Group
    evaluation: Evaluation
    gate: State
    sampled: int | None
    reading: Reading

    @property
    def time_lag(self) -> tuple[int, bool] | None:
        """The age in ms of the oldest record that is not committed, and whether it may be older still (censored)."""
        q = self.judged.quantities
        seen = self._with_samples(2)
        return (int(q.time_lag[seen].max()), bool(q.censored[seen].any())) if len(seen) else None

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How many expected partitions have each verdict; one that was never sampled is UNKNOWN."""
        found = Counter(Verdict(code) for code in self.judged.verdict[self.rows].tolist())
        found[Verdict.UNKNOWN] += len(self.evaluation.missing)
        return found


class Watch:
    """Keeps the last samples of a group, as many as the thresholds' window needs, and the state of its gate."""

    def __init__(self, thresholds: Thresholds, *, read_committed: bool = False) -> None:
        self.thresholds = thresholds
        self.read_committed = read_committed
        self._gate = State()
        self._config = f"{thresholds} {read_committed}"
        self._window = Window(thresholds.width, thresholds.apart, thresholds.window)
        self._reading = Reading()
        self._last: tuple[tuple[object, ...], Judged] | None = None

    def add(self, reading: Reading) -> None:
        """What one sweep read; where it failed, the samples are invalid."""
        self._window.add(reading.offsets, reading.unreadable)
        self._reading, self._last = reading, None

    def doubts(self) -> list[Doubt]:
        """The partitions to look at in the next sweep: what is behind the commit has stood there for two polls."""
        return self._window.doubts(2 * self.thresholds.poll, self._slack)

    def look(self, partition: TopicPartition) -> Stretch:
        """Note that one of them is looked at: the stretch to prolong."""
        return self._window.look(partition)

    def left(self) -> dict[TopicPartition, tuple[int | None, int]]:
        """Of each partition of the last reading its commit, None without one, and the end of what is behind it to consume.

        Where no record is left that is the commit itself, wherever the log ends.
        """
        exhausted, slack = self._window.exhausted(), self._slack
        found: dict[TopicPartition, tuple[int | None, int]] = {}
        for partition, each in self._reading.offsets.items():
            committed = None if each.committed == NONE else each.committed
            found[partition] = committed, (committed or 0) if partition in exhausted else each.end - slack
        return found

    @property
    def _slack(self) -> int:
        """Offsets at the end of a partition that are markers, and never committed."""
        return self.thresholds.marker_slack if self.read_committed else 0

    def judge(self, now: int) -> JudgedGroup:
        """Judge the window that ends at `now`, and leave the gate as it is. All partitions count that were read last."""
        return JudgedGroup(self._window.partitions, self._judged(now), frozenset(self._reading.offsets))

    def _judged(self, now: int, since: int | None = None, usual: WeeklyBaseline | None = None) -> Judged:
        """Asked twice for the same, it judges once: that is the dearest of a pass over a migration that stands."""
        asked = (now, since, usual and usual.digest)
        if self._last is None or self._last[0] != asked:
            baseline = None if usual is None else usual.at(now, self._window.partitions)
            self._last = asked, judge(self._window.samples(read_committed=self.read_committed), now, self.thresholds,
                                      baseline=baseline, since=since)
        return self._last[1]

    def assess(self, group: Group, now: int, since: int | None = None, usual: WeeklyBaseline | None = None) -> Assessment:
        """Judge the window that ends at `now` and move the gate.

        `since`: when the running step began. `usual`: what the partitions are used to; another one makes another gate, and
        another hour of the same one does not.
        """
        partitions, judged = self._window.partitions, self._judged(now, since, usual)
        config = blake2b(f"{self._config} {usual and usual.digest}".encode(), digest_size=6).hexdigest()
        evaluation = evaluate(partitions, judged, group, now, config)
        self._gate = fold(self._gate, evaluation, self.thresholds)
        return Assessment(partitions, judged, group.expected, group, evaluation, self._gate,
                          self._window.sampled(group.expected), self._reading)
