"""What a parity check costs on a large cluster.

    python -m measure_parity 1000 10000

The tree stands in a real ZooKeeper, written by a process of its own; the log is made of the same metadata, encoded as Kafka
does. The states of partitions are not written, because the check does not read them.
"""

import asyncio
import contextlib
import os
import pickle
import sys
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from kazoo.client import KazooClient
from kio.records.schema import NewRecordBatch
from kio.records.schema import Record as LogRecord
from kio.records.writers import write_new_batch
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v13 import FetchRequest, FetchResponse
from kio.schema.fetch.v13 import response as fetch_v13
from kio.schema.types import BrokerId
from kio.static.primitive import Records, TZAwareMicros, i8, i16, i32, i32Timedelta, i64

from adapters.servers import ZooKeeperServer
from fakes.metadata_sides import nodes_of, records_of
from switchover.kafka.client.connection import Connection
from switchover.kafka.client.metadata_log import MAX_BYTES, MetadataLog
from switchover.metadata.cluster import Acl, Assignment, ClusterMetadata, Resource, Topic
from switchover.metadata.parity import TreeReading, compare
from switchover.metadata.schema import RECORDS
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.zookeeper.client.zookeeper import KazooZooKeeper
from unit.test_metadata_decode import record_bytes

BROKERS = 12
PARTITIONS = 30
BATCH = 200                         # records of a batch, as the copy of the migration writes them
TYPES = {schema.name: type_id for type_id, schema in RECORDS.items()}
HERE = Address("log", 1)


def cluster(topics: int) -> ClusterMetadata:
    """Every third topic with two settings; 500 ACLs, 200 users with a quota."""
    def assigned(number: int) -> Assignment:
        return Assignment(tuple((number + i) % BROKERS + 1 for i in range(3)))

    return ClusterMetadata(
        topics={f"topic-{n:05}": Topic(urlsafe_b64encode(UUID(int=n + 10).bytes).decode().rstrip("="),
                                       {p: assigned(n + p) for p in range(PARTITIONS)}) for n in range(topics)},
        configs={Resource("topic", f"topic-{n:05}"): {"retention.ms": str(n), "cleanup.policy": "delete"}
                 for n in range(0, topics, 3)},
        quotas={(("user", f"user-{n}"),): {"producer_byte_rate": float(n)} for n in range(200)},
        acls=frozenset(Acl(f"User:user-{n}", "*", "Allow", "Read", "Topic", "literal", f"topic-{n:05}") for n in range(500)),
        next_producer_id=1000,
    )


# --- the two sides ------------------------------------------------------------------------------------------------------


def write_tree(address: str, metadata: ClusterMetadata) -> None:
    client = KazooClient(address)
    client.start()
    nodes = {"/migration": b'{"kraft_controller_id":1,"kraft_metadata_offset":1000000000,"kraft_metadata_epoch":1}',
             "/cluster/id": b'{"version":"1","id":"hereClusterAAAAAAAAAAA"}', **nodes_of(metadata)}
    for parent in sorted({path.rpartition("/")[0] for path in nodes} - {""}):
        client.ensure_path(parent)
    waiting = list(nodes.items())
    for start in range(0, len(waiting), 1000):
        for result in [client.create_async(path, data) for path, data in waiting[start:start + 1000]]:
            result.get()
    client.stop()


def log_of(metadata: ClusterMetadata) -> list[bytes]:
    """The log as the copy leaves it: one transaction, in batches."""
    begin = [record_bytes(21, 0, RECORDS[21].fields, {"zk_migration_state": 1}),
             record_bytes(23, 0, RECORDS[23].fields, {"name": "ZK Migration"})]
    values = begin + [record_bytes(TYPES[item.type], 0, RECORDS[TYPES[item.type]].fields, item.fields)
                      for item in records_of(metadata)] + [record_bytes(24, 0, RECORDS[24].fields, {})]
    return [_batch(start, values[start:start + BATCH]) for start in range(0, len(values), BATCH)]


def _batch(offset: int, values: list[bytes]) -> bytes:
    at = TZAwareMicros.parse(datetime(2026, 11, 21, tzinfo=UTC))
    with BytesIO() as out:
        write_new_batch(out, NewRecordBatch(
            producer_id=i64(-1), producer_epoch=i16(-1), base_sequence=i32(-1), attributes=i16(0),
            partition_leader_epoch=i32(1), records=tuple(
                LogRecord(attributes=i8(0), timestamp=at, offset=i64(offset + index), key=None, value=value, headers=())
                for index, value in enumerate(values))))
        return out.getvalue()


