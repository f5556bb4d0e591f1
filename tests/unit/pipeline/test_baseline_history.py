"""The pure parts of `baseline`: a partition's series, quantiles, the ConfigMap, the report, and the course of a history."""

import json
import math
from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from switchover.lag.baseline import KEY, Usuals, WeeklyBaseline, hour_of_week, parse
from switchover.lag.group import Group
from switchover.lag.samples import NONE
from switchover.lag.thresholds import of_a_migration
from switchover.lag.verdicts import Effect, Verdict
from switchover.lag.watch import Watch
from switchover.lag.window import Offsets
from switchover.lag.window import Reading as Sweep
from switchover.pipeline.baseline import series
from switchover.pipeline.baseline.history import Course, Trial, group_history, judgement, tried
from switchover.pipeline.baseline.job import course_of, notes_of
from switchover.pipeline.baseline.report import GroupResult, as_yaml, bounded, manifest, name_of, report, shown
from switchover.pipeline.baseline.series import ALWAYS, NOW, Commits, Series, by_hour, quantiles, sampled
from switchover.pipeline.config import BaselineSettings
from switchover.pipeline.outcome import JobFailed
from switchover.shared.partition import TopicPartition
from unit.lag_readings import made_up

HOUR = 3_600_000
MONDAY = 1_795_392_000_000


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def commits(*written: tuple[int, int], writes: tuple[int, ...] = ()) -> Commits:
    return Commits(ints(*(time for time, _ in written)), ints(*(offset for _, offset in written)),
                   ints(*(writes or [NONE] * len(written))))


# --- what was committed when --------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(-1, 9)), max_size=12), st.lists(st.integers(-5, 60), max_size=9))
def test_the_committed_offset_is_the_one_that_was_written_last_of_those_until_then(written, times):
    offsets, known = commits(*written).at(ints(*times)) if written else (ints(), np.array([], dtype=np.bool_))
    for index, at in enumerate(times if written else ()):
        until_then = [offset for time, offset in written if time <= at]
        assert bool(known[index]) == bool(until_then)
        if until_then:
            assert offsets[index] == until_then[-1]


def test_a_clock_that_was_ahead_once_makes_its_own_commit_late_and_no_other_one_wrong():
    found, _ = commits((10, 1), (1000, 2), (30, 3), (40, 4)).at(ints(20, 35, 45, 2000))
    assert found.tolist() == [1, 3, 4, 4]


def test_intervals_leave_out_clocks_put_back_and_deleted_offsets_and_are_means_where_writes_went_unseen():
    lengths, ended = commits((0, 1), (10, 2), (5, 3), (8, NONE), (25, 3)).intervals()
    assert (lengths.tolist(), ended.tolist()) == ([10, 20], [10, 25])
    lengths, ended = commits((0, 1), (90, 2), (100, 3), (130, 1), (140, 2), writes=(5, 8, 9, 0, 1)).intervals()
    assert (lengths.tolist(), ended.tolist()) == ([30, 10, 10], [90, 100, 140])


# --- samples ------------------------------------------------------------------------------------------------------------


def test_each_sweep_has_its_sample_and_what_was_not_read_or_not_committed_yet_is_invalid():
    found = sampled(commits((150, 7), (250, NONE)), ints(3, 0, 1), ints(300, 100, 200), ints(30, 10, 20), ints(3, 1, 2), 5)
    assert found.valid.tolist() == [False, True, False, True, False]
    assert found.committed[[1, 3]].tolist() == [7, NONE]
    assert found.end[[1, 3]].tolist() == [20, 30]
    assert found.start[[1, 3]].tolist() == [2, 3]


def test_a_commit_ahead_of_its_sample_and_not_of_the_next_was_stamped_by_another_clock():
    found = sampled(commits((95, 12)), ints(0, 1), ints(100, 200), ints(10, 20), ints(0, 0), 2)
    assert (found.committed.tolist(), found.skewed) == ([10, 12], 1)
    beyond = sampled(commits((95, 25)), ints(0, 1), ints(100, 200), ints(10, 20), ints(0, 0), 2)
    assert beyond.committed[0] == 25, "for the verdict BEYOND_END"


