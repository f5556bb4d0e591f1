"""How long the check of ownership intervals takes: Spark by string keys, hashed, and on bucketed data, against DuckDB.

    python -m measure_audit [--rows N] [--cores 1 --cores 2]
        [--directory D]

The same Parquet for all, made by a seed. Every engine must find the same overlaps and gaps before its time is printed.
DuckDB and Spark each have a process of their own; Spark's start is not included, the writing of the bucketed table is told
apart.
"""

import argparse
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from meter import measured
from switchover.pipeline.audit.intervals import KEY, hashed, overlaps
from switchover.pipeline.config import Spark
from switchover.pipeline.session import session

NAMES = ("group", "topic", "partition")
PER_KEY = 50
DATA = "intervals"
Found = tuple[int, int, int, int]
"""Overlaps, their sum, gaps, their sum."""


def generated(spark: SparkSession, rows: int) -> DataFrame:
    """PER_KEY intervals one after the other for each key, in no order; some begin early (overlap) or late (gap)."""
    number = f.col("id")
    keys = max(1, rows // PER_KEY)
    step = f.floor(number / keys)
    chance = f.pmod(f.xxhash64(number), f.lit(20_000))
    start = step * 1000 - f.when((chance == 0) & (step > 0), 500).otherwise(0) + f.when(chance == 1, 700).otherwise(0)
    key = number % keys
    return spark.range(rows).select(
        f.concat(f.lit("team-"), f.floor(key / 32), f.lit("-consumer-group")).alias("group"),
        f.concat(f.lit("topic-"), key % 500).alias("topic"), (key % 32).cast("int").alias("partition"),
        start.alias("s"), (step * 1000 + 1000).alias("e")).orderBy(f.xxhash64(number))


def spark_finds(rows: DataFrame, *key: str) -> Found:
    row = overlaps(rows, key, "s", "e").agg(
        f.count_if(f.col("overlap") > 0), f.sum("overlap"), f.count_if(f.col("gap") > 0),
        f.sum("gap")).collect()[0]
    return (row[0], row[1], row[2], row[3])


def duckdb_finds(path: Path, key: str, cores: int) -> Found:
    with duckdb.connect(config={"threads": cores}) as connection:
        connection.execute("SET enable_progress_bar = false")
        row = connection.execute(f"""
            SELECT count(*) FILTER (s < pe), coalesce(sum(least(e, pe) - s) FILTER (s < pe), 0), count(*) FILTER (s > pe),
                   coalesce(sum(s - pe) FILTER (s > pe), 0)
            FROM (SELECT s, e, max(e) OVER (PARTITION BY {key} ORDER BY s, e ROWS BETWEEN UNBOUNDED PRECEDING
                                            AND 1 PRECEDING) AS pe FROM '{path}/*.parquet')""").fetchall()[0]
    return (int(row[0]), int(row[1]), int(row[2]), int(row[3]))


def spark_of(directory: Path, rows: int, cores: int) -> SparkSession:
    return session(Spark(master=f"local[{cores}]", memory="2g", options={
        "spark.local.dir": str(directory), "spark.sql.warehouse.dir": str(directory / "tables"),
        "spark.sql.shuffle.partitions": str(max(4, rows // 400_000)),
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.legacy.bucketedTableScan.outputOrdering": "true"}), "measure")


def fill(directory: Path, rows: int) -> None:
    """To be run in a process of its own, so that DuckDB's memory is measured without a JVM beside it."""
    generated(spark_of(directory, rows, 2), rows).write.parquet(str(directory / DATA))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--cores", type=int, action="append", help="once for each to be measured; 2")
    parser.add_argument("--directory", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.directory) as name:
        directory = Path(name)
        apart(fill, directory, chosen.rows)
        for cores in chosen.cores or [2]:
            print(f"{chosen.rows:,} intervals, {cores} cores, load {psutil.getloadavg()[0]:.1f}", flush=True)
            apart(by_duckdb, directory, cores)
            apart(by_spark, directory, chosen.rows, cores)


def apart(work: Callable[..., None], *arguments: object) -> None:
    """Run it in a fresh process, and only there."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
    process.start()
    process.join()
    if process.exitcode != 0:
        raise SystemExit(f"{work.__name__} ended with {process.exitcode}")


def by_duckdb(directory: Path, cores: int) -> None:
    os.sched_setaffinity(0, range(cores))
    names = ", ".join(f'"{name}"' for name in NAMES)
    tell(directory, "DuckDB, string keys", lambda: duckdb_finds(directory / DATA, names, cores))
    tell(directory, "DuckDB, hashed", lambda: duckdb_finds(directory / DATA, f"hash({names})", cores))


def by_spark(directory: Path, rows: int, cores: int) -> None:
    os.sched_setaffinity(0, range(cores))           # the JVM too, with its compiler and collector
    spark = spark_of(directory, rows, cores)
    table = f"intervals_{cores}"

    def data() -> DataFrame:
        return spark.read.parquet(str(directory / DATA))

    def bucketed() -> None:
        (hashed(data(), NAMES).select(KEY, "s", "e").repartition(cores * 4, KEY)
         .write.bucketBy(cores * 4, KEY).sortBy(KEY, "s", "e").saveAsTable(table))

    tell(directory, "Spark, string keys", lambda: spark_finds(data(), *NAMES))
    tell(directory, "Spark, hashed", lambda: spark_finds(hashed(data(), NAMES), KEY))
    tell(directory, "Spark, string keys, again", lambda: spark_finds(data(), *NAMES))
    tell(directory, "Spark, hashed, again", lambda: spark_finds(hashed(data(), NAMES), KEY))
    tell(directory, "Spark, writing it bucketed", bucketed)
    tell(directory, "Spark, bucketed", lambda: spark_finds(spark.table(table), KEY))
    spark.stop()


def tell(directory: Path, what: str, work: Callable[[], Found | None]) -> None:
    """Print the cost of the work, where it has found the same as all before it."""
    with measured() as cost:
        found = work()
    if found is not None:
        agreed = directory / "found"
        if agreed.exists():
            assert agreed.read_text() == str(found), f"{what} found {found}, the others {agreed.read_text()}"
        agreed.write_text(str(found))
    print(f"{what:28} {cost}", flush=True)


if __name__ == "__main__":
    main()
