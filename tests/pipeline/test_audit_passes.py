"""Commits of many groups at random, as a plain loop reads them and as Spark does; from one store, and from both."""

import random
from collections.abc import Iterable

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from switchover.pipeline.audit.commits import KAFKA, RESENT_MS, WHICH, ZOOKEEPER, of_members, passes, steps
from switchover.pipeline.audit.findings import of_passes
from switchover.pipeline.audit.intervals import hashed

CASES = 250
BAND = 5000
APART = 20_000
Offsets = list[int | None]
RECENT = RESENT_MS // APART
"""The last commits that are young enough to be sent again."""
EVENTS = ("group string, topic string, partition int, store string, offset long, time long, place long, sub int, "
          "topic_id string, sure boolean")


@pytest.fixture(scope="module")
def stories() -> list[Offsets]:
    """Offsets that mostly grow, are set back at times, and expire."""
    chance = random.Random(11)
    made = []
    for _ in range(CASES):
        offset, offsets = chance.randint(0, 50), Offsets()
        for _ in range(chance.randint(1, 12)):
            step = chance.random()
            offset = max(0, offset - chance.randint(1, 30)) if step < 0.2 else offset + chance.randint(0, 20)
            offsets.append(None if step > 0.93 else offset)
        made.append(offsets)
    return made


def passed_twice(offsets: Offsets) -> int:
    """How many different records several passes went over."""
    times: dict[int, set[int]] = {}
    number, before = 0, None
    for offset in offsets:
        if offset is not None:
            if before is None or offset < before:
                number += 1
            else:
                for record in range(before, offset):
                    times.setdefault(record, set()).add(number)
        before = offset
    return sum(len(each) > 1 for each in times.values())


def surely(offsets: Offsets, number: int) -> bool:
    """Whether a member cannot have sent this commit before the one that it follows."""
    now, before = offsets[number], offsets[number - 1]
    long_ago = offsets[number - RECENT - 1] if number > RECENT else None
    return before is None or (now is not None and long_ago is not None and long_ago > now)


def found(spark: SparkSession, events: list[tuple[object, ...]], *, two_stores: bool,
          owned: Iterable[int] = ()) -> dict[int, list[tuple[object, ...]]]:
    """start, end, amount, doubled, number of the commit, proven by case. `owned`: cases with a member in Kafka's group."""
    rows = hashed(spark.createDataFrame([(*event, "id", True) for event in events], EVENTS), WHICH)
    places = "group string, topic string, partition int, first long, last long"
    owners = spark.createDataFrame([(str(case), "t", 0, 0, CASES) for case in owned], places)
    twice, _ = of_passes(of_members(passes(steps(rows, BAND, two_stores=two_stores)), owners), 0)
    told: dict[int, list[tuple[object, ...]]] = {case: [] for case in range(CASES)}
    for row in twice.where(f.col("kind") == "twice").collect():
        number = round(row["at"] / APART)
        told[int(row["group"])].append((row["start"], row["end"], row["amount"], row["doubled"], number, row["proven"]))
    return {case: sorted(each, key=str) for case, each in told.items()}


def in_kafka(stories: list[Offsets]) -> list[tuple[object, ...]]:
    return [(str(case), "t", 0, KAFKA, offset, number * APART, number, 0)
            for case, offsets in enumerate(stories) for number, offset in enumerate(offsets)]


def test_records_passed_twice_are_those_of_a_plain_count(spark: SparkSession, stories: list[Offsets]) -> None:
    told = found(spark, in_kafka(stories), two_stores=False)
    doubled = {case: sum(int(str(each[3])) for each in rows) for case, rows in told.items()}
    assert doubled == {case: passed_twice(offsets) for case, offsets in enumerate(stories)}
    assert all(each[-1] for rows in told.values() for each in rows)
    assert sum(count > 0 for count in doubled.values()) > 50


def test_of_a_member_only_what_cannot_be_an_older_commit_is_proven(spark: SparkSession, stories: list[Offsets]) -> None:
    told = found(spark, in_kafka(stories), two_stores=False, owned=range(CASES))
    proven = {case: [each[-1] for each in rows] for case, rows in told.items()}
    assert proven == {case: [surely(stories[case], int(str(each[-2]))) for each in rows] for case, rows in told.items()}
    assert {True, False} == {each for rows in proven.values() for each in rows}


@pytest.mark.long
def test_members_that_write_both_stores_are_judged_as_if_they_wrote_one(spark: SparkSession, stories: list[Offsets]) -> None:
    chance = random.Random(13)
    kept = [[offset for offset in offsets if offset is not None] for offsets in stories]
    one = found(spark, in_kafka([list(each) for each in kept]), two_stores=False)
    copies: list[tuple[object, ...]] = [
        (str(case), "t", 0, ZOOKEEPER, offset, number * APART + chance.randint(-4000, 4000), number, 0)
        for case, offsets in enumerate(kept) for number, offset in enumerate(offsets)]
    both = found(spark, in_kafka([list(each) for each in kept]) + copies, two_stores=True)
    assert both == one
    assert sum(map(len, one.values())) > 50
