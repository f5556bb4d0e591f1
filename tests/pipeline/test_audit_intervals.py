"""Merging and checking intervals against a brute-force counter of segments, against DuckDB, and their plans."""

import random
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from switchover.pipeline.audit.intervals import KEY, collisions, hashed, merged, overlaps

CASES = 500
Intervals = list[tuple[int, int]]


def brute(intervals: Intervals) -> tuple[bool, int, int]:
    """Whether anything is covered twice, how much is, and how much between the first and the last is not covered."""
    points = sorted({point for interval in intervals for point in interval})
    covered = [(end - start, sum(s <= start and end <= e for s, e in intervals)) for start, end in pairwise(points)]
    return (any(count > 1 for _, count in covered), sum(length for length, count in covered if count > 1),
            sum(length for length, count in covered if count == 0))


def union(intervals: Intervals) -> Intervals:
    """Touching ones as one."""
    found: Intervals = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Intervals]]:
    """Intervals by owner, a few for each case."""
    chance = random.Random(7)
    made = []
    for _ in range(CASES):
        owners: dict[str, Intervals] = {}
        for _ in range(chance.randint(1, 9)):
            start = chance.randint(0, 20)
            owners.setdefault(chance.choice("abc"), []).append((start, start + chance.randint(1, 8)))
        made.append(owners)
    return made


@pytest.fixture(scope="module")
def rows(spark: SparkSession, cases: list[dict[str, Intervals]]) -> DataFrame:
    return spark.createDataFrame(
        [(case, owner, s, e) for case, owners in enumerate(cases) for owner, each in owners.items() for s, e in each],
        "case long, owner string, s long, e long").cache()


def test_overlaps_and_gaps_are_those_of_a_counter_of_segments(rows: DataFrame, cases: list[dict[str, Intervals]]) -> None:
    found = overlaps(rows, ["case"], "s", "e").groupBy("case").agg(
        f.sum("overlap").alias("overlap"), f.sum("doubled").alias("doubled"), f.sum("gap").alias("gap")).collect()
    told = {row["case"]: (row["overlap"] > 0, row["doubled"], row["gap"]) for row in found}
    assert told == {number: brute([each for intervals in owners.values() for each in intervals])
                    for number, owners in enumerate(cases)}
    assert sum(overlap for overlap, _, _ in told.values()) > 100          # else the cases say nothing


def test_what_one_owner_covers_without_a_break_is_one_interval(rows: DataFrame, cases: list[dict[str, Intervals]]) -> None:
    found = merged(rows, ["case", "owner"], "s", "e", {"n": f.count("*")}).collect()
    told: dict[tuple[int, str], Intervals] = {}
    for row in found:
        told.setdefault((row["case"], row["owner"]), []).append((row["s"], row["e"]))
    assert {key: sorted(each) for key, each in told.items()} == {
        (number, owner): union(intervals) for number, owners in enumerate(cases) for owner, intervals in owners.items()}
    assert sum(row["n"] for row in found) == rows.count() > len(found)


def test_the_holder_is_the_one_that_reaches_farthest(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("k", 0, 100, "long"), ("k", 10, 20, "nested"), ("k", 50, 120, "late")],
                                 "key string, s long, e long, who string")
    found = overlaps(rows, ["key"], "s", "e", f.col("who")).orderBy("s").collect()
    assert [(row["who"], row["other"], row["overlap"], row["doubled"]) for row in found] == [
        ("long", None, 0, 0), ("nested", "long", 10, 10), ("late", "long", 50, 50)]


def _seeded(spark: SparkSession, count: int, keys: int) -> DataFrame:
    """Steps one after the other for each key; every 997th begins 3 too early, every 1009th 2 too late."""
    number = f.col("id")
    step = f.floor(number / keys)
    start = step * 100 - f.when(number % 997 == 0, 3).otherwise(0) + f.when(number % 1009 == 0, 2).otherwise(0)
    return spark.range(count).select(
        f.concat(f.lit("group-"), number % keys).alias("group"), f.lit("orders").alias("topic"),
        (number % 7).cast("int").alias("partition"), start.alias("s"), (step * 100 + 100).alias("e"))


@pytest.mark.long
def test_a_million_intervals_as_duckdb_finds_them(spark: SparkSession, tmp_path: Path) -> None:
    names = ["group", "topic", "partition"]
    _seeded(spark, 1_000_000, 7 * 3000).write.parquet(str(tmp_path / "data"))
    rows = hashed(spark.read.parquet(str(tmp_path / "data")), names)
    ours = overlaps(rows, [KEY], "s", "e").agg(
        f.count_if(f.col("overlap") > 0).alias("n"), f.sum("overlap").alias("overlap"),
        f.count_if(f.col("gap") > 0).alias("m"), f.sum("gap").alias("gap")).collect()[0]
    theirs = duckdb.sql(f"""
        SELECT count(*) FILTER (s < pe), sum(least(e, pe) - s) FILTER (s < pe), count(*) FILTER (s > pe),
               sum(s - pe) FILTER (s > pe)
        FROM (SELECT s, e, max(e) OVER (PARTITION BY "group", topic, partition ORDER BY s, e
                                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS pe
              FROM '{tmp_path}/data/*.parquet')""").fetchall()[0]
    assert tuple(ours) == theirs
    assert ours["n"] > 900
    assert ours["m"] > 900
    assert collisions(rows, names) == 0


def test_a_hash_that_stands_for_two_keys_is_told(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, "a", "t", 0), (1, "a", "t", 0), (2, "a", "t", 1), (2, "b", "t", 1), (3, None, "t", 2)],
                                 "k long, group string, topic string, partition int")
    assert collisions(rows, ["group", "topic", "partition"]) == 1


@pytest.mark.long
def test_one_exchange_is_enough_and_none_where_the_data_is_bucketed(spark: SparkSession) -> None:
    rows = hashed(_seeded(spark, 1000, 70), ["group", "topic", "partition"]).withColumn("owner", f.lit("a"))
    assert _exchanges(overlaps(rows, [KEY], "s", "e")) == 1
    both = overlaps(merged(rows.repartition(KEY), [KEY, "owner"], "s", "e"), [KEY], "s", "e")
    assert _exchanges(both) == 1

    spark.sql("DROP TABLE IF EXISTS audited")
    rows.repartition(2, KEY).write.bucketBy(2, KEY).sortBy(KEY, "s", "e").saveAsTable("audited")
    spark.conf.set("spark.sql.legacy.bucketedTableScan.outputOrdering", "true")
    try:
        plan = overlaps(spark.table("audited"), [KEY], "s", "e")
        assert _exchanges(plan) == 0
        assert "Sort [" not in _plan(plan)
        assert plan.count() == 1000
    finally:
        spark.conf.unset("spark.sql.legacy.bucketedTableScan.outputOrdering")
        spark.sql("DROP TABLE audited")


def _plan(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())


def _exchanges(rows: DataFrame) -> int:
    return _plan(rows).count("Exchange ")
