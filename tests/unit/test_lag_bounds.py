"""A group that is judged by records and by how long a commit stands, as a KafkaMigration's are: verdicts and edges."""

import pytest

from switchover.lag.samples import NONE
from switchover.lag.sentences import sentence
from switchover.lag.thresholds import MOST, RECENT, Thresholds, of_a_cluster, of_a_migration
from switchover.lag.verdicts import Effect, Verdict
from unit.lag_readings import ORDERS, T0, Reading, every_poll, judged

POLL = 2000
LIMITS = of_a_cluster(POLL, max_lag=1000, max_stall=30_000)
N = 40
ENDS = [100_000 + 200 * i for i in range(N)]                    # 100 records a second
END = ENDS[-1]


def polled(commits: list[int], ends: list[int], start: int = 0) -> list[Reading]:
    return every_poll(commits, ends, start, poll=POLL)


def behind(records: int) -> list[Reading]:
    return polled([end - records for end in ENDS], ENDS)


def stands(sweeps: int, idle: int = 0) -> list[Reading]:
    """Nothing is behind the commit for `idle` sweeps, then it stands behind one record for `sweeps`."""
    return polled([500] * (idle + sweeps), [500] * idle + [501] * sweeps)


TABLE = {
    "as many records as are allowed": (behind(1000), "OK", "PASS"),
    "one more": (behind(1001), "BEHIND", "HOLD"),
    "many, and they become less": (
        polled([100_000 + 400 * i for i in range(N)], [end + 10_000 for end in ENDS]), "CATCHING_UP", "HOLD"),
    "many that have just come to a group which had nothing to do": (
        polled([500] * N, [500] * (N - 1) + [9000]), "BEHIND", "HOLD"),
    "it stands as long as it may": (stands(16), "IDLE", "PASS"),
    "it stands for longer": (stands(17), "STOPPED", "HOLD"),
    "it has stood for long, and something to commit has been there for as long as it may": (
        stands(16, idle=100), "OK", "PASS"),
    "and for longer": (stands(17, idle=100), "STOPPED", "HOLD"),
    "an age that nobody asks for": (polled([100 + i for i in range(N)], [600] * N), "OK", "PASS"),
    "nothing committed, and records": (polled([NONE] * N, ENDS), "UNCOMMITTED", "HOLD"),
    "nothing committed, and none": (polled([NONE] * N, [500] * N, start=500), "IDLE", "PASS"),
    "records that were deleted": (polled([5] * N, ENDS, start=6), "LOST", "FAIL"),
    "a commit that went back for a moment": (polled([END - 50] * (N - 1) + [END - 60], [END] * N), "OK", "PASS"),
    "and by more than the allowed lag": (polled([END - 50] * (N - 1) + [END - 1001], [END] * N), "BEHIND", "HOLD"),
    "one that has not come back": (
        polled([END - 50] * (N - 16) + [END - 500 + i for i in range(16)], [END] * N), "REWOUND", "FAIL"),
    "one that has been back for a moment less": (
        polled([END - 50] * (N - 15) + [END - 500 + i for i in range(15)], [END] * N), "OK", "PASS"),
    "one that went far back": (polled([20_000] * (N - 1) + [9_999], [20_050] * N), "REWOUND", "FAIL"),
}


@pytest.mark.parametrize("what", TABLE)
def test_each_bound_is_one(what):
    readings, verdict, effect = TABLE[what]
    found = judged(readings, thresholds=LIMITS)
    assert (Verdict(found.verdict[0]).name, Effect(found.effect[0]).name) == (verdict, effect)


@pytest.mark.parametrize("holes", [range(20, 39), range(1, 39)])
def test_a_hole_spoils_neither_bound(holes):
    def blind(readings: list[Reading]) -> list[Reading]:
        return [Reading(each.t, each.c, each.e, valid=False) if index in holes else each
                for index, each in enumerate(readings)]

    assert Verdict(judged(blind(behind(1001)), thresholds=LIMITS).verdict[0]) is Verdict.BEHIND
    assert Verdict(judged(blind(stands(N)), thresholds=LIMITS).verdict[0]) is Verdict.STOPPED
    assert Verdict(judged(blind(behind(5)), thresholds=LIMITS).verdict[0]) is Verdict.OK


def test_what_came_in_a_hole_has_not_waited_since_before_it():
    """The last sweep before it saw nothing to commit; when the record came nobody knows."""
    readings = [*polled([500] * 3, [500] * 3), Reading(T0 + 60_000, 500, 501), Reading(T0 + 62_000, 500, 501)]
    found = judged(readings, thresholds=LIMITS)
    assert found.quantities.stood[0] == 2000
    assert Verdict(found.verdict[0]) is Verdict.OK


def test_of_a_bound_in_records_a_gate_is_left_and_fails_as_of_one_in_time():
    grows = judged(polled([100] * N, [1000 + 100 * i for i in range(N)]), thresholds=LIMITS)
    assert (grows.strayed[0], grows.growing[0]) == (True, True)
    within = judged(behind(1400), thresholds=LIMITS)
    assert (within.strayed[0], within.growing[0]) == (False, False)


@pytest.mark.parametrize(("readings", "words"), [
    (behind(1000), "lag 1000, the oldest uncommitted record is 10 s old (allowed: 1000 records)"),
    (behind(1001), "lag 1001, the oldest uncommitted record is 10 s old (allowed: 1000 records), without a trend "
                   "(+0.0 records/s, 100.0 arrive)"),
    (stands(17, idle=20), "no new offset was committed for at least 72 s (allowed: 30 s); lag 1, the oldest uncommitted "
                          "record is 34 s old"),
])
def test_the_sentence_names_the_bound(readings, words):
    assert sentence(ORDERS, judged(readings, thresholds=LIMITS), 0).partition(": ")[2] == words


def test_both_bounds_are_named():
    found = judged(behind(5), thresholds=Thresholds(poll=POLL, max_lag=7, min_span=1000))
    assert sentence(ORDERS, found, 0).endswith("(allowed: 60 s, 7 records)")


@pytest.mark.parametrize("seconds", [1, 29, 300, 599, 600, 3600, 86_400])
def test_the_window_shows_every_limit_in_a_bounded_number_of_samples(seconds):
    for limits in (of_a_cluster(2000, 10_000, seconds * 1000), of_a_migration(5000, 60_000, seconds * 1000, 30_000),
                   of_a_migration(5000, seconds * 1000, 75_000, 30_000)):
        assert limits.max_quiet >= seconds * 1000
        assert limits.width <= MOST
        assert (limits.width - RECENT) * limits.apart >= (limits.window if limits.apart else 0)
