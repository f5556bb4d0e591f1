"""The lag kernel's table: each verdict, which of two comes first, and the figures at their edges."""

from dataclasses import replace

import numpy as np
import pytest

from switchover.lag.samples import NONE, Samples
from switchover.lag.thresholds import Baseline, Thresholds
from switchover.lag.verdicts import EFFECTS, Effect, Verdict, drained, judge
from unit.lag_readings import DEFAULTS, POLL, T0, Reading, every_poll, judged, samples_of, verdict

N = 40
ENDS = [100_000 + 15_000 * i for i in range(N)]                    # 1000 records a second
END = ENDS[-1]
STOPPED = every_poll([99_000] * N, ENDS)
STEADY = every_poll([end - 2000 for end in ENDS], ENDS)


def effect(readings: list[Reading], **more: object) -> str:
    return Effect(judged(readings, **more).effect[0]).name


def newest(readings: list[Reading], **change: object) -> list[Reading]:
    return [*readings[:-1], replace(readings[-1], **change)]


def each(readings: list[Reading], **change: object) -> list[Reading]:
    return [replace(reading, **change) for reading in readings]


def last(count: int, readings: list[Reading], **change: object) -> list[Reading]:
    return readings[:-count] + each(readings[-count:], **change)


COMMITTING = [replace(reading, tc=reading.t - 1000) for reading in STOPPED]
CATCHING_UP = every_poll([100_000 + 2 * 15_000 * i for i in range(N)], [end + 800_000 for end in ENDS])
BEHIND = every_poll([100_000 + 14_000 * i for i in range(N)], [end + 100_000 for end in ENDS])
REWOUND = last(2, STEADY, c=END - 36_000)
EMPTY = every_poll([NONE] * N, [500] * N, start=500)
TABLE = {
    "UNKNOWN": (STEADY[-7:], "INCONCLUSIVE"),
    "LOST": (last(1, STOPPED, s=99_001), "FAIL"),
    "BEYOND_END": (last(2, STEADY, c=END + 1), "FAIL"),
    "UNCOMMITTED": (each(STEADY, c=NONE), "HOLD"),
    "REWOUND": (REWOUND, "HOLD"),
    "IDLE": (every_poll([500] * N, [500] * N), "PASS"),
    "OK": (STEADY, "PASS"),
    "STALLED": (COMMITTING, "HOLD"),
    "STOPPED": (STOPPED, "HOLD"),
    "CATCHING_UP": (CATCHING_UP, "HOLD"),
    "BEHIND": (BEHIND, "HOLD"),
}


@pytest.mark.parametrize("name", TABLE)
def test_each_verdict_and_its_effect(name):
    readings, its_effect = TABLE[name]
    assert verdict(readings) == name
    assert effect(readings) == its_effect
    assert EFFECTS[Verdict[name]].name == its_effect


def test_the_table_is_whole():
    assert list(TABLE) == [each.name for each in Verdict] == [each.name for each in EFFECTS]
    assert [int(each) for each in Verdict] == list(range(1, 12))


# --- the first that matches wins ----------------------------------------------------------------------------------------

BOTH = {
    "UNKNOWN before LOST": (last(1, STOPPED, s=99_001)[-7:], "UNKNOWN"),
    "LOST before BEYOND_END": (last(2, STEADY, c=END - 2, high=END - 3, s=END - 1), "LOST"),
    "LOST before REWOUND": (last(2, STEADY, c=END - 36_000, s=END - 35_999), "LOST"),
    "BEYOND_END before REWOUND": (last(2, STEADY, c=END - 36_000, high=END - 36_001), "BEYOND_END"),
    "BEYOND_END before OK": (last(2, STEADY, c=END + 1), "BEYOND_END"),
    "UNCOMMITTED before REWOUND": (newest(STEADY, c=NONE), "UNCOMMITTED"),
    "REWOUND before OK": (REWOUND, "REWOUND"),
    "REWOUND before STOPPED": (last(30, STEADY, c=50_000), "REWOUND"),
    "IDLE before OK": (every_poll([500] * N, [500] * N), "IDLE"),
    "OK before STOPPED": (last(6, each(STEADY, c=END), e=END), "OK"),
    "STALLED before STOPPED": (COMMITTING, "STALLED"),
    "STOPPED before CATCHING_UP": (
        every_poll([100_000] * 20 + [600_000] * 20, [700_000 + 1000 * i for i in range(N)]), "STOPPED"),
}


@pytest.mark.parametrize("name", BOTH)
def test_the_first_verdict_that_matches_wins(name):
    readings, wins = BOTH[name]
    assert verdict(readings) == wins


# --- edges --------------------------------------------------------------------------------------------------------------


