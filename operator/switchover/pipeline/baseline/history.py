"""What the gate would have said over a group's history, and what each partition was used to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from switchover.lag.baseline import HOURS, Usual, Usuals, WeeklyBaseline, hour_of_week
from switchover.lag.group import Group, evaluate
from switchover.lag.hysteresis import State, fold
from switchover.lag.samples import NONE, Bools, Ints
from switchover.lag.thresholds import Baseline, Thresholds
from switchover.lag.verdicts import Codes, Effect, Verdicts, judge
from switchover.pipeline.baseline.series import ALWAYS, NOW, Commits, Series, by_hour, quantiles
from switchover.shared.partition import TopicPartition

PER_HOUR = 3_600


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """When the sweeps of a history were (`now`, ms since the epoch, rising), and how it is judged.

    From the sweep `first` on the gate is tried. `held_out`: by what was found before it, and not by the whole history.
    `hours`: the history is long enough to distinguish the hours of the week.
    """

    now: Ints
    thresholds: Thresholds
    first: int
    held_out: bool
    hours: bool
    min_values: int


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """Of one partition at every sweep that was asked for; `rate` in records per hour.

    `counts`: there was enough to judge by, and the time lag means something.
    """

    verdicts: Verdicts
    time_lag: Ints
    censored: Bools
    rate: Ints
    counts: Bools


def judgement(series: Series, course: Course, first: int = 0, usuals: Usuals | None = None) -> Judgement:
    """The verdicts of the operator's kernel at the sweeps from `first` on, with the same samples in the same windows."""
    size, width = len(course.now), course.thresholds.window // course.thresholds.poll
    verdict, effect = np.zeros(size, np.int8), np.zeros(size, np.int8)
    growing, strayed, censored, counts = (np.zeros(size, np.bool_) for _ in range(4))
    time_lag, rate = np.zeros(size, np.int64), np.zeros(size, np.int64)
    baseline = None if usuals is None else _over(usuals, course.now)
    for part, samples in series.windows(course.now, width, first):
        usual = None if baseline is None else Baseline(baseline.time_lag_q99[part], baseline.commit_interval_p99[part])
        found = judge(samples, NOW, course.thresholds, baseline=usual)
        q = found.quantities
        verdict[part], effect[part], growing[part], strayed[part] = (
            found.verdict, found.effect, found.growing, found.strayed)
        time_lag[part], censored[part] = q.time_lag, q.censored
        rate[part] = np.rint(q.arriving * PER_HOUR)
        counts[part] = q.judgeable & (q.committed != NONE) & ~q.beyond
    rest = slice(first, None)
    return Judgement(Verdicts(verdict[rest], effect[rest], growing[rest], strayed[rest]), time_lag[rest], censored[rest],
                     rate[rest], counts[rest])


def _over(usuals: Usuals, now: Ints) -> Baseline:
    """What `WeeklyBaseline.at` would say of one partition at each of these moments."""
    by_hour = np.array([usuals.hours.get(hour, usuals.always) for hour in range(HOURS)], dtype=np.int64)[hour_of_week(now)]
    return Baseline(by_hour[:, 0], by_hour[:, 1])


