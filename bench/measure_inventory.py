"""What an inventory of a large fleet costs: each part of it, the whole job, and DuckDB for what SQL alone can say.

    python -m measure_inventory [--groups N] [--topics N]
        [--cores 1 --cores 2]

Teams of four topics, six partitions each; a group reads one to three topics of its team's, and every fiftieth one topic that
glues all of them together. Three captures an hour apart hold a commit for each partition, the ends, and the groups with a
member each. Every group has a workload, so every ready one has its manifest.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import psutil
import pyarrow as pa

from measure_audit import apart
from meter import measured
from switchover.pipeline.config import Config
from switchover.pipeline.inventory import features, job
from switchover.pipeline.inventory.waves import glue, pack
from switchover.pipeline.outcome import Progress
from switchover.pipeline.session import session
from switchover.pipeline.store import Manifest, Store
from switchover.pipeline.tables import COMMITS, ENDS, GROUPS, OWNERSHIP, TOPICS

CLUSTER, TEAM, PARTITIONS, CAPTURES, HOUR = "fleet", 4, 6, 3, 3_600_000
GLUE = "topic-0"
SQL = """
    WITH c AS (SELECT "group", topic, partition, arg_max("offset", log_offset) AS o1, arg_min("offset", log_offset) AS o0,
                      arg_max(commit_time, log_offset) AS t1, min(commit_time) AS t0, count(*) AS n
               FROM read_parquet($commits) GROUP BY ALL),
         e AS (SELECT topic, partition, arg_max("end", time) AS e1, arg_min("end", time) AS e0,
                      max(time) - min(time) AS span, arg_max("start", time) AS s1
               FROM read_parquet($ends) GROUP BY ALL)
    SELECT count(*), sum(lag)::BIGINT FROM (
        SELECT "group", sum(greatest(e1 - o1, 0)) AS lag, count(*), list(DISTINCT topic),
               sum(((e1 - e0) / span - (o1 - o0) / nullif(t1 - t0, 0)) * 3600000),
               min((o1 - s1) / (e1 - s1)), avg((t1 - t0) / nullif(n - 1, 0)), max(t1)
        FROM c JOIN e USING (topic, partition) GROUP BY ALL)"""


def fill(root: Path, groups: int, topics: int) -> None:
    """The captures, in a process of its own."""
    store, now = Store(root, CLUSTER), int(time.time() * 1000)
    group, topic, partition = (pa.array(column) for column in zip(*_read(groups, topics), strict=True))
    rows = len(group)
    for number in range(CAPTURES):
        then = now - (CAPTURES - 1 - number) * HOUR
        offset = 1_000_000 * (number + 1) - np.random.default_rng(number).integers(0, 100_000, rows)
        commits = pa.table({
            "group": group, "topic": topic, "partition": partition.cast(pa.int32()), "offset": offset,
            "leader_epoch": np.zeros(rows, np.int32), "commit_time": np.full(rows, then),
            "record_time": np.full(rows, then), "version": np.full(rows, 3, np.int16),
            "topic_id": pa.nulls(rows, pa.string()), "log_partition": np.zeros(rows, np.int32),
            "log_offset": np.arange(rows) + number * rows}).cast(COMMITS)
        places = topics * PARTITIONS
        ends = pa.table({
            "topic": [f"topic-{index}" for index in range(topics) for _ in range(PARTITIONS)],
            "partition": np.tile(np.arange(PARTITIONS, dtype=np.int32), topics), "start": np.zeros(places, np.int64),
            "end": np.full(places, 1_000_000 * (number + 1)), "time": np.full(places, then)}).cast(ENDS)
        described = pa.Table.from_pylist(
            [{"group": f"group-{index}", "type": "Classic", "state": "Stable",
              "assignor": "range", "coordinator": 0, "members": [{"member": "m", "assigned": []}], "time": then}
             for index in range(groups)], GROUPS)
        records = pa.Table.from_pylist(
            [{"group": f"group-{index}", "record": "ClassicGroup", "time": then, "epoch": number, "tombstone": False,
              "protocol_type": "consumer", "protocol": "range", "log_partition": 0, "log_offset": index + number * groups}
             for index in range(groups)], OWNERSHIP)
        known = pa.Table.from_pylist(
            [{"topic": f"topic-{index}", "topic_id": f"{index:032x}", "partitions": PARTITIONS, "internal": False,
              "cleanup_policy": "delete", "time": then} for index in range(topics)], TOPICS)
        files = tuple(store.file(f"run-{number}", table, 0, then, each) for table, each in (
            ("commits", commits), ("ends", ends), ("groups", described), ("ownership", records), ("topics", known)))
        store.commit(Manifest(number, f"run-{number}", then, then, files=files))
    print(f"{groups:,} groups, {topics:,} topics, {rows * CAPTURES:,} commits, "
          f"{sum(path.stat().st_size for path in root.rglob('*.parquet')) >> 20} MiB", flush=True)


def _read(groups: int, topics: int) -> Iterator[tuple[str, str, int]]:
    """What is consumed: group, topic, partition."""
    for index in range(groups):
        team = index % (topics // TEAM)
        own = {f"topic-{team * TEAM + (index // 7 + each) % TEAM}" for each in range(1 + index % 3)}
        for topic in sorted(own | ({GLUE} if index % 50 == 0 else set())):
            for partition in range(PARTITIONS):
                yield f"group-{index}", topic, partition


def by_duckdb(root: Path, cores: int) -> None:
    """Lag, its growth, head-room, topics and intervals of each group: no members, no ZooKeeper, no readiness, no waves."""
    os.sched_setaffinity(0, range(cores))
    store = Store(root, CLUSTER)
    with measured() as cost, duckdb.connect(config={"threads": cores}) as connection:
        connection.execute("SET enable_progress_bar = false")
        found = connection.execute(SQL, {table: store.files(table) for table in ("commits", "ends")}).fetchall()[0]
    print(f"{'DuckDB, offsets alone':28} {cost} {found}", flush=True)


def by_spark(root: Path, cores: int) -> None:
    os.sched_setaffinity(0, range(cores))
    config = Config.model_validate({
        "cluster": CLUSTER, "store": root, "kafka": {"bootstrapServers": "kafka:9092"},
        "spark": {"master": f"local[{cores}]", "memory": "2g"},
        "inventory": {"cut_topics": (GLUE,), "workloads": ({
            "groups": "*", "name": "{group}", "container": "app",
            "template": {"env": [{"name": "GROUP_PROTOCOL", "value": "consumer"}]}},)}})
    with measured() as cost:
        spark = session(config.spark, "measure")
    print(f"{'Spark starts':28} {cost}", flush=True)
    for again in ("", ", again"):
        with measured() as cost:
            groups = features.collect(spark, Store(root, CLUSTER))
        found = len(groups), sum(group.lag or 0 for group in groups)
        print(f"{'Spark, every group' + again:28} {cost} {found}", flush=True)
    scores = {group.name: 100 for group in groups}
    with measured() as cost:
        waves = pack(groups, scores, 20, 2000)
    print(f"{'waves':28} {cost} {len(waves)} of at most {max(len(wave.groups) for wave in waves)} groups", flush=True)
    with measured() as cost:
        held = glue({group.name: group.topics for group in groups})
    print(f"{'what holds them together':28} {cost} {held}", flush=True)
    with measured() as cost:
        outcome = job.run(config, Progress())
    print(f"{'the whole job, warm':28} {cost} {outcome.summary}", flush=True)
    assert outcome.summary["ready"] == len(groups)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--topics", type=int, default=20_000)
    parser.add_argument("--cores", type=int, action="append", help="once for each to be measured; 2")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        apart(fill, Path(name), chosen.groups, chosen.topics)
        for cores in chosen.cores or [2]:
            print(f"{cores} cores, load {psutil.getloadavg()[0]:.1f}", flush=True)
            apart(by_duckdb, Path(name), cores)
            apart(by_spark, Path(name), cores)


if __name__ == "__main__":
    main()