def test_eight_samples_over_two_minutes_are_enough():
    spread = [Reading(T0 + i * 18_000, 500, 500) for i in range(8)]                     # 126 s
    assert verdict(spread) == "IDLE"
    assert verdict(spread[1:]) == "UNKNOWN"
    dense = [Reading(T0 + i * 10_000, 500, 500) for i in range(13)]                     # 120 s
    assert verdict(dense) == "IDLE"
    assert verdict(dense[1:]) == "UNKNOWN"
    assert verdict([*spread[:3], replace(spread[3], valid=False), *spread[4:]]) == "UNKNOWN"


@pytest.mark.parametrize(("late", "name"), [(35_000, "OK"), (35_001, "UNKNOWN")])
def test_the_newest_sample_may_be_two_polls_and_five_seconds_old(late, name):
    assert verdict(STEADY, now=STEADY[-1].t + late) == name


@pytest.mark.parametrize(("late", "name"), [(0, "OK"), (1, "UNKNOWN")])
def test_a_hole_may_be_four_polls_long(late, name):
    holed = [replace(r, valid=not 20 < i < 24, t=r.t + (late if i >= 24 else 0)) for i, r in enumerate(STEADY)]
    assert verdict(holed) == name


def test_evidence_from_before_the_step_does_not_pass_it():
    step = STEADY[-8].t
    assert verdict(STEADY, since=step - 15_000) == "OK"                                 # nine samples, 120 s
    assert verdict(STEADY, since=step) == "UNKNOWN"                                     # eight, 105 s


def test_samples_outside_the_window_do_not_count():
    old = [replace(r, t=r.t - 600_000, c=10**9) for r in STEADY]                        # would be a rewind
    assert verdict(old + STEADY) == "OK"
    assert verdict(STEADY + each(STEADY[-1:], t=STEADY[-1].t + 1, c=0), now=STEADY[-1].t) == "OK"


def test_a_sample_that_is_not_later_than_the_one_before_is_no_evidence():
    assert verdict([*STEADY, replace(STEADY[-1], c=0)]) == "OK"
    assert judged([*STEADY, replace(STEADY[-3], c=0)], now=STEADY[-1].t).quantities.count == N


@pytest.mark.parametrize(("start", "name"), [(99_000, "STOPPED"), (99_001, "LOST")])
def test_what_is_before_the_log_start_is_lost(start, name):
    assert verdict(newest(STOPPED, s=start)) == name


@pytest.mark.parametrize("transactional", [True, False])
def test_in_a_log_that_retention_has_emptied_nothing_is_left_to_be_consumed(transactional):
    """redpanda-data/redpanda#30624: no member can ever commit what is gone, and none has a record to commit after."""
    assert verdict(every_poll([100] * N, [150] * N, start=150), transactional=transactional) == "IDLE"
    assert verdict(every_poll([100] * N, [151] * N, start=150), transactional=transactional) == "LOST"


def test_a_commit_beyond_a_log_without_a_record_harms_nobody_as_long_as_there_is_none():
    """MirrorMaker's commits for partitions that were empty (KAFKA-12635). A log that was emptied in sight is another."""
    never, retained = every_poll([4711] * N, [0] * N), every_poll([4711] * N, [9] * N, start=9)
    assert verdict(never) == verdict(retained) == "IDLE"
    assert verdict(every_poll([4711] * N, [9] * N, start=8)) == "BEYOND_END"
    assert verdict(last(2, never, e=1)) == "BEYOND_END"
    assert verdict(last(N - 1, every_poll([4711] * N, [4711] * N), e=0)) == "BEYOND_END", "its records are gone"
    assert verdict(each(never, high=1)) == "BEYOND_END", "a transaction is open"


def test_beyond_the_end_wants_two_samples_and_one_of_them_passes_nothing():
    assert (verdict(newest(STEADY, c=END + 1)), effect(newest(STEADY, c=END + 1))) == ("UNKNOWN", "INCONCLUSIVE")
    assert verdict(newest(STEADY, c=END)) == "OK"
    healed = [*STEADY[:-3], *each(STEADY[-3:-1], c=END + 1), STEADY[-1]]
    assert verdict(healed) != "BEYOND_END"


def test_beyond_the_last_stable_offset_is_not_beyond_the_end():
    assert verdict(last(2, STEADY, c=END + 1, high=END + 1)) == "OK"


def test_an_end_that_moves_back_alone_is_no_finding():
    assert verdict(newest(STEADY, e=END - 1500)) == "OK"


def test_an_empty_log_without_a_commit_is_idle():
    assert verdict(EMPTY) == "IDLE"
    assert verdict(newest(EMPTY, e=501)) == "UNCOMMITTED"


