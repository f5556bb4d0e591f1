"""The fourteen stories that a lag gate must tell apart, and how long it takes to tell.

Seconds are counted from the event, with a poll every 15 s; the gate passes before it.
"""

import pytest

from switchover.lag.thresholds import Thresholds
from unit.lag_story import EVENT, Moment, World, after, play, said, sets


def rewinds(by: int, **more: object):
    def line(world: World) -> None:
        world.position -= by
        world.committed = world.position
        sets(**more)(world)
    return line


def never_failed(moments: list[Moment]) -> bool:
    return all(moment.gate != "FAIL" for moment in moments)


def test_steady_passes_after_four_minutes_and_never_leaves():
    moments = play({}, minutes=120)
    assert said(moments, "verdict") == ["UNKNOWN", "OK"]
    assert after(moments, 0, verdict="OK") == 120                       # the span without which nothing is judged
    assert said(moments, "gate") == ["INCONCLUSIVE", "HOLD", "PASS"]
    assert after(moments, 0, gate="PASS") == 240


def test_a_burst_holds_until_it_is_worked_off_and_never_fails():
    moments = play({EVENT: sets(rate=15_000), EVENT + 30: sets(rate=1000)}, 60, World(capacity=2000))
    assert after(moments, effect="HOLD") == 75                          # T above 60 s
    assert after(moments, gate="HOLD") == 120                           # T above 90 s, twice
    assert after(moments, EVENT + 75, effect="PASS") == 360 - 75
    assert said(moments, "gate", EVENT) == ["PASS", "HOLD", "PASS"]
    assert said(moments, "verdict", EVENT) == ["OK", "BEHIND", "OK"]    # the slope of ten minutes sees the way up as well


def test_a_burst_that_goes_on_and_on_fails():
    moments = play({EVENT: sets(rate=3000)}, 60, World(capacity=2000))
    assert after(moments, verdict="BEHIND") == 195
    assert after(moments, gate="FAIL") == 195 + 9 * 15


def test_a_backlog_from_before_is_caught_up_and_never_fails():
    moments = play({}, 60, World(position=0, committed=0, capacity=3000))
    assert said(moments, "verdict") == ["UNKNOWN", "CATCHING_UP", "OK"]
    assert after(moments, 0, verdict="OK") == 480
    assert said(moments, "gate") == ["INCONCLUSIVE", "HOLD", "PASS"]


def test_a_leak_of_one_percent_is_behind_when_the_head_is_a_minute_old():
    moments = play({EVENT: sets(capacity=990)}, 240)
    assert after(moments, verdict="BEHIND") == 6015
    assert after(moments, gate="HOLD") == 9030                          # T above 1.5·T_ok, twice
    assert after(moments, gate="INCONCLUSIVE") == 9030 + 1800
    assert never_failed(moments)                                        # 1 % is within the dead band of 2 %


def test_a_leak_of_five_percent_fails():
    moments = play({EVENT: sets(capacity=950)}, 120)
    assert after(moments, verdict="BEHIND") == 1215
    assert after(moments, gate="FAIL") == 1215 + 9 * 15


def test_a_consumer_that_stops_fails_within_two_minutes():
    moments = play({EVENT: sets(alive=False)}, 30)
    assert said(moments, "verdict", EVENT) == ["OK", "STOPPED"]
    assert after(moments, verdict="STOPPED") == 75
    assert after(moments, gate="FAIL") == 105


def test_a_consumer_that_commits_without_progress_fails_within_two_minutes():
    moments = play({EVENT: sets(frozen=True)}, 30)
    assert said(moments, "verdict", EVENT) == ["OK", "STALLED"]
    assert after(moments, verdict="STALLED") == 75
    assert after(moments, gate="FAIL") == 105


def test_a_rewind_that_heals_does_not_close_the_gate():
    moments = play({EVENT + 10: rewinds(30_000, capacity=3000)}, 30, thresholds=Thresholds(max_redelivery=50_000))
    assert after(moments, verdict="REWOUND") == 15
    assert said(moments, "verdict", EVENT) == ["OK", "REWOUND", "OK"]
    assert said(moments, "gate", EVENT) == ["PASS"]


def test_a_rewind_that_brings_too_much_again_fails_at_once():
    moments = play({EVENT + 10: rewinds(60_000, capacity=3000)}, 30)
    assert after(moments, gate="FAIL") == 15