# --- what a partition is used to ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one partition in one hour of the week, or over all hours (ALWAYS). Times in ms, rates in records per hour.

    `censored` of `values` time lags are what the oldest uncommitted record was at least. NONE: not known.
    """

    hour: int
    values: int
    censored: int
    time_lag: tuple[int, int, int]
    """0.5, 0.95 and 0.99 quantile."""
    intervals: int
    interval_p99: int
    rate: tuple[int, int]
    """0.5 and 0.95 quantile."""


def figures(found: Judgement, commits: Commits, course: Course, until: int | None = None) -> list[Figures]:
    """What the sweeps before `until` (all of them without it) and the commits before it show, all hours first.

    Empty where they are too few.
    """
    counts = found.counts if until is None else found.counts & (np.arange(len(found.counts)) < until)
    intervals, ended = commits.intervals()
    known = ended <= course.now[-1 if until is None else until - 1]
    now, least = course.now[counts], course.min_values
    lags = dict(by_hour(np.flatnonzero(counts), now, least))
    gaps = {hour: (len(values), quantiles(values, (99,))[0])
            for hour, values in by_hour(intervals[known], ended[known], least)}
    hourly = []
    for hour, sweeps in lags.items():
        if hour != ALWAYS and not course.hours:
            break
        q50, q95, q99 = quantiles(found.time_lag[sweeps], (50, 95, 99))
        r50, r95 = quantiles(found.rate[sweeps], (50, 95))
        hourly.append(Figures(hour, len(sweeps), int(found.censored[sweeps].sum()), (q50, q95, q99),
                              *gaps.get(hour, gaps.get(ALWAYS, (0, NONE))), (r50, r95)))
    return hourly


def usuals_of(hourly: Sequence[Figures]) -> Usuals | None:
    """Of these what the gate asks for, in whole seconds as its text has them; None where there are none."""
    usual: dict[int, Usual] = {each.hour: (_seconds(each.time_lag[2]), _seconds(each.interval_p99)) for each in hourly}
    always = usual.pop(ALWAYS, None)
    return None if always is None else Usuals(always, usual)


def _seconds(milliseconds: int) -> int:
    return NONE if milliseconds == NONE else -(-milliseconds // 1000) * 1000


# --- the back-test ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trial:
    """What the group's gate said at each sweep, as codes of `lag.verdicts.Effect`."""

    effects: tuple[int, ...]

    @property
    def alarms(self) -> int:
        """How often it began to fail."""
        return sum(before != Effect.FAIL and after == Effect.FAIL for before, after in pairwise((None, *self.effects)))

    @property
    def interruptions(self) -> int:
        """How often it no longer passed after it had."""
        return sum(before == Effect.PASS and after != Effect.PASS for before, after in pairwise(self.effects))

    @property
    def passing(self) -> int:
        """Sweeps at which it passed."""
        return self.effects.count(Effect.PASS)


def tried(partitions: Sequence[TopicPartition], verdicts: Sequence[Verdicts], now: Ints, thresholds: Thresholds) -> Trial:
    """The group's gate over the sweeps at `now`, from the verdicts of each partition.

    Who owned what is not in the history: it counts as stable, with one owner for each partition.
    """
    if not partitions:
        return Trial(())
    group = Group(frozenset(partitions), stable=True, generation=0, sole_owners=True)
    codes: Mapping[str, Codes] = {
        name: np.stack([getattr(each, name) for each in verdicts], axis=1)
        for name in ("verdict", "effect", "growing", "strayed")}
    state, effects = State(), []
    for row, at in enumerate(now.tolist()):
        found = Verdicts(**{name: values[row] for name, values in codes.items()})
        state = fold(state, evaluate(partitions, found, group, at, ""), thresholds)
        effects.append(int(state.effect))
    return Trial(tuple(effects))


@dataclass(frozen=True, slots=True, eq=False)
class GroupHistory:
    """Everything that is found of a group."""

    baseline: WeeklyBaseline
    figures: Mapping[TopicPartition, Sequence[Figures]]
    without: Trial
    """The gate with the limits of the settings alone."""
    used_to: Trial
    """The gate with a baseline."""
    verdicts: Mapping[TopicPartition, tuple[Codes, Codes]] = field(default_factory=dict)
    """Of each partition at every sweep of the trial, without and with a baseline."""
    skewed: int = 0


def group_history(group: str, histories: Iterable[tuple[TopicPartition, Commits, Series]], course: Course) -> GroupHistory:
    """Judge the whole history of a group's partitions, one after another, and try the gate on its end."""
    by_partition: dict[TopicPartition, list[Figures]] = {}
    alone: list[Verdicts] = []
    by_baseline: list[Verdicts] = []
    known: dict[TopicPartition, Usuals] = {}
    skewed = 0
    for partition, commits, series in histories:
        skewed += series.skewed
        found = judgement(series, course)
        by_partition[partition] = figures(found, commits, course)
        if (usuals := usuals_of(by_partition[partition])) is not None:
            known[partition] = usuals
        if course.held_out:
            usuals = usuals_of(figures(found, commits, course, course.first))
        plain = _from(found.verdicts, course.first)
        alone.append(plain)
        by_baseline.append(plain if usuals is None else judgement(series, course, course.first, usuals).verdicts)
    partitions, tested = tuple(by_partition), course.now[course.first:]
    return GroupHistory(
        WeeklyBaseline(group, int(course.now[-1]), known), by_partition,
        tried(partitions, alone, tested, course.thresholds), tried(partitions, by_baseline, tested, course.thresholds),
        {partition: (one.verdict, other.verdict)
         for partition, one, other in zip(partitions, alone, by_baseline, strict=True)}, skewed)


def _from(verdicts: Verdicts, first: int) -> Verdicts:
    return Verdicts(verdicts.verdict[first:], verdicts.effect[first:], verdicts.growing[first:], verdicts.strayed[first:])
