"""How long the check of ownership intervals takes: Spark by string keys, hashed, and on bucketed data, against DuckDB.

    python tests/pipeline/measure_audit.py [--rows 10000000] [--cores 2] [--directory DIR]

The same Parquet for all, made by a seed. Every engine must find the same overlaps and gaps before its time is printed.
Spark's start is not included; the writing of the bucketed table is told apart. CPU and memory: the process and its children.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from switchover.pipeline.audit.intervals import KEY, hashed, overlaps
from switchover.pipeline.config import Spark
from switchover.pipeline.session import session

NAMES = ("group", "topic", "partition")
PER_KEY = 50
Found = tuple[int, int, int, int]
"""Overlaps, their sum, gaps, their sum."""


@dataclass(frozen=True, slots=True)
class Cost:
    wall: float
    cpu: float
    peak: int


def measured(work: Callable[[], Found | None]) -> tuple[Found | None, Cost]:
    """What the work finds, and its seconds, CPU-seconds and peak of resident bytes."""
    me, ended, peak = psutil.Process(), threading.Event(), [0]

    def tree() -> list[psutil.Process]:
        return [me, *me.children(recursive=True)]

    def cpu() -> float:
        return sum(sum(process.cpu_times()[:2]) for process in tree())

    def watch() -> None:
        while not ended.wait(0.1):
            peak[0] = max(peak[0], sum(process.memory_info().rss for process in tree()))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    began, spent = time.monotonic(), cpu()
    found = work()
    cost = Cost(time.monotonic() - began, cpu() - spent, peak[0])
    ended.set()
    watcher.join()
    return found, Cost(cost.wall, cost.cpu, peak[0])


def generated(spark: SparkSession, rows: int) -> DataFrame:
    """PER_KEY intervals one after the other for each key, in no order; some begin early (overlap) or late (gap)."""
    number = sql.col("id")
    keys = max(1, rows // PER_KEY)
    step = sql.floor(number / keys)
    chance = sql.pmod(sql.xxhash64(number), sql.lit(20_000))
    start = step * 1000 - sql.when((chance == 0) & (step > 0), 500).otherwise(0) + sql.when(chance == 1, 700).otherwise(0)
    key = number % keys
    return spark.range(rows).select(
        sql.concat(sql.lit("team-"), sql.floor(key / 32), sql.lit("-consumer-group")).alias("group"),
        sql.concat(sql.lit("topic-"), key % 500).alias("topic"), (key % 32).cast("int").alias("partition"),
        start.alias("s"), (step * 1000 + 1000).alias("e")).orderBy(sql.xxhash64(number))


def spark_finds(rows: DataFrame, *key: str) -> Found:
    row = overlaps(rows, key, "s", "e").agg(
        sql.count_if(sql.col("overlap") > 0), sql.sum("overlap"), sql.count_if(sql.col("gap") > 0),
        sql.sum("gap")).collect()[0]
    return (row[0], row[1], row[2], row[3])


def duckdb_finds(path: Path, key: str, cores: int) -> Found:
    with duckdb.connect(config={"threads": cores}) as connection:
        row = connection.execute(f"""
            SELECT count(*) FILTER (s < pe), coalesce(sum(least(e, pe) - s) FILTER (s < pe), 0), count(*) FILTER (s > pe),
                   coalesce(sum(s - pe) FILTER (s > pe), 0)
            FROM (SELECT s, e, max(e) OVER (PARTITION BY {key} ORDER BY s, e ROWS BETWEEN UNBOUNDED PRECEDING
                                            AND 1 PRECEDING) AS pe FROM '{path}/*.parquet')""").fetchall()[0]
    return (int(row[0]), int(row[1]), int(row[2]), int(row[3]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--directory", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.directory) as directory:
        measure(Path(directory), chosen.rows, chosen.cores)


def measure(directory: Path, rows: int, cores: int) -> None:
    data = directory / "intervals"
    spark = session(Spark(master=f"local[{cores}]", memory="2g", options={
        "spark.local.dir": str(directory), "spark.sql.warehouse.dir": str(directory / "tables"),
        "spark.sql.shuffle.partitions": str(max(4, rows // 400_000)),
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.legacy.bucketedTableScan.outputOrdering": "true"}), "measure")
    generated(spark, rows).write.parquet(str(data))

    def bucketed() -> None:
        table = hashed(spark.read.parquet(str(data)), NAMES).select(KEY, "s", "e")
        table.repartition(cores * 4, KEY).write.bucketBy(cores * 4, KEY).sortBy(KEY, "s", "e").saveAsTable("intervals")

    names = ", ".join(f'"{name}"' for name in NAMES)
    ways: list[tuple[str, Callable[[], Found | None]]] = [
        ("DuckDB, string keys", lambda: duckdb_finds(data, names, cores)),
        ("DuckDB, hashed", lambda: duckdb_finds(data, f"hash({names})", cores)),
        ("Spark, string keys", lambda: spark_finds(spark.read.parquet(str(data)), *NAMES)),
        ("Spark, hashed, first", lambda: spark_finds(hashed(spark.read.parquet(str(data)), NAMES), KEY)),
        ("Spark, hashed, again", lambda: spark_finds(hashed(spark.read.parquet(str(data)), NAMES), KEY)),
        ("Spark, writing it bucketed", bucketed),
        ("Spark, bucketed", lambda: spark_finds(spark.table("intervals"), KEY)),
    ]
    print(f"{rows:,} intervals, {cores} cores, load {psutil.getloadavg()[0]:.1f}", flush=True)
    agreed: Found | None = None
    for name, work in ways:
        found, cost = measured(work)
        if found is not None:
            agreed = agreed or found
            assert found == agreed, f"{name} found {found}, the others {agreed}"
        print(f"{name:28} {cost.wall:7.1f} s {cost.cpu:7.1f} CPU-s {cost.peak / 2**30:6.2f} GiB", flush=True)
    print(f"all found {agreed}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