def test_the_second_of_two_rewinds_counts_and_fails_when_it_lasts():
    moments = play({EVENT: rewinds(20_000), EVENT + 61: rewinds(9000, capacity=20)}, 30)
    assert said(moments, "verdict", EVENT)[:3] == ["REWOUND", "OK", "REWOUND"]
    assert after(moments, EVENT + 61, verdict="REWOUND") == 14
    assert after(moments, gate="FAIL") == 75 + 60                       # K without a baseline


@pytest.mark.parametrize("progress", [False, True])
def test_idle_passes_unless_progress_is_required(progress):
    moments = play({}, 60, World(rate=0), Thresholds(require_progress=progress))
    assert said(moments, "verdict") == ["UNKNOWN", "IDLE"]
    assert after(moments, 0, gate="PASS") == (None if progress else 240)
    assert after(moments, 120, gate="INCONCLUSIVE") == (1800 if progress else None)


def test_a_partition_that_falls_idle_is_ok_until_the_window_has_nothing_else():
    moments = play({EVENT: sets(rate=0)}, 40)
    assert after(moments, verdict="IDLE") == 585
    assert said(moments, "gate", EVENT) == ["PASS"]


def test_a_consumer_that_restarts_within_a_minute_is_no_finding():
    moments = play({EVENT: sets(alive=False), EVENT + 45: sets(alive=True)}, 40)
    assert said(moments, "verdict", EVENT) == ["OK"]
    assert said(moments, "gate", EVENT) == ["PASS"]


def test_an_operator_that_restarts_knows_nothing_until_it_has_looked_for_two_minutes():
    moments = play({EVENT: lambda world: world.readings.clear()}, 40)
    assert after(moments, verdict="UNKNOWN") == 0
    assert after(moments, gate="INCONCLUSIVE") == 0
    assert after(moments, gate="PASS") == 240


def test_a_rebalance_makes_the_gate_prove_itself_again_and_fails_nothing():
    moments = play({EVENT: sets(alive=False, stable=False), EVENT + 40: sets(alive=True, stable=True, generation=2)}, 40)
    assert said(moments, "verdict", EVENT) == ["OK"]
    assert said(moments, "gate", EVENT) == ["HOLD", "PASS"]
    assert after(moments, gate="PASS") == 45 + 120


def test_records_deleted_before_they_were_consumed_fail_at_once():
    moments = play({EVENT: sets(alive=False), EVENT + 40: sets(start=1_000_000 + EVENT * 1000 + 10_000)}, 30)
    assert after(moments, verdict="LOST") == 45
    assert after(moments, gate="FAIL") == 45


def test_a_topic_made_anew_fails_with_the_second_sample_and_passes_with_none():
    moments = play({EVENT: sets(end=0, frozen=True)}, 30)
    assert after(moments, verdict="UNKNOWN") == 0
    assert after(moments, gate="INCONCLUSIVE") == 0
    assert after(moments, verdict="BEYOND_END") == 15
    assert after(moments, gate="FAIL") == 15


def test_a_last_marker_that_is_never_committed_is_no_lag():
    moments = play({EVENT: sets(rate=0)}, 60, World(transactional=True))
    assert said(moments, "verdict") == ["UNKNOWN", "OK", "IDLE"]
    assert said(moments, "gate", EVENT) == ["PASS"]


def test_a_transaction_that_stays_open_is_no_lag_for_who_reads_committed_records():
    def opened(world: World) -> None:
        world.open_since = world.end

    moments = play({EVENT: opened}, 60, World(transactional=True))
    assert said(moments, "verdict", EVENT) == ["OK", "IDLE"]            # high watermark 1000 a second ahead
    assert said(moments, "gate", EVENT) == ["PASS"]


@pytest.mark.parametrize(("polls", "blind", "back"), [(2, None, None), (3, 30, 45), (4, 30, 585)])
def test_missing_samples_are_never_ok(polls, blind, back):
    """Two failed polls are borne, the third makes it UNKNOWN; a hole of over a minute does until it has left the window."""
    moments = play({EVENT - 1: sets(readable=False), EVENT - 1 + polls * 15: sets(readable=True)}, 60)
    assert after(moments, verdict="UNKNOWN") == blind
    assert after(moments, gate="INCONCLUSIVE") == blind
    ill = [moment.at - EVENT for moment in moments if moment.at >= EVENT and moment.verdict == "UNKNOWN"]
    assert (ill[-1] + 15 if ill else None) == back
    assert never_failed(moments)
