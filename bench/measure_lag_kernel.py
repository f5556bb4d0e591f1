"""The lag kernel over history: in this process, in Spark, and what of it SQL can say in DuckDB and in Spark SQL.

    python -m measure_lag_kernel [GROUPS PARTITIONS SWEEPS]

All start from the same Parquet files. SQL's part is the lag of every sample (the last commit before each end), with count,
largest and last lag of each partition; it has no time lag by interpolation, no trend, no verdict, no hysteresis. The kernel
tells all of that at every sweep.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from meter import measured
from switchover.pipeline.baseline.job import course_of, judged
from switchover.pipeline.baseline.kernel import END, KAFKA, ROWS, SORTED, Bronze, Kernel
from switchover.pipeline.config import BaselineSettings, Spark
from switchover.pipeline.session import session
from switchover.pipeline.tables import COMMITS, ENDS

T0 = 1_795_392_000_000
POLL = 60_000
EVERY = 15_000


def written(root: Path, groups: int, partitions: int, sweeps: int) -> dict[str, list[str]]:
    """A topic for each group, a commit every 15 s and an end every minute; every tenth group lags behind in between."""
    dice = np.random.default_rng(7)
    ends = []
    commits = []
    for sweep in range(sweeps):
        names = np.repeat([f"topic-{group}" for group in range(groups)], partitions)
        numbers = np.tile(np.arange(partitions, dtype=np.int32), groups)
        end = 1000 + sweep * 600 + np.zeros(len(names), dtype=np.int64)
        ends.append(pa.table([names, numbers, np.zeros_like(end), end, np.full_like(end, T0 + sweep * POLL)], schema=ENDS))
    path = root / "ends"
    path.mkdir()
    for sweep, table in enumerate(ends):
        pq.write_table(table, path / f"run{sweep:05}-0.parquet")
    steps = sweeps * POLL // EVERY
    at = T0 - EVERY + np.arange(steps, dtype=np.int64) * EVERY
    for group in range(groups):
        for partition in range(partitions):
            slow = 3000 * (np.sin(np.arange(steps) / 40) > .5) if group % 10 == 0 else 0
            offset = np.maximum(1000 + (at - T0) * 600 // POLL - dice.integers(0, 100, steps) - slow, 0)
            rows = len(offset)
            commits.append(pa.table({
                "group": pa.array([f"group-{group}"]).take(pa.array(np.zeros(rows, np.int64))),
                "topic": pa.array([f"topic-{group}"]).take(pa.array(np.zeros(rows, np.int64))),
                "partition": np.full(rows, partition, np.int32), "offset": offset.astype(np.int64),
                "leader_epoch": np.full(rows, -1, np.int32), "commit_time": at, "record_time": at,
                "version": np.full(rows, 3, np.int16), "topic_id": pa.nulls(rows, pa.string()),
                "log_partition": np.zeros(rows, np.int32), "log_offset": np.arange(rows, dtype=np.int64)}).cast(COMMITS))
    pq.write_table(pa.concat_tables(commits), root / "commits.parquet", row_group_size=200_000)
    return {"ends": sorted(map(str, path.iterdir())), "commits": [str(root / "commits.parquet")]}


@contextmanager
def told(what: str, samples: int) -> Iterator[dict[str, object]]:
    """Prints a line when the block ends; what it puts into the mapping too."""
    more: dict[str, object] = {}
    with measured() as cost:
        yield more
    rate = f"{samples / cost.cpu:,.0f} samples per CPU-s" if samples else ""
    print(f"{what:60} {cost} {rate} {more or ''}", flush=True)


SQL = """
select "group", topic, partition, count(*) samples, max("end" - "offset") largest, max_by("end" - "offset", moment) latest
from {joined} group by "group", topic, partition"""
DUCKDB = """(select c."group", c.topic, c.partition, c."offset", e."end", e.time moment
from (select distinct "group", topic, partition from commits) k join ends e using (topic, partition)
asof join commits c
on c."group" = k."group" and c.topic = k.topic and c.partition = k.partition and e.time >= c.commit_time)"""
SPARK = """(select * from (
select `group`, topic, partition, moment, `end`, last_value(`offset`, true) over (
    partition by `group`, topic, partition order by moment, kind rows unbounded preceding) `offset`
from (select `group`, topic, partition, commit_time moment, 0 kind, `offset`, null `end` from commits
      union all select k.`group`, topic, partition, time, 1, null, `end` from ends
                join (select distinct `group`, topic, partition from commits) k using (topic, partition)))
where `end` is not null and `offset` is not null)"""


def main(groups: int, partitions: int, sweeps: int) -> None:
    """Every way once, the Spark ones a second time in the warm JVM."""
    samples = groups * partitions * sweeps
    with tempfile.TemporaryDirectory() as name:
        files = written(Path(name), groups, partitions, sweeps)
        settings = BaselineSettings()
        kernel = Kernel(course_of([T0 + sweep * POLL for sweep in range(sweeps)], settings), settings.max_bytes)
        with told("numpy kernel and quantiles, one process", samples) as more:
            more["passing"] = alone(files, kernel)
        with told("DuckDB: as-of join and aggregates", samples) as more:
            more["largest"] = in_duckdb(files)
        with told("Spark starts", 0):
            spark = session(Spark(memory="1500m"), "measure")
        for again in ("first", "warm"):
            with told(f"Spark: mapInArrow, the whole job but its files, {again}", samples) as more:
                more["passing"] = in_spark(spark, files, kernel)
            with told(f"Spark SQL: window and aggregates, {again}", samples) as more:
                more["largest"] = in_spark_sql(spark, files)
        spark.stop()


def alone(files: dict[str, list[str]], kernel: Kernel) -> int:
    """The same kernel without Spark: one sort in Arrow, one thread of Python. How often a gate passed."""
    ends = pa.concat_tables(pq.read_table(file, columns=["topic", "partition", "start", "end", "time"]).append_column(
        "place", pa.array(np.full(pq.read_metadata(file).num_rows, number))) for number, file in enumerate(files["ends"]))
    commits = pq.read_table(files["commits"][0])
    rows = pa.concat_tables([
        _rows(commits, KAFKA, commits["group"], commits["log_offset"], commits["commit_time"], commits["offset"]),
        _rows(ends, END, pc.replace_substring(ends["topic"], "topic", "group"), ends["place"], ends["time"], ends["end"])])
    told = kernel(rows.sort_by([(name, "ascending") for name in SORTED]).to_batches(100_000))
    return sum(batch["passing_without"][0].as_py() for batch in told)


def _rows(table: pa.Table, kind: int, *columns: pa.ChunkedArray) -> pa.Table:
    group, place, time_, value = columns
    nothing = pa.nulls(len(table), pa.int64())
    start = table["start"] if kind == END else nothing
    return pa.table([group, table["topic"], table["partition"], pa.array(np.full(len(table), kind, np.int8)), place, time_,
                     value, start, nothing], schema=ROWS)


def in_spark(spark: SparkSession, files: dict[str, list[str]], kernel: Kernel) -> int:
    bronze = Bronze(spark, files)
    return judged(bronze.rows(bronze.sweeps()), kernel).selectExpr("sum(passing_without)").collect()[0][0]


def in_duckdb(files: dict[str, list[str]]) -> int:
    connection = duckdb.connect(config={"threads": 2})
    for table, paths in files.items():
        connection.execute(f"create view {table} as select * from read_parquet({paths})")
    return connection.execute(f"select sum(largest) from ({SQL.format(joined=DUCKDB)})").fetchone()[0]


def in_spark_sql(spark: SparkSession, files: dict[str, list[str]]) -> int:
    for table, paths in files.items():
        spark.read.parquet(*paths).createOrReplaceTempView(table)
    text = SQL.replace('"', "`").format(joined=SPARK)
    return int(spark.sql(f"select sum(largest) from ({text})").collect()[0][0])


if __name__ == "__main__":
    main(*(map(int, sys.argv[1:]) if len(sys.argv) > 1 else (200, 10, 720)))