@dataclass
class Leader:
    """A connection to a leader that has this log; batches of `BATCH` records, so an offset names its batch."""

    batches: list[bytes]
    end: int

    async def ask(self, request: FetchRequest, _: object) -> FetchResponse:
        wanted = request.topics[0].partitions[0].fetch_offset
        found, size = [], 0
        for data in self.batches[wanted // BATCH:]:
            if size + len(data) > MAX_BYTES:
                break
            found.append(data)
            size += len(data)
        nowhere = fetch_v13.SnapshotId(end_offset=i64(-1), epoch=i32(-1))
        return FetchResponse(
            throttle_time=i32Timedelta.parse(timedelta()), error_code=ErrorCode.none, session_id=i32(0),
            responses=(fetch_v13.FetchableTopicResponse(topic_id=UUID(int=1), partitions=(fetch_v13.PartitionData(
                partition_index=i32(0), error_code=ErrorCode.none, high_watermark=i64(self.end),
                last_stable_offset=i64(-1), log_start_offset=i64(0),
                diverging_epoch=fetch_v13.EpochEndOffset(epoch=i32(-1), end_offset=i64(-1)),
                current_leader=fetch_v13.LeaderIdAndEpoch(leader_id=BrokerId(-1), leader_epoch=i32(-1)),
                snapshot_id=nowhere, aborted_transactions=None, preferred_read_replica=BrokerId(-1),
                records=cast(Records, b"".join(found))),)),))


# --- measuring ----------------------------------------------------------------------------------------------------------


def resident() -> float:
    """MiB of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass
class Stall:
    """The longest time in which the event loop ran nobody else."""

    longest: float = 0.0


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[Stall]:
    stall = Stall()

    async def tick() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            stall.longest = max(stall.longest, time.perf_counter() - before)

    task = asyncio.create_task(tick())
    yield stall
    task.cancel()


def told(what: str, seconds: float, stall: Stall | None = None, more: str = "") -> None:
    blocked = f", event loop blocked {stall.longest * 1000:.0f} ms at most" if stall is not None else ""
    print(f"  {what}: {seconds:.2f} s{blocked}{more}", flush=True)


def write(topics: int, zookeeper: str, file: str) -> None:
    """Both sides, in a process whose memory is not counted."""
    metadata = cluster(topics)
    write_tree(zookeeper, metadata)
    Path(file).write_bytes(pickle.dumps(log_of(metadata)))


async def measure(server: ZooKeeperServer, topics: int) -> None:
    file = server.directory / "log"
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "measure_parity", "write", str(topics), str(server.address), str(file))
    assert await writer.wait() == 0
    batches: list[bytes] = pickle.loads(file.read_bytes())
    print(f"{topics} topics × {PARTITIONS} partitions: {_records(batches)} records, "
          f"{sum(map(len, batches)) / 2**20:.0f} MiB of log, load {os.getloadavg()[0]:.1f}", flush=True)
    base = resident()

    log, connection = MetadataLog(), cast(Connection, Leader(batches, _records(batches)))
    started, used = time.perf_counter(), time.process_time()
    async with watched() as stall:
        image = await log.follow(HERE, connection, 1)
    took, busy = time.perf_counter() - started, time.process_time() - used
    told("the whole log, once", took, stall, f", {busy:.2f} s of CPU, +{resident() - base:.0f} MiB")
    started = time.perf_counter()
    await log.follow(HERE, connection, 1)
    told("the log, when nothing is new", time.perf_counter() - started)

    zookeeper, base = KazooZooKeeper(Access(str(server.address))), resident()
    readings: list[TreeReading] = []
    for what in ("the tree, first reading", "the tree, unchanged"):
        started, used = time.perf_counter(), time.process_time()
        async with watched() as stall:
            readings.append(await zookeeper.metadata(None))
        took, busy = time.perf_counter() - started, time.process_time() - used
        told(what, took, stall, f", {readings[-1].reads} reads, {busy:.2f} s of CPU, +{resident() - base:.0f} MiB")
    asked = time.perf_counter()
    reading = asyncio.create_task(zookeeper.metadata(None))
    slowest = 0.0
    while not reading.done():
        asked = time.perf_counter()
        await zookeeper.state()
        slowest = max(slowest, time.perf_counter() - asked)
    told("the slowest other question to ZooKeeper meanwhile", slowest)

    started = time.perf_counter()
    last = compare(None, readings[1], image)
    told("the comparison, equal", time.perf_counter() - started, None, f", {len(last.since)} differences")
    assert len(image.metadata.topics) == topics
    assert last.parity.proven
    changed = dict(image.metadata.topics)
    del changed["topic-00007"]
    tree = replace(readings[1], metadata=replace(readings[1].metadata, topics=changed))
    started = time.perf_counter()
    last = compare(compare(last, tree, image), tree, image)
    told("two comparisons, one difference", time.perf_counter() - started, None, f": {last.parity.differences[0]}")
    await zookeeper.close()


def _records(batches: list[bytes]) -> int:
    return (len(batches) - 1) * BATCH + int.from_bytes(batches[-1][57:61])       # the count stands at the end of the head


@contextlib.contextmanager
def zookeeper_server() -> Iterator[ZooKeeperServer]:
    with tempfile.TemporaryDirectory() as directory:
        server = ZooKeeperServer(Path(directory) / "zookeeper")
        server.heap = "512m"
        server.start(server.properties())
        try:
            yield server
        finally:
            server.kill()


def main(*sizes: Any) -> None:
    for size in sizes or (1000, 10_000):
        with zookeeper_server() as server:
            asyncio.run(measure(server, int(size)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(int(sys.argv[2]), *sys.argv[3:])
    else:
        main(*sys.argv[1:])
