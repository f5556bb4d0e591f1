"""What a capture of many offset commits costs, end to end, from one real broker of Kafka 4.4.

    python -m measure_capture 2000000

The commits go through the real coordinator: a thousand groups, 50 partitions in each commit, 50 partitions of
`__consumer_offsets`. Then, in one session: a capture into an empty store by 2 tasks (cold), again (warm), by 1, by 4, and
one that finds nothing new. CPU and memory are of this process, the JVM and the Python workers, without the broker.
"""

import os
import sys
import tempfile
import time
from collections import deque
from concurrent.futures import Future
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from adapters.clusters import KRaftNode, node
from meter import Cost, measured
from switchover.pipeline.capture.job import Capture
from switchover.pipeline.capture.plan import TOPIC as OFFSETS
from switchover.pipeline.config import Config, Spark
from switchover.pipeline.outcome import Progress
from switchover.pipeline.session import session

GROUPS, PARTITIONS = 1_000, 50
UNDER_WAY = 64


def fill(servers: str, records: int) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic("orders", PARTITIONS, 1)])["orders"].result(60)

    def commit(number: int) -> "Future[object]":
        places = [TopicPartition("orders", partition, number) for partition in range(PARTITIONS)]
        asked = [ConsumerGroupTopicPartitions(f"group-{number % GROUPS}", places)]
        (future,) = admin.alter_consumer_group_offsets(asked, request_timeout=30).values()
        return future

    while OFFSETS not in (admin.list_topics(timeout=60)).topics:        # made for whoever asks for a coordinator first
        admin.describe_consumer_groups(["group-0"], request_timeout=5)["group-0"].exception()
    while commit(0).exception() is not None:                            # its coordinators are not there at once
        time.sleep(0.5)
    waiting: deque[Future[object]] = deque()
    for number in range(1, -(-records // PARTITIONS)):
        waiting.append(commit(number))
        if len(waiting) >= UNDER_WAY:
            waiting.popleft().result()
    for future in waiting:
        future.result()


def measure(broker: KRaftNode, spark: SparkSession, directory: Path, records: int) -> None:
    for what, splits in (("cold, 2 tasks", 2), ("warm, 2 tasks", 2), ("1 task", 1), ("4 tasks", 4)):
        store = directory / what
        config = Config.model_validate({"cluster": "m", "store": store, "capture": {"splits": splits},
                                        "kafka": {"bootstrapServers": str(broker.address)}})
        with measured(broker.pid) as cost:
            manifest = Capture(config, spark, Progress()).once()
        files = [file for file in manifest.files if file.table == "commits"]
        rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
        assert rows == records, f"{rows} commits were filed of {records}"
        tell(what, cost)
        print(f"  {records / cost.wall:,.0f} records/s, {records / cost.cpu:,.0f} records per CPU-s; "
              f"{size / records:.1f} bytes a commit in {len(files)} files", flush=True)
    with measured(broker.pid) as cost:
        Capture(config, spark, Progress()).once()
    tell("nothing new", cost)


def tell(what: str, cost: Cost) -> None:
    print(f"{what:14} {cost}; load {os.getloadavg()[0]:.1f}", flush=True)


def main(records: str = "2000000") -> None:
    wanted = -(-int(records) // PARTITIONS) * PARTITIONS
    with tempfile.TemporaryDirectory() as directory, node(Path(directory) / "kafka", "4.4") as broker:
        broker.begin(f"offsets.topic.num.partitions={PARTITIONS}\n")
        began = time.perf_counter()
        fill(str(broker.address), wanted)
        print(f"{wanted} commits by {GROUPS} groups in {time.perf_counter() - began:.0f} s", flush=True)
        with measured(broker.pid) as cost:
            spark = session(Spark(), "measure")
        tell("Spark's start", cost)
        measure(broker, spark, Path(directory), wanted)
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
