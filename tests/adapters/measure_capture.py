"""What a capture of many offset commits costs, end to end, from one real broker of Kafka 4.4.

    PYTHONPATH=operator:tests .venv/bin/python -m adapters.measure_capture 2000000

The commits go through the real coordinator: a thousand groups, 50 partitions in each commit, 50 partitions of
`__consumer_offsets`. Then, in one session: a capture into an empty store by 2 tasks (cold), again (warm), by 1, by 4, and
one that finds nothing new. CPU and memory are of this process, the JVM and the Python workers, without the broker.
"""

import contextlib
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from adapters.clusters import KRaftNode, node
from switchover.pipeline.capture.job import Capture
from switchover.pipeline.capture.plan import TOPIC as OFFSETS
from switchover.pipeline.config import Config, Spark
from switchover.pipeline.progress import Progress
from switchover.pipeline.session import session

GROUPS, PARTITIONS = 1_000, 50
UNDER_WAY = 64
TICKS = os.sysconf("SC_CLK_TCK")


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


class Meter:
    """CPU seconds and memory of this process and those that it started, but for one."""

    def __init__(self, without: int) -> None:
        self._without = without
        self._cpu: dict[int, float] = {}
        self._peak = 0

    def sample(self) -> None:
        parents = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                parents[int(stat.parent.name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS
        mine, memory = {os.getpid()}, 0
        for _ in range(8):                          # deeper than any tree of ours
            mine |= {pid for pid, (parent, _) in parents.items() if parent in mine and pid != self._without}
        for pid in mine & parents.keys():
            self._cpu[pid] = parents[pid][1]
            with contextlib.suppress(OSError):      # shared pages count once
                told = Path(f"/proc/{pid}/smaps_rollup").read_text()
                memory += next(int(line.split()[1]) for line in told.splitlines() if line.startswith("Pss:"))
        self._peak = max(self._peak, memory // 1024)

    @contextlib.contextmanager
    def of(self, what: str, records: int) -> Iterator[None]:
        self.sample()
        self._peak, cpu, wall, ended = 0, sum(self._cpu.values()), time.perf_counter(), threading.Event()

        def watch() -> None:
            while not ended.wait(0.3):
                self.sample()

        thread = threading.Thread(target=watch)
        thread.start()
        yield
        wall = time.perf_counter() - wall
        ended.set()
        thread.join()
        self.sample()
        cpu = sum(self._cpu.values()) - cpu
        rate = f"{records / wall:,.0f} records/s, {records / cpu:,.0f} records per CPU-s; " if records else ""
        print(f"{what}: {wall:.1f} s, {cpu:.1f} CPU-s; {rate}at most {self._peak} MiB; load {os.getloadavg()[0]:.1f}",
              flush=True)


def measure(broker: KRaftNode, spark: SparkSession, meter: Meter, directory: Path, records: int) -> None:
    for what, splits in (("cold, 2 tasks", 2), ("warm, 2 tasks", 2), ("1 task", 1), ("4 tasks", 4)):
        store = directory / what
        config = Config.model_validate({"cluster": "m", "store": store, "capture": {"splits": splits},
                                        "kafka": {"bootstrapServers": str(broker.address)}})
        with meter.of(what, records):
            manifest = Capture(config, spark, Progress()).once()
        rows = sum(file.rows for file in manifest.files if file.table == "commits")
        assert rows == records, f"{rows} commits were filed of {records}"
        print(f"  {sum(file.bytes for file in manifest.files) / records:.1f} bytes a commit in "
              f"{sum(file.table == 'commits' for file in manifest.files)} files", flush=True)
    with meter.of("nothing new", 0):
        Capture(config, spark, Progress()).once()


def main(records: str = "2000000") -> None:
    wanted = -(-int(records) // PARTITIONS) * PARTITIONS
    with tempfile.TemporaryDirectory() as directory, node(Path(directory) / "kafka", "4.4") as broker:
        broker.begin(f"offsets.topic.num.partitions={PARTITIONS}\n")
        began = time.perf_counter()
        fill(str(broker.address), wanted)
        print(f"{wanted} commits by {GROUPS} groups in {time.perf_counter() - began:.0f} s", flush=True)
        meter = Meter(broker.pid)
        with meter.of("Spark's start", 0):
            spark = session(Spark(), "measure")
        measure(broker, spark, meter, Path(directory), wanted)
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
