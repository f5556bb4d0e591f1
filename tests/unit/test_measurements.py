"""What is measured in the course of a migration stays bounded, evenly spread over each step, and keeps the worst."""

import json
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchover.answers.observed import Known
from switchover.api.kafka_migration import KafkaMigrationStatus
from switchover.api.meta import GroupHealth
from switchover.api.status import Measurements, Series
from switchover.cluster.status import measured
from switchover.engine.figures import PER_STEP, SERIES, STORED, group_figures, measured_of
from switchover.shared.partition import TopicPartition
from unit.judged_groups import Swept, judged
from unit.pictures import moment, with_fact

NOW = 1_800_000_000.0
ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(NOW + seconds, UTC)


NOTHING = Measurements()


def after(passes: list[tuple[float, int]], told: Measurements = NOTHING) -> Measurements:
    for seconds, lag in passes:
        told = measured_of(told, {"DualWriteLag": lag}, NOW, NOW + seconds)
    return told


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 4000), st.integers(0, 10**6)), min_size=PER_STEP + 4, max_size=60))
def test_of_a_step_a_bounded_number_is_kept_with_the_worst_and_the_last(steps):
    passes, now = [], 0
    for seconds, lag in steps:
        now += seconds
        passes.append((now, lag))
    told = after(passes)
    (series,) = told.series
    assert len(told.times) == len(series.values) == PER_STEP
    assert max(series.values) == max(lag for _, lag in passes)
    assert told.times == tuple(sorted(told.times))
    assert told.times[-1] == at(now)


def test_the_times_of_a_long_step_stay_apart_evenly():
    told = after([(30 * number, 0) for number in range(1, 2000)])
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(told.times)]
    assert max(gaps[:-1]) <= 4 * min(gaps[:-1])


def test_a_long_step_takes_nothing_from_the_one_before():
    before = after([(number, number) for number in range(1, 11)])
    told = before
    for number in range(300):
        told = measured_of(told, {"DualWriteLag": 1}, NOW + 100, NOW + 100 + 60 * number)
    assert told.times[:10] == before.times
    assert told.series[0].values[:10] == before.series[0].values
    assert len(told.times) == 10 + PER_STEP


def test_what_could_not_be_observed_is_no_zero():
    told = measured_of(after([(1, 7)]), {"GroupLag/orders": 3}, NOW, NOW + 2)
    assert {each.name: each.values for each in told.series} == {"DualWriteLag": (7, -1), "GroupLag/orders": (-1, 3)}


def test_all_of_it_fits_whatever_stood_there():
    odd = Measurements(times=[at(0)] * STORED, series=[Series(name=f"Old{number}", values=[1]) for number in range(SERIES)])
    told = measured_of(odd, {f"GroupLag/{number}": 2**53 for number in range(20)}, NOW + 10, NOW + 20)
    status = KafkaMigrationStatus.model_validate(json.loads(json.dumps(KafkaMigrationStatus(measurements=told).manifest())))
    assert (len(status.measurements.times), len(status.measurements.series)) == (STORED, SERIES)
    assert {len(each.values) for each in status.measurements.series} == {STORED}


@pytest.mark.parametrize(("sweeps", "lag", "gap"), [
    ([{ONE: (5, 9, 0), TWO: (2, 2, 0)}], 4, 0),
    ([{ONE: (5, 9, 0)}, {ONE: (5, 9, 0)}, {ONE: (5, 10, 0)}], 5, 4),
    ([{ONE: (5, 9, 0)}, {ONE: (6, 9, 0)}, {ONE: (6, 10, 0)}], 4, 2),
    ([{ONE: (5, 5, 0)}, {ONE: (5, 9, 0)}, {ONE: (5, 9, 0)}], 4, 2),
    ([{ONE: (None, 9, 4)}, {ONE: (None, 9, 4)}], 5, 0),
    ([{}], 0, 0),
])
def test_lag_and_gap_of_a_group(sweeps, lag, gap):
    swept = tuple(Swept(2.0 * (len(sweeps) - 1 - number), offsets) for number, offsets in enumerate(sweeps))
    picture = with_fact(moment("EnableMigration"), "groups", {
        "orders": Known(judged(GroupHealth(name="orders"), swept, NOW), NOW)})
    found = measured(picture, 0)
    assert (found["GroupLag/orders"], found["GroupGap/orders"]) == (lag, gap)


def test_groups_whose_long_names_begin_alike_have_figures_of_their_own():
    names = ["orders", *("connect-" + "s3-sink-" * 40 + each for each in "ab")]
    told = dict(group_figures({name: (index, {}) for index, name in enumerate(names)}))
    assert sorted(told.values()) == [0, 0, 0, 0, 1, 2]
    series = [Series(name=name, values=[value]) for name, value in told.items()]
    assert {each.name for each in Measurements(times=[at(0)], series=series).series} >= {"GroupLag/orders"}