def test_windows_end_at_one_moment_and_hold_what_a_ring_of_that_width_would():
    found = sampled(commits((0, 1)), ints(0, 1, 2, 3), ints(10, 20, 30, 41), ints(1, 2, 3, 4), ints(0, 0, 0, 0), 4)
    now = ints(10, 21, 30, 45)
    ((part, samples),) = found.windows(now, 3, first=1)
    assert part == slice(1, 4)
    assert samples.valid.tolist() == [[False, True, True], [True] * 3, [True] * 3]
    assert (samples.time - NOW)[:, 1:].tolist() == [[-11, -1], [-10, 0], [-15, -4]]
    assert samples.end.tolist()[2] == [2, 3, 4]


@pytest.mark.parametrize("seed", range(12))
def test_a_history_is_judged_as_a_watch_judges_sweep_after_sweep(monkeypatch, seed):
    """Verdicts, limits and the gate, with a baseline of other hours and without; many windows are cut into few at a time."""
    monkeypatch.setattr(series, "ROWS", 7)
    dice = Random(seed)
    partitions = [TopicPartition("orders", each) for each in range(3)]
    readings = {each: made_up(dice, 120) for each in partitions}
    now = ints(*(max(readings[each][sweep].t for each in partitions) + 5 for sweep in range(120)))
    usual = WeeklyBaseline("g", 5, {each: Usuals((dice.randrange(90) * 1000, dice.randrange(200) * 1000), {
        hour: (dice.randrange(90) * 1000, NONE) for hour in range(0, 168, 2)}) for each in partitions[1:]})
    limits = of_a_migration(15_000, 90_000, 150_000, 30_000)
    course = Course(now, limits, 0, False, True, 30)
    group = Group(frozenset(partitions), stable=True, generation=0, sole_owners=True)
    for baseline in (None, usual):
        watch, online, effects = Watch(limits), [], []
        for sweep, at in enumerate(now.tolist()):
            watch.add(Sweep({each: Offsets(one.t, one.c, one.e, one.s, one.e) for each in partitions
                             if (one := readings[each][sweep]).valid}))
            found = watch.assess(group, at, usual=baseline)
            own = found.judged
            online.append({each: (own.verdict[row], own.effect[row], own.growing[row], own.strayed[row])
                           for row, each in enumerate(found.partitions)})
            effects.append(int(found.gate.effect))
        judged = {}
        for each in partitions:
            rows = readings[each]
            history = Series(ints(*(one.t for one in rows)), ints(*(one.c for one in rows)), ints(*(one.e for one in rows)),
                             ints(*(one.s for one in rows)), np.array([one.valid for one in rows]), 0)
            usuals = None if baseline is None else baseline.partitions.get(each)
            judged[each] = judgement(history, course, usuals=usuals).verdicts
        for sweep in range(120):
            for each, told in online[sweep].items():
                own = judged[each]
                assert told == (own.verdict[sweep], own.effect[sweep], own.growing[sweep], own.strayed[sweep]), (each, sweep)
        assert list(tried(partitions, list(judged.values()), now, limits).effects) == effects


def late(sweeps: int, first: int) -> tuple[Commits, Series, np.ndarray]:
    """10 records/s and a sweep every 15 s; the commit is 2 s behind, and 50 s from `first` on."""
    now = MONDAY + np.arange(sweeps, dtype=np.int64) * 15_000
    end = 10_000 + np.arange(sweeps, dtype=np.int64) * 150
    behind = np.where(np.arange(sweeps) < first, 20, 500)
    written = Commits(now, end - behind, np.full(sweeps, NONE))
    return written, sampled(written, np.arange(sweeps), now, end, np.zeros_like(end), sweeps), now


@pytest.mark.parametrize(("held_out", "verdict"), [(True, Verdict.BEHIND), (False, Verdict.OK)])
def test_what_is_held_out_is_tried_with_what_lies_before_it_alone(held_out, verdict):
    written, history, now = late(200, 150)
    limits = of_a_migration(15_000, 120_000, 150_000, 30_000)
    course = Course(now, limits, 150, held_out, False, 30)
    told = group_history("g", [(TopicPartition("orders", 0), written, history)], course)
    without, used_to = told.verdicts["orders", 0]
    assert len(without) == len(used_to) == len(told.used_to.effects) == 50
    assert (without[-1], used_to[-1]) == (Verdict.OK, verdict)
    assert told.baseline.partitions["orders", 0] == Usuals((50_000, 15_000)), "what is delivered is of all of it"


