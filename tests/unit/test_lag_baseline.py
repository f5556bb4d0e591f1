"""What a group is used to: its text there and back, what is no such text, and the hour of the week."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchover.lag.baseline import HOURS, MAX_BYTES, Usuals, WeeklyBaseline, hour_of_week, parse, text_of
from switchover.lag.samples import NONE
from switchover.lag.thresholds import allowed_quiet, allowed_time_lag, of_a_migration
from switchover.shared.partition import TopicPartition

ORDERS = TopicPartition("orders", 0)
MONDAY = 1_795_392_000_000
MONDAY_THEN = datetime(2026, 11, 23, tzinfo=UTC)
HOUR = 3_600_000

figure = st.one_of(st.just(NONE), st.integers(0, 10**9).map(lambda seconds: seconds * 1000))
usual = st.tuples(figure, figure)
usuals = st.builds(Usuals, usual, st.dictionaries(st.integers(0, HOURS - 1), usual, max_size=12))
partitions = st.dictionaries(st.builds(TopicPartition, st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True),
                                       st.integers(0, 2**31 - 1)), usuals, max_size=5)


@given(st.text(max_size=40), st.integers(0, 2**53), partitions)
def test_a_baseline_comes_back_from_its_text(group, until, told):
    baseline = WeeklyBaseline(group, until, told)
    text = text_of(baseline)
    assert text.isascii()
    found = parse(text, group)
    assert (found.group, found.until, found.partitions.keys()) == (group, until, told.keys())
    for each in told:
        for hour in range(HOURS):
            now = MONDAY + hour * HOUR
            assert found.at(now, [each]).time_lag_q99 == baseline.at(now, [each]).time_lag_q99
            assert found.at(now, [each]).commit_interval_p99 == baseline.at(now, [each]).commit_interval_p99
    assert text_of(found) == text


def test_the_text_is_short_where_hours_are_alike():
    hours = {**dict.fromkeys(range(168), (900, 4500)), 17: (39_001, 4500), 18: (39_500, 5000), 20: (NONE, 5000)}
    text = text_of(WeeklyBaseline("or\nders", 5, {ORDERS: Usuals((900, 4500), hours)}))
    assert text == 'switchover-baseline 1 {"group":"or\\nders","until":5}\norders/0 1,5 17-18=40,5 20=-,5\n'


def test_without_hours_only_what_holds_always_is_told():
    text = text_of(WeeklyBaseline("g", 5, {ORDERS: Usuals((1, NONE), {3: (9000, 1)})}), hours=False)
    assert text.splitlines()[1] == "orders/0 1,-"


HEAD = 'switchover-baseline 1 {"group":"g","until":5}\n'


@pytest.mark.parametrize(("text", "why"), [
    ("", "does not begin with switchover-baseline"),
    ("apiVersion: v1\n", "does not begin"),
    (HEAD.replace(" 1 ", " 2 "), "version '2', and this operator reads version 1"),
    ("switchover-baseline 1 {\n", "does not name a group"),
    ("switchover-baseline 1 " + "[" * 100_000, "does not name a group"),
    ('switchover-baseline 1 {"group":"g","until":true}\n', "does not name a group"),
    ('switchover-baseline 1 {"group":"g","until":1e400}\n', "does not name a group"),
    (HEAD.replace('"g"', '"payments\\u202e"'), "is the baseline of group 'payments\\u202e'"),
    (HEAD + "orders 1,2\n", "line 2 ('orders 1,2'): it must begin with TOPIC/PARTITION"),
    (HEAD + "orders/0\n", "SECONDS,SECONDS"),
    (HEAD + "orders/0 1\n", "SECONDS,SECONDS"),
    (HEAD + "orders/0 1,-2\n", "SECONDS,SECONDS"),
    (HEAD + "orders/0 ١,2\n", "SECONDS,SECONDS"),
    (HEAD + "orders/0 1,2 168=1,2\n", "hours run from 0 to 167"),
    (HEAD + "orders/0 1,2 5-4=1,2\n", "hours run from 0 to 167"),
    (HEAD + "orders/0 1,2  5=1,2\n", "HOUR=SECONDS,SECONDS"),
    (HEAD + "orders/0 1,2\norders/0 1,2\n", "line 3 ('orders/0 1,2'): the partition is there twice"),
    (HEAD + "orders/0 1,2\n\n", "line 3"),
    (HEAD + "a\x00\u202e/0 1,2\n", "line 2 ('a\\x00\\u202e/0 1,2')"),
    (HEAD + "a" * MAX_BYTES, "more than any ConfigMap"),
])
def test_what_is_none_is_refused_in_words(text, why):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        parse(text, "g")
    assert why in str(caught.value)
    assert len(str(caught.value)) < 400


@given(st.text(max_size=60), st.sampled_from(["", HEAD, HEAD + "orders/0 "]))
def test_junk_is_refused_or_read_and_never_more(junk, before):
    try:
        found = parse(before + junk, "g")
    except ValueError:
        return
    assert parse(text_of(found), "g").partitions.keys() == found.partitions.keys()


def test_a_topic_that_kafka_would_not_take_is_not_written():
    with pytest.raises(ValueError, match="not a topic's name"):
        text_of(WeeklyBaseline("g", 5, {TopicPartition("a b", 0): Usuals((1, 1))}))


@given(st.timedeltas(timedelta(days=-20_000), timedelta(days=20_000)).map(lambda passed: MONDAY_THEN + passed))
def test_the_hour_of_the_week_is_the_one_of_the_calendar_in_utc(moment):
    told = hour_of_week((moment - MONDAY_THEN) // timedelta(milliseconds=1) + MONDAY)
    assert told == moment.weekday() * 24 + moment.hour
    assert hour_of_week(np.array([told * HOUR + 4 * 24 * HOUR])).tolist() == [told]


def test_the_edges_of_the_week_belong_to_its_first_and_its_last_hour():
    assert [hour_of_week(MONDAY + step) for step in (-1, 0, HOUR - 1, HOUR)] == [167, 0, 0, 1]


def test_a_baseline_tightens_the_limits_of_a_migration_and_never_widens_them():
    limits = of_a_migration(5_000, 120_000, 180_000, 30_000)
    told = {ORDERS: Usuals((1000, 5000)), TopicPartition("orders", 1): Usuals((25_000, 30_000)),
            TopicPartition("orders", 2): Usuals((10**9, 10**9)), TopicPartition("orders", 3): Usuals((NONE, NONE))}
    baseline = WeeklyBaseline("g", 5, told).at(MONDAY, [*told, TopicPartition("new", 0)])
    assert allowed_time_lag(limits, baseline, 5).tolist() == [30_000, 50_000, 120_000, 120_000, 120_000]
    assert allowed_quiet(limits, baseline, 5).tolist() == [60_000, 90_000, 180_000, 180_000, 180_000]
    assert allowed_time_lag(limits, None, 1).tolist() == [120_000]
    assert allowed_quiet(limits, None, 1).tolist() == [180_000]
    strict = of_a_migration(5_000, 10_000, 20_000, 30_000)
    assert allowed_time_lag(strict, baseline, 5).tolist() == [10_000] * 5
    assert allowed_quiet(strict, baseline, 5).tolist() == [20_000] * 5