@pytest.mark.parametrize(("drop", "name"), [(10_000, "HOLD"), (10_001, "FAIL")])
def test_a_rewind_may_bring_so_many_records_again(drop, name):
    readings = newest(STEADY, c=STEADY[-2].c - drop)
    assert verdict(readings) == "REWOUND"
    assert effect(readings) == name


@pytest.mark.parametrize(("polls", "name"), [(4, "HOLD"), (5, "FAIL")])
def test_a_rewind_may_last_for_k(polls, name):
    """First seen 45 s, and 60 s ago."""
    assert effect(last(polls, STEADY, c=STEADY[-polls - 1].c - 1)) == name


def test_a_rewind_counts_when_it_is_not_made_up_for_and_nobody_declared_it():
    dip = [*STEADY[:20], replace(STEADY[20], c=0), *STEADY[21:]]
    assert verdict(dip) == "OK"
    assert verdict(REWOUND, reset_declared=True) == "OK"
    assert verdict(newest(STEADY, c=STEADY[-2].c - 1, e=STEADY[-2].c - 1)) == "OK"      # nothing left to read


def test_two_rewinds_both_count():
    ends, commits = [1000] * N, [1000] * (N - 4)
    assert verdict(every_poll([*commits, 900, 1100, 500, 600], [*ends[:-3], 1100, 1100, 1100])) == "REWOUND"


@pytest.mark.parametrize(("seconds", "name"), [(60, "OK"), (61, "BEHIND")])
def test_the_head_may_be_t_ok_old(seconds, name):
    readings = every_poll([end - 1000 * seconds for end in ENDS], ENDS)
    assert judged(readings).quantities.time_lag == seconds * 1000
    assert verdict(readings) == name


