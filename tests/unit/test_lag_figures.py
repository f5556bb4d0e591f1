"""What a scrape says of the lag of groups: by position alone, with as many series for a thousand partitions as for one."""

from prometheus_client import CollectorRegistry, generate_latest

from switchover.groups.figures import LAG_METRICS, lag_figures
from switchover.lag.group import Group, TopicPartition
from switchover.lag.watch import Assessment, Watch
from switchover.lag.window import Offsets, Reading
from switchover.process.metrics import Metrics
from unit.lag_readings import DEFAULTS, POLL, T0


def assessed(partitions: int, *, sweeps: int = 10, behind: int = 0, missing: int = 0, topic: str = "canary") -> Assessment:
    """Every partition is as far behind, 1000 records a poll."""
    named = [TopicPartition(topic, number) for number in range(partitions)]
    expected = frozenset({*named, *(TopicPartition("missing", number) for number in range(missing))})
    watch = Watch(DEFAULTS)
    for sweep in range(sweeps):
        end = 100_000 + 1000 * sweep
        watch.add(Reading({each: Offsets(T0 + sweep * POLL, end - behind, end, 0, end) for each in named}))
    return watch.assess(Group(expected, True, 1, True), T0 + max(0, sweeps - 1) * POLL)


def values(*groups: Assessment) -> dict[tuple[str, ...], float]:
    return {(item.metric.removeprefix("switchover_group_"), *item.labels): item.value for item in lag_figures(groups)}


def test_lag_age_verdicts_and_the_gate_of_each_group():
    found = values(assessed(3), assessed(2, behind=2500, missing=4))
    assert (found["lag_records", "0"], found["lag_records", "1"]) == (0, 5000)
    assert (found["time_lag_seconds", "0"], found["time_lag_seconds", "1"]) == (0, 37.5)
    assert found["time_lag_censored", "1"] == 0
    assert (found["partitions", "1", "OK"], found["partitions", "1", "UNKNOWN"]) == (2, 4)
    assert found["partitions", "0", "OK"] == 3
    assert {key[2]: value for key, value in found.items() if key[:2] == ("gate", "0")} == {
        "PASS": 0, "HOLD": 1, "INCONCLUSIVE": 0, "FAIL": 0}
    assert found["gate", "1", "INCONCLUSIVE"] == 1


def test_an_age_beyond_the_window_is_marked():
    found = values(assessed(1, behind=50_000))
    assert (found["time_lag_seconds", "0"], found["time_lag_censored", "0"]) == (135, 1)


def test_what_was_never_sampled_is_absent_and_staleness_is_a_time():
    assert values(assessed(1))["sampled_timestamp_seconds", "0"] == (T0 + 9 * POLL) / 1000
    assert ("sampled_timestamp_seconds", "0") not in values(assessed(1, missing=1))
    assert {key[0] for key in values(assessed(0, missing=1))} == {"gate", "partitions"}
    assert {key[0] for key in values(assessed(1, sweeps=1))} == {
        "gate", "partitions", "lag_records", "sampled_timestamp_seconds"}


def test_every_metric_has_its_labels_and_a_group_always_as_many_series():
    found = lag_figures([assessed(1)])
    assert {item.metric for item in found} == LAG_METRICS.keys()
    assert all(len(item.labels) == len(LAG_METRICS[item.metric].labels) for item in found)
    assert len(found) == len(lag_figures([assessed(500)])) == 19


def test_a_scrape_names_no_group_and_no_topic():
    registry = CollectorRegistry()
    Metrics(registry, lambda: 0.0).migrations("ConsumerGroupMigration", "shop").update(
        "name", "uid-1", lag_figures([assessed(2)]), {})
    text = generate_latest(registry).decode()
    assert 'switchover_group_partitions{group="0",migration="uid-1",verdict="OK"} 2.0' in text
    assert "canary" not in text
