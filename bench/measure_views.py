"""What brokers' Metadata of a large cluster costs a pass: it is read, and gates judge it, while others take their turns.

    python -m measure_views 100 5000 40

Brokers, topics, and partitions of a topic, with three replicas each. Another process answers for all brokers on loopback.
In `rolling` another broker is out of sync in each pass, so that three in a hundred partitions change twice.
"""

import asyncio
import contextlib
import io
import multiprocessing
import resource
import statistics
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from kio.schema.api_versions.v3.response import ApiVersion, ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v13 import FetchRequest, FetchResponse
from kio.schema.fetch.v13.response import FetchableTopicResponse, PartitionData
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32, i32Timedelta, i64

from fakes.views import metadata_answer
from switchover.answers import memory
from switchover.answers.clock import WallClock
from switchover.answers.observed import Known, Observed, Unknown
from switchover.cluster import figures
from switchover.cluster.observe.brokers import Views
from switchover.cluster.observe.preflight import Examiner
from switchover.cluster.picture import Picture
from switchover.kafka.client.nodes import KafkaWire
from switchover.kafka.node import BrokerView, Partition
from switchover.metadata.parity import MigrationState
from switchover.network.addresses import Address
from switchover.runtime import garbage
from unit.kraft_gates import GATES
from unit.pictures import NOW, Mode, moment

PASSES = 20
FETCH, METADATA, VERSIONS = 1, 3, 18
LIMIT = 512 * memory.MIB
"""Of the operator's container."""
NO_TIME = i32Timedelta.parse(timedelta())


def answer(ports: dict[int, int], topics: int, partitions: int, out: int | None) -> bytes:
    """Metadata v10 with its header; broker `out` is in sync with nobody."""
    def partition(topic: int, index: int) -> Partition:
        replicas = tuple((7 * topic + 3 * index + k) % len(ports) for k in range(3))
        isr = tuple(each for each in replicas if each != out)
        return Partition(f"topic-of-some-team-{topic:05}", index, isr[0], replicas, isr)

    return b"\0" + metadata_answer({each: Address("127.0.0.1", port) for each, port in ports.items()}, (
        partition(topic, index) for topic in range(topics) for index in range(partitions)))


def written(entity: Any, header: bytes = b"\0") -> bytes:
    with io.BytesIO() as into:
        entity_writer(type(entity))(into, entity)
        return header + into.getvalue()


def fetched(request: bytes) -> bytes:
    """Each log has the id by which it is asked for, and ends before that offset."""
    asked, _ = entity_reader(FetchRequest)(request, 11 + int.from_bytes(request[8:10]))
    return written(FetchResponse(throttle_time=NO_TIME, error_code=ErrorCode.none, session_id=i32(0), responses=tuple(
        FetchableTopicResponse(topic_id=topic.topic_id, partitions=tuple(
            PartitionData(partition_index=each.partition, error_code=ErrorCode.offset_out_of_range, high_watermark=i64(-1),
                          aborted_transactions=None, records=None) for each in topic.partitions))
        for topic in asked.topics)))


def serve(pipe: Any, brokers: int, topics: int, partitions: int) -> None:
    """All brokers. Which answer of three is told now comes through the pipe."""
    async def run() -> None:
        now = 0

        def metadata(request: bytes) -> bytes:
            return told[now] if request[-5] == 0 else brief             # null where all topics are asked for, else 1

        def nonsense(request: bytes) -> bytes:
            return brief

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    request = await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])
                    answer_to = {FETCH: fetched, METADATA: metadata, VERSIONS: lambda _: versions}.get(request[1], nonsense)
                    body = answer_to(request)
                    writer.write(struct.pack(">i", len(body) + 4) + request[4:8] + body)
                    await writer.drain()

        servers = [await asyncio.start_server(talk, "127.0.0.1", 0) for _ in range(brokers)]
        ports = {number: server.sockets[0].getsockname()[1] for number, server in enumerate(servers)}
        versions = written(ApiVersionsResponse(error_code=ErrorCode.none, throttle_time=NO_TIME, api_keys=(
            ApiVersion(api_key=i16(FETCH), min_version=i16(0), max_version=i16(13)),)), b"")
        brief, told = answer(ports, 0, 0, None), [answer(ports, topics, partitions, out) for out in (None, 5, 6)]
        pipe.send((ports, len(told[0])))
        while (order := await asyncio.get_running_loop().run_in_executor(None, pipe.recv)) is not None:
            now = order

    asyncio.run(run())


def gates(views: dict[int, Observed[BrokerView]]) -> Callable[[], None]:
    """What the gates make of these views, with kafka-0 in the batch."""
    asked = [view for view in views.values() if isinstance(view, Known) and hasattr(view.value, "topics")]
    minima = Known(dict.fromkeys(asked[0].value.topics, 1), NOW)

    def with_views(picture: Picture) -> Picture:
        return replace(picture, facts=replace(picture.facts, views=dict(enumerate(asked)), min_insync=minima))

    moving = with_views(moment("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER,
                               ("kafka-0",), MigrationState.MIGRATION))
    beginning = with_views(moment("Preflight"))

    def judge() -> None:
        for name, picture in (("RestartIsSafe", moving), ("AllInSync", moving), ("Health", beginning)):
            GATES[name].check(picture)
        figures.digest(moving)

    return judge


async def measure(pipe: Any, addresses: dict[int, Address | None]) -> None:
    stood: list[float] = []

    async def others() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            stood.append(time.monotonic() - before - 0.01)

    beside = asyncio.create_task(others())
    client, views = KafkaWire({}), Views(WallClock())
    for what in ("first", "still", "rolling"):
        took, judged = [], []
        for number in range(1 if what == "first" else PASSES):
            pipe.send(number % 3 if what == "rolling" else 0)
            begun = time.monotonic()
            found = await views.look(client, addresses, ())
            while silent := sum(isinstance(view, Unknown) for view in found.values()):
                print(f"{what}: {silent} are not read within their time; what was read is not read again")
                found = await views.look(client, addresses, ())
            took.append(time.monotonic() - begun)
            begun = time.process_time()
            await asyncio.to_thread(gates(found))
            judged.append(time.process_time() - begun)
        print(f"{what}: read in {statistics.median(took):.2f} s, {max(took):.2f} at most; judged in"
              f" {statistics.median(judged):.2f} s, {max(judged):.2f} at most; the loop stood {max(stood):.3f} s at most;"
              f" {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")
        stood.clear()
    stood.clear()
    used, begun = time.process_time(), time.monotonic()
    ids = await Examiner(cast(Any, None), client, cast(Any, None), WallClock())._all_topic_ids(addresses)
    silent = sum(isinstance(each, Unknown) for each in ids.values())
    print(f"topic ids of {len(ids) - silent} brokers, {silent} do not tell theirs: {time.monotonic() - begun:.1f} s,"
          f" {time.process_time() - used:.1f} of the processor; the loop stood {max(stood):.3f} s at most;"
          f" {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")
    beside.cancel()
    pipe.send(None)


if __name__ == "__main__":
    ours, theirs = multiprocessing.Pipe()
    served = multiprocessing.Process(target=serve, args=(theirs, *map(int, sys.argv[1:])), daemon=True)
    served.start()
    ports, size = ours.recv()
    print(f"{len(ports)} brokers, {size / 1e6:.1f} MB of each that is asked for partitions")
    garbage.look_seldom()
    memory.room = lambda: LIMIT - memory.AT_REST
    asyncio.run(measure(ours, {number: Address("127.0.0.1", port) for number, port in ports.items()}))
    served.join()
