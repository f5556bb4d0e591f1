"""The demo's figures: what the JSON must hold, and when a run counts as good."""

from dataclasses import replace

from rich.console import Console

from demo.summary import Gaps, Summary, Traffic

GOOD = Summary(
    result="Succeeded",
    seconds=301.24,
    steps={"Preflight": 3, "MoveBrokers": 60},
    pods_replaced=9,
    traffic=Traffic(acknowledged=250_000, lost=0, duplicates=1),
    migration=Gaps(produce=3.0, consume=6.0),
    step_gaps={"MoveBrokers": Gaps(produce=3.0, consume=6.0)},
    plain=(Gaps(produce=2.0, consume=4.0), Gaps(produce=4.0, consume=3.0)),
    plain_seconds=(31.0, 33.0),
    modes={"kafka-0": "KRaft", "kafka-1": "KRaft"},
    zookeeper_connections={"zookeeper-0": 0, "zookeeper-1": -1},
    kills=("the first broker moves to KRaft",),
    operator_restarts=1,
    operator_peak_memory=100 * 2**20,
    decision_latency={"median": 0.1},
)


def test_the_json_holds_what_the_issue_asks_for() -> None:
    found = GOOD.as_json()
    assert found["result"] == "Succeeded"
    assert found["lostRecords"] == 0
    assert found["duplicates"] == 1
    assert found["acknowledged"] == 250_000
    assert found["longestProduceGapSeconds"] == 3.0
    assert found["longestConsumeGapSeconds"] == 6.0
    assert found["steps"] == {"Preflight": 3, "MoveBrokers": 60}
    assert found["stepGaps"] == {"MoveBrokers": {"produce": 3.0, "consume": 6.0}}


def test_ratios_are_against_the_longer_of_the_plain_restarts() -> None:
    assert GOOD.as_json()["gapRatio"] == {"produce": 0.75, "consume": 1.5}


def test_a_lost_record_or_another_result_is_not_good() -> None:
    assert GOOD.good
    assert not replace(GOOD, traffic=replace(GOOD.traffic, lost=1)).good
    assert not replace(GOOD, result="Failed").good


def test_the_table_names_figures_and_proofs() -> None:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(GOOD.as_table())
    text = capture.get()
    assert "plain rolling restart 2 (33 s)" in text
    assert "migration (9 pods replaced)" in text
    assert "ApiVersions of kafka-1: KRaft" in text
    assert "connections to zookeeper-0: 0" in text
    assert "connections to zookeeper-1: no answer" in text
    assert "killed 1 times, restarted 1 times, peak memory 100 MiB" in text