def test_the_figures_of_a_steady_group_are_what_it_does():
    written, history, now = late(200, 200)
    course = Course(now, of_a_migration(15_000, 60_000, 75_000, 30_000), 0, False, True, 30)
    told = group_history("g", [(TopicPartition("orders", 0), written, history)], course)
    always, *hours = told.figures["orders", 0]
    assert (always.hour, always.values, always.censored, always.time_lag) == (ALWAYS, 196, 0, (2000, 2000, 2000))
    assert (always.intervals, always.interval_p99, always.rate) == (199, 15_000, (36_000, 36_000))
    assert [each.hour for each in hours] == [0, 1, 167], "50 minutes on Monday, and the hours beside them"
    assert told.baseline.partitions["orders", 0].always == (2000, 15_000)
    assert told.used_to.passing == told.without.passing > 180


# --- quantiles ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-10, 10**12), min_size=1, max_size=300), st.lists(st.integers(1, 100), min_size=1, max_size=4))
def test_quantiles_are_those_of_sql(values, percents):
    ordered = sorted(values)
    assert quantiles(ints(*values), percents) == [ordered[math.ceil(len(values) * each / 100) - 1] for each in percents]


def test_nothing_has_no_quantile():
    assert quantiles(ints(), (50, 99)) == [NONE, NONE]


@given(st.lists(st.tuples(st.integers(0, 400 * HOUR), st.integers(0, 99)), max_size=60), st.integers(1, 8))
def test_an_hour_of_the_week_takes_its_neighbours_in_and_too_few_values_make_none(pairs, least):
    times, values = ints(*(MONDAY + at for at, _ in pairs)), ints(*(value for _, value in pairs))
    found = {hour: sorted(each.tolist()) for hour, each in by_hour(values, times, least)}
    expected = {ALWAYS: sorted(values.tolist())} if len(pairs) >= least else {}
    for hour in range(168) if expected else ():
        around = {(hour + step) % 168 for step in (-1, 0, 1)}
        own = sorted(value for at, value in pairs if hour_of_week(MONDAY + at) in around)
        if len(own) >= least:
            expected[hour] = own
    assert found == expected


def test_a_month_of_a_million_values_has_the_quantiles_that_duckdb_finds_by_the_hour():
    dice = np.random.default_rng(3)
    times = MONDAY + dice.integers(0, 28 * 24 * HOUR, 1_000_000)
    values = dice.integers(0, 10**7, len(times)) * (times % 7)
    found = {hour: quantiles(each, (50, 95, 99)) for hour, each in by_hour(values, times, 30)}
    given_to_duckdb = pa.table({"time": times, "value": values})
    rows = duckdb.from_arrow(given_to_duckdb).query("given", """
        with placed as (
            select value, (isodow(moment) - 1) * 24 + hour(moment) as hour
            from (select value, make_timestamp(time * 1000) as moment from given))
        select (hour + step + 168) % 168, quantile_disc(value, [0.5, 0.95, 0.99])
        from placed, (values (-1), (0), (1)) steps(step) group by 1
        union all select -1, quantile_disc(value, [0.5, 0.95, 0.99]) from placed""").fetchall()
    assert len(rows) == 169
    assert found == dict(rows)


# --- the ConfigMap ------------------------------------------------------------------------------------------------------


def many(partitions: int, hours: int = 0, group: str = "orders") -> WeeklyBaseline:
    usuals = Usuals((4000, 6000), {hour: (1000 * hour + 5000, 7000) for hour in range(hours)})
    return WeeklyBaseline(group, MONDAY, {TopicPartition("orders", each): usuals for each in range(partitions)})


@pytest.mark.parametrize(("partitions", "hours", "expected"), [
    (100, 168, (True, False)),
    (200, 168, (False, False)),
    (20_000, 2, (False, True)),
])
def test_a_text_is_bounded_by_leaving_out_hours_and_then_partitions(partitions, hours, expected):
    text, by_hour, left_out = bounded(many(partitions, hours), 240_000)
    assert (by_hour, left_out > 0) == expected
    made = manifest("orders", text)
    assert len(json.dumps(made)) <= 240_000
    found = parse(text, "orders")
    assert len(found.partitions) == partitions - left_out
    assert TopicPartition("orders", 0) in found.partitions
    if left_out:
        assert len(json.dumps(manifest("orders", f"{text}orders/99999 4,6\n"))) > 240_000, "one more would be too many"


