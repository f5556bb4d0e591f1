"""What is known to be wrong about "lag > N" (docs/facts/lag.md#what-is-wrong-about-a-number-of-records), each shown to
be right here."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from switchover.lag.group import Evaluation, Group, TopicPartition, evaluate
from switchover.lag.samples import NONE
from switchover.lag.verdicts import Effect, judge
from unit.lag_readings import DEFAULTS, ORDERS, Reading, every_poll, judged, samples_of, verdict
from unit.lag_story import EVENT, World, after, play, said, sets

LIMIT = 10_000
N = 40


def alarms(readings: list[Reading]) -> bool:
    """What a rule "lag > 10,000" says of the newest sample, with the lag that exporters show."""
    return max(0, readings[-1].hw - readings[-1].c) > LIMIT


def constant(rate: int, seconds: int) -> list[Reading]:
    """A consumer that stays so many seconds behind."""
    ends = [10**7 + rate * 15 * i for i in range(N)]
    return every_poll([end - rate * seconds for end in ends], ends)


def group(partitions: dict[TopicPartition, list[Reading]], expected: Iterable[TopicPartition]) -> Evaluation:
    at = max(readings[-1].t for readings in partitions.values())
    kernel = judge(samples_of(list(partitions.values())), at, DEFAULTS)
    return evaluate(list(partitions), kernel, Group(frozenset(expected), True, 1, True), at, "1")


def test_1_records_are_no_time():
    busy, slow = constant(rate=50_000, seconds=1), constant(rate=10, seconds=500)
    assert (alarms(busy), verdict(busy)) == (True, "OK")
    assert (alarms(slow), verdict(slow)) == (False, "BEHIND")


def test_2_a_point_has_no_direction():
    ends = [10**7 + 15_000 * i for i in range(N)]
    shrinks = every_poll([end - 90_000 - 10_000 * (N - 1 - i) for i, end in enumerate(ends)], ends)
    grows = every_poll([end - 90_000 + 1000 * (N - 1 - i) for i, end in enumerate(ends)], ends)
    assert shrinks[-1].e - shrinks[-1].c == grows[-1].e - grows[-1].c
    assert (verdict(shrinks), verdict(grows)) == ("CATCHING_UP", "BEHIND")
    assert judged(grows).growing[0]


def test_3_nothing_seen_is_not_zero():
    seen = constant(rate=1000, seconds=1)
    blind = [*seen[:-3], *(Reading(r.t, 0, 0, valid=False) for r in seen[-3:])]
    assert (alarms(blind), verdict(blind)) == (False, "UNKNOWN")
    other = TopicPartition("orders", 1)
    assert group({ORDERS: seen}, [ORDERS]).effect is Effect.PASS
    assert group({ORDERS: seen}, [ORDERS, other]).effect is Effect.INCONCLUSIVE
    assert group({ORDERS: seen}, [ORDERS, other]).missing == (other,)


def test_4_a_saw_tooth_of_commits_is_no_lag():
    world = World(cadence=45)
    moments = play({}, 60, world)
    assert {alarms(world.readings[:i]) for i in range(1, N)} == {True, False}
    assert said(moments, "verdict") == ["UNKNOWN", "OK"]


def test_5_markers_are_never_committed():
    drained = every_poll([499] * N, [500] * N)
    assert drained[-1].e - drained[-1].c > 0                        # "wait until lag is 0" waits for ever
    assert verdict(drained, transactional=True) == "IDLE"


def test_6_who_reads_committed_records_cannot_pass_the_last_stable_offset():
    readings = [Reading(r.t, 500, 500, high=500 + 1000 * i) for i, r in enumerate(constant(0, 0))]
    assert (alarms(readings), verdict(readings)) == (True, "IDLE")


def test_7_compacted_offsets_are_counted_and_have_no_records():
    """A changelog of which one record in fifty is left: offsets move fast, and the head is two seconds old."""
    readings = constant(rate=6000, seconds=2)
    assert (alarms(readings), verdict(readings)) == (True, "OK")


def test_8_a_commit_beyond_the_end_is_no_zero():
    readings = constant(rate=0, seconds=0)
    beyond = [Reading(r.t, r.c, r.e if i < N - 2 else 7) for i, r in enumerate(readings)]
    assert (alarms(beyond), verdict(beyond)) == (False, "BEYOND_END")


def test_9_a_commit_before_the_log_start_is_loss():
    readings = every_poll([500] * N, [600] * N, start=550)
    assert (alarms(readings), verdict(readings)) == (False, "LOST")


def test_10_a_sum_hides_a_dead_partition_and_a_largest_one_hides_that_all_are_slow():
    dead = every_poll([10**6 - 600] * N, [10**6 - 600 + 15 * i for i in range(N)])
    topic = [TopicPartition("orders", i) for i in range(20)]
    one_dead = {each: dead if each.partition == 7 else constant(10, 1) for each in topic}
    assert sum(readings[-1].e - readings[-1].c for readings in one_dead.values()) < LIMIT
    assert group(one_dead, topic).standing == {topic[7]}
    all_slow = dict.fromkeys(topic, constant(rate=100, seconds=90))
    assert not any(alarms(readings) for readings in all_slow.values())
    assert group(all_slow, topic).behind == set(topic)


def test_11_commits_for_topics_that_nobody_subscribes_to_do_not_count():
    left = TopicPartition("left", 0)
    ends = [10**7 + 15_000 * i for i in range(N)]
    both = {ORDERS: constant(1000, 1), left: every_poll([5] * N, ends)}
    assert alarms(both[left])
    assert (group(both, [ORDERS]).effect, group(both, [ORDERS]).strayed) == (Effect.PASS, False)
    assert (group(both, [ORDERS, left]).effect, group(both, [ORDERS, left]).strayed) == (Effect.HOLD, True)


def test_12_a_rebalance_pauses_commits():
    world = World()
    moments = play({EVENT: sets(alive=False), EVENT + 50: sets(alive=True)}, EVENT // 60 + 1, world)
    assert any(alarms(world.readings[:i]) for i in range(1, N))
    assert said(moments, "verdict", EVENT) == ["OK"]


@pytest.mark.parametrize("readings", [every_poll([500] * N, [500] * N), every_poll([NONE] * N, [500] * N, start=500)])
def test_13_no_lag_where_nothing_happens_proves_nothing(readings):
    assert not alarms(readings)
    assert verdict(readings) == "IDLE"
    strict = judged(readings, thresholds=replace(DEFAULTS, require_progress=True))
    assert Effect(strict.effect[0]) is Effect.HOLD


def test_14_offsets_of_two_clusters_are_never_compared():
    """A partition's samples are of one cluster; the same consumer at other offsets elsewhere has the same figures."""
    here, there = constant(1000, 5), [Reading(r.t, r.c - 9 * 10**6, r.e - 9 * 10**6) for r in constant(1000, 5)]
    assert here[-1].e - there[-1].c > LIMIT
    for name in ("lag", "time_lag", "growth"):
        assert getattr(judged(here).quantities, name) == getattr(judged(there).quantities, name)
    assert verdict(here) == verdict(there) == "OK"


def test_a_dead_consumer_of_a_slow_topic_is_found_in_minutes_where_a_limit_needs_hours():
    world = World(rate=1)
    moments = play({EVENT: sets(alive=False)}, 60, world)
    assert after(moments, gate="FAIL") == 105
    assert not alarms(world.readings)