def test_the_head_age_is_interpolated_and_never_extrapolated():
    bursty = every_poll([150] * 20, [0] * 10 + [100, 400] + [400] * 8)                  # a sixth of the way up
    q = judged(bursty).quantities
    assert (q.time_lag[0], q.censored[0]) == (8 * POLL + POLL - POLL // 6, False)
    q = judged(STOPPED).quantities
    assert (q.time_lag[0], q.censored[0]) == (39 * POLL, True)


def test_an_age_that_is_only_at_least_so_much_does_not_pass():
    """Ten minutes of T_ok cannot be asked of a window, but T_ok of five minutes can, early in a step."""
    wide = Thresholds(max_time_lag=300_000)
    readings = every_poll([end - 200_000 for end in ENDS], ENDS)
    assert verdict(readings, thresholds=wide) == "OK"
    early = judged(readings[-10:], thresholds=wide)
    assert Verdict(early.verdict[0]) == Verdict.BEHIND
    assert not early.growing[0]


@pytest.mark.parametrize(("q99", "allowed"), [(NONE, 60_000), (10_000, 30_000), (50_000, 100_000), (200_000, 300_000)])
def test_t_ok_follows_the_baseline_within_limits(q99, allowed):
    baseline = Baseline(np.array([q99]), np.array([NONE]))
    assert judged(STEADY, baseline=baseline).time_lag_ok == allowed
    assert judged(STEADY, baseline=baseline).baseline == (q99 != NONE)


@pytest.mark.parametrize(("p99", "allowed"), [(NONE, 60_000), (5_000, 60_000), (40_000, 120_000), (300_000, 540_000)])
def test_k_follows_the_baseline_within_limits(p99, allowed):
    assert judged(STEADY, baseline=Baseline(np.array([NONE]), np.array([p99]))).quiet_ok == allowed


def test_k_is_never_less_than_two_polls():
    assert judged(STEADY, thresholds=Thresholds(poll=45_000, window=900_000)).quiet_ok == 90_000


def test_whoever_commits_seldom_and_stops_is_seen_within_the_window():
    """K of 10 minutes would be longer than any window shows."""
    baseline = Baseline(np.array([NONE]), np.array([300_000]))
    assert verdict(STOPPED, baseline=baseline) == "STOPPED"
    assert verdict(STOPPED[-37:], baseline=baseline) == "BEHIND"                        # 540 s is not more than K


@pytest.mark.parametrize(("left", "name"), [(1_800_000, "CATCHING_UP"), (1_800_001, "BEHIND")])
def test_a_backlog_may_take_half_an_hour(left, name):
    """It shrinks by 1000 records a second, the dead band is 20."""
    ends = [end + 10**7 for end in ENDS]
    readings = every_poll([end - left - 15_000 * (N - 1 - i) for i, end in enumerate(ends)], ends)
    assert judged(readings).quantities.eta == left / 1000
    assert verdict(readings) == name


@pytest.mark.parametrize(("rate", "name"), [(20, "BEHIND"), (21, "CATCHING_UP")])
def test_two_percent_of_what_arrives_is_no_trend(rate, name):
    readings = every_poll([end - 61_000 - rate * 15 * (N - 1 - i) for i, end in enumerate(ENDS)], ENDS)
    assert verdict(readings, thresholds=replace(DEFAULTS, max_catch_up=10**8)) == name
    mirrored = every_poll([end - 91_000 - 3 * 15_000 + rate * 15 * (N - 1 - i) for i, end in enumerate(ENDS)], ENDS)
    assert judged(mirrored).growing == (rate > 20)


@pytest.mark.parametrize(("silent", "name"), [
    (60_000, "STALLED"), (60_001, "STOPPED"), (-1, "STALLED"), (-5_000, "STALLED")])
def test_commits_that_go_on_tell_stalled_from_stopped(silent, name):
    assert verdict(newest(STOPPED, tc=STOPPED[-1].t - silent)) == name
    assert verdict(newest(STOPPED, tc=NONE)) == "STOPPED"


@pytest.mark.parametrize(("more", "name"), [(0, "OK"), (1, "BEHIND")])
def test_a_transactional_partition_may_keep_its_last_marker(more, name):
    """The last marker is older than a minute."""
    readings = every_poll([end - 1 - more for end in range(500, 500 + N)], list(range(500, 500 + N)), poll=59_000)
    thresholds = replace(DEFAULTS, window=900_000, poll=30_000)
    assert verdict(readings, transactional=True, thresholds=thresholds) == name


@pytest.mark.parametrize("readings", [
    STOPPED, COMMITTING, each(STEADY, c=NONE), last(1, STOPPED, s=99_001), last(30, STEADY, c=50_000)],
    ids=["STOPPED", "STALLED", "UNCOMMITTED", "LOST", "REWOUND"])
@pytest.mark.parametrize("transactional", [True, False])
def test_where_no_record_is_behind_the_commit_nothing_is_left_to_be_consumed(readings, transactional):
    """spring-projects/spring-kafka#2590: an aborted transaction is last in the partition, and commits are made by hand."""
    found = judged(readings, transactional=transactional, readable=END)
    assert (Verdict(found.verdict[0]).name, Effect(found.effect[0]).name) in (("OK", "PASS"), ("IDLE", "PASS"))
    assert (found.quantities.lag[0], found.quantities.time_lag[0], found.strayed[0]) == (0, 0, False)
    assert found.verdict[0] != judged(readings, transactional=transactional).verdict[0]


@pytest.mark.parametrize("transactional", [True, False])
def test_the_record_behind_what_cannot_be_read_is_lag_from_its_own_arrival_on(transactional):
    """Committed 5, aborted up to 10, and there a record: no marker is forgiven where the log was looked at."""
    for polls, name in ((4, "OK"), (5, "STOPPED")):
        readings = every_poll([5] * N, [10] * (N - polls) + [11] * polls)
        found = judged(readings, transactional=transactional, readable=10)
        assert Verdict(found.verdict[0]).name == name
        assert (found.quantities.lag[0], found.quantities.time_lag[0]) == (1, polls * POLL)
    assert verdict(every_poll([5] * N, [11] * N), readable=10) == "STOPPED"


def test_a_commit_that_is_further_than_what_was_looked_at_counts():
    assert judged(STEADY, readable=1).quantities.lag == judged(STEADY).quantities.lag
    assert verdict(last(2, STEADY, c=END + 1), readable=END) == "BEYOND_END"


def test_drained_means_that_nothing_is_left_and_nobody_commits():
    done = every_poll([500] * N, [500] * N)
    assert drained(judged(done))[0]
    assert not drained(judged(newest(done, e=501)))[0]
    assert not drained(judged([*each(done[:-5], c=499), *done[-5:]]))[0]                # the last commit is 60 s old
    assert drained(judged([*each(done[:-6], c=499), *done[-6:]]))[0]
    assert drained(judged(each(done, e=507), readable=507))[0]
    assert not drained(judged(EMPTY))[0]
    assert not drained(judged(done[-7:]))[0]


@pytest.mark.parametrize("change", [
    {"time": np.zeros(3, dtype=np.int64)}, {"time": np.zeros((1, 0), dtype=np.int64)},
    {"end": np.zeros((1, N + 1), dtype=np.int64)}, {"end": np.zeros((1, N))}, {"valid": np.zeros((1, N), dtype=np.int64)},
    {"transactional": np.zeros((1, N), dtype=np.bool_)}, {"readable": np.zeros((1, N), dtype=np.int64)}])
def test_arrays_that_do_not_fit_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        replace(samples_of([STEADY]), **change)


def test_a_group_without_partitions_is_judged_as_nothing():
    nothing = Samples(*(np.zeros((0, 5), dtype=np.int64) for _ in range(4)), np.zeros((0, 5), dtype=np.bool_))
    assert len(judge(nothing, T0, DEFAULTS).verdict) == 0
