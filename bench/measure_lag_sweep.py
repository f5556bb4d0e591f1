"""What one sweep over many consumer groups costs, on one real broker of Kafka 3.9.

    python -m measure_lag_sweep 200 50

Each group has committed to one topic of 50 partitions, ten groups to the same. WireOffsets with the verdicts.
"""

import asyncio
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from adapters.clusters import kafka_cluster
from switchover.answers.clock import WallClock
from switchover.kafka.client.connection import Connection
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.client.offsets import WireOffsets
from switchover.lag.collector import LagCollector
from switchover.lag.group import Membership, group_of
from switchover.lag.thresholds import Thresholds
from switchover.lag.window import Asked
from switchover.network.credentials import Access

SWEEPS = 11
SHARED = 10                 # groups that read the same topic


def fill(servers: str, groups: int, partitions: int) -> list[str]:
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [f"topic-{number}" for number in range(-(-groups // SHARED))]
    for future in admin.create_topics([NewTopic(topic, partitions, 1) for topic in topics], request_timeout=300).values():
        future.result()
    names = [f"group-{number}" for number in range(groups)]
    committed = []
    for number, name in enumerate(names):
        offsets = [TopicPartition(topics[number // SHARED], partition, 0) for partition in range(partitions)]
        committed += admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(name, offsets)],
                                                        request_timeout=300).values()
    for future in committed:
        future.result()
    return names


def threads_and_memory() -> str:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return f"{status['Threads'].strip()} threads, {int(status['VmRSS'].split()[0]) // 1024} MiB"


async def timed(name: str, work: Callable[[], Awaitable[object]]) -> None:
    """The first time, and the median of the others."""
    walls, cpus = [], []
    for _ in range(SWEEPS):
        wall, cpu = time.perf_counter(), time.process_time()
        await work()
        walls.append(1000 * (time.perf_counter() - wall))
        cpus.append(1000 * (time.process_time() - cpu))
    wall, cpu = statistics.median(walls[1:]), statistics.median(cpus[1:])
    print(f"{name}: first {walls[0]:.0f} ms (CPU {cpus[0]:.0f}), then {wall:.0f} (CPU {cpu:.0f}), "
          f"at most {max(walls[1:]):.0f}; {threads_and_memory()}; load {os.getloadavg()[0]:.1f}", flush=True)


async def measure(servers: str, names: list[str], partitions: int) -> None:
    print(f"{len(names)} groups of {partitions} partitions; before: {threads_and_memory()}", flush=True)
    sent: list[int] = []
    exchange = Connection.exchange

    async def counted(self: Connection, request: object) -> bytes:
        answer = await exchange(self, request)      # type: ignore[arg-type]
        sent.append(len(answer))
        return answer

    offsets = WireOffsets(Access(servers))
    asked = {name: Asked() for name in names}
    Connection.exchange = counted                   # type: ignore[method-assign, assignment]
    found = await offsets.sweep(asked)
    Connection.exchange = exchange                  # type: ignore[method-assign]
    assert all(len(reading.offsets) == partitions for reading in found.readings.values())
    print(f"requests of a sweep: {len(sent)}, answers {sum(sent) / 1024:.0f} KiB", flush=True)
    await timed("sweep over the wire", lambda: offsets.sweep(asked))

    collector = LagCollector(offsets, WallClock(), Thresholds())

    async def poll() -> None:
        sweep = await collector.sweep(asked)
        for name in names:
            reading = sweep.readings[name]
            collector.assess(name, group_of(Membership("Empty", {}), sweep.partitions, reading.committed))

    await timed("sweep and verdicts", poll)

    sent.clear()
    memberships = WireGroups(Access(servers), seconds=60)
    Connection.exchange = counted                   # type: ignore[method-assign, assignment]
    await memberships.memberships(await memberships.groups())
    Connection.exchange = exchange                  # type: ignore[method-assign]
    print(f"requests for the members of all groups: {len(sent)}, answers {sum(sent) / 1024:.0f} KiB", flush=True)
    await timed("members of all groups", lambda: memberships.memberships(names))


def main(groups: str = "200", partitions: str = "50") -> None:
    with tempfile.TemporaryDirectory() as directory, kafka_cluster(Path(directory)) as cluster:
        cluster.start_zookeeper_mode()
        asyncio.run(measure(cluster.bootstrap, fill(cluster.bootstrap, int(groups), int(partitions)), int(partitions)))
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main(*sys.argv[1:])