@pytest.mark.parametrize("group", ["orders", "a\nb: |\x00\u202e", "ä", "", "x" * 255, "\ud800", "Orders",
                                   "# { } [ ] & * ! %"])
def test_a_config_map_comes_back_from_its_file(group):
    text, *_ = bounded(many(3, 2, group), 240_000)
    written = as_yaml(manifest(group, text))
    found = yaml.safe_load(written)
    assert found["kind"] == "ConfigMap"
    assert parse(found["data"][KEY], group).group == group
    assert "\n  baseline: |\n" in written
    name = found["metadata"]["name"]
    assert name == name_of(group)
    assert len(name) <= 63
    assert all(part and part.replace("-", "").isalnum() and part == part.lower() for part in name.split("."))


def test_groups_that_look_alike_have_different_names():
    assert len({name_of(group) for group in ("orders", "Orders", "orders ", "orders-", "o.rders")}) == 5


# --- the course and the report ------------------------------------------------------------------------------------------


def course(count: int, step: int = 60_000, **settings: int):
    return course_of([MONDAY + each * step for each in range(count)], BaselineSettings(**settings))


def test_a_week_is_held_back_by_its_last_day():
    found = course(7 * 1440)
    assert (found.held_out, found.hours, found.thresholds.poll) == (True, True, 60_000)
    assert len(found.now) - found.first == 1440
    assert list(notes_of(found, BaselineSettings())) == []


def test_a_short_history_is_not_held_back_and_says_so():
    found = course(60)
    assert (found.held_out, found.hours, found.first) == (False, False, 0)
    notes = list(notes_of(found, BaselineSettings()))
    assert ["1.0 h, less than a day" in note for note in notes] == [True, False]
    assert "flatters" in notes[1]


def test_coarse_captures_and_holes_are_told():
    found = course(200, step=600_000)
    assert any("600 s apart" in note for note in notes_of(found, BaselineSettings()))
    gap = course_of([MONDAY + each * 60_000 + (each > 50) * HOUR for each in range(3000)], BaselineSettings())
    assert any(note.startswith("1 holes of more than 240 s") for note in notes_of(gap, BaselineSettings()))


@pytest.mark.parametrize("count", [0, 1, 29])
def test_too_few_captures_are_refused_with_the_cure(count):
    with pytest.raises(JobFailed, match=f"has {count} captures with end offsets, and a baseline needs 30"):
        course(count)


def test_alarms_and_interruptions_are_counted_when_they_begin():
    p, h, i, f = Effect.PASS, Effect.HOLD, Effect.INCONCLUSIVE, Effect.FAIL
    trial = Trial((f, f, h, p, p, f, f, p, h, p, i))
    assert (trial.alarms, trial.interruptions, trial.passing) == (2, 3, 4)
    assert (Trial(()).alarms, Trial((p,)).interruptions) == (0, 0)


def test_a_cluster_without_groups_is_told_to_be_one():
    assert "no group has committed anything" in report([], course(60), 1.0, [])


def test_the_report_names_groups_so_that_nothing_in_them_is_markup():
    assert shown("a|b\n\u202e`<x>") == "a\\|b\\\\n\\\\u202e\\`\\<x\\>"
    assert len(shown("y" * 70_000)) == 80
    tested = GroupResult("a|b", False, 2, 7, 4, 1, 3, 6, 0, 9, 1, 30, 50)
    text = report([tested], course(60), 2.0, ["a note"])
    assert "* a note" in text
    for words in ("no baseline for 1 partitions whose ends", "no baseline for 2 partitions: too few",
                  "of 1 groups have figures", "2 partitions are left out", "3 commits were ahead"):
        assert words in text
    row = next(line for line in text.splitlines() if line.startswith("| a"))
    assert row == f"| a\\|b | {name_of('a|b')} | 7 | 4 | 0.0 | 3.0 | 0.5 | 4.5 | 83.3 % | 50.0 % |"
