"""`switchover lag` beside Burrow and kminion on one real broker of Kafka 3.9: what each costs, and when it tells of a fault.

    BURROW=…/burrow KMINION=…/kminion python -m measure_lag_tools 200 50

So many groups of so many partitions, ten groups to a topic, a record a second for each partition, and a commit of each group
every 10 s; beside them a group of one partition, of 100 records a second, for each fault. Burrow looks at ends every 10 s,
kminion is scraped every 15 s (its Admin API, partitions), ours has its defaults. Each asks through a proxy that counts. CALM
seconds are counted, once all have looked; then the faults begin, and for TROUBLE seconds it is noted what each says of them.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.offset_commit.v8.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_commit.v8.response import OffsetCommitResponse
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i64

from adapters.clusters import KafkaCluster, kafka_cluster
from adapters.processor import cpu_seconds
from apiserver.processes import port
from measure_coordinator import memory
from switchover.kafka.client.connection import connected
from switchover.kafka.client.coordinator import find_coordinators
from switchover.network.credentials import Access
from switchover.network.security import security

SHARED = 10                 # groups that read the same topic
FAST = 100                  # records a second of a topic with a fault
COMMIT_SECONDS, SCRAPE_SECONDS, LEARN_SECONDS = 10.0, 15.0, 150.0
CALM, TROUBLE = float(os.environ.get("CALM", "120")), float(os.environ.get("TROUBLE", "300"))
TOOLS = ("burrow", "kminion", "switchover")
FAULTS = {
    "stops": "it commits no more",
    "stalls": "it commits the same offset again and again",
    "leaks": "it gets 70 % of the records",
    "rewinds": "it goes back by 10,000 records, and goes on from there",
    "loses": "records are deleted before it has read them",
}


class Proxy:
    """In front of a listener of its own for each tool: requests by their key, and bytes of the answers."""

    def __init__(self, host: str) -> None:
        self.asked: dict[str, Counter[int]] = {tool: Counter() for tool in TOOLS}
        self.answered: Counter[str] = Counter()
        self.outer = {tool: (host, port()) for tool in TOOLS}
        self.inner = {tool: (host, port()) for tool in TOOLS}

    def properties(self, plain: str) -> str:
        """Of the broker: each tool is told the proxy's address."""
        def listeners(addresses: Mapping[str, tuple[str, int]]) -> str:
            return ",".join([f"PLAINTEXT://{plain}", *(f"{tool.upper()}://{host}:{number}"
                                                       for tool, (host, number) in addresses.items())])

        protocols = ",".join(f"{name}:PLAINTEXT" for name in ("PLAINTEXT", *(tool.upper() for tool in TOOLS)))
        return (f"listeners={listeners(self.inner)}\nadvertised.listeners={listeners(self.outer)}\n"
                f"listener.security.protocol.map={protocols}\nauto.create.topics.enable=false\n")

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        servers = [await asyncio.start_server(lambda *ends, tool=tool: self._serve(tool, *ends), *self.outer[tool])
                   for tool in TOOLS]
        try:
            yield
        finally:
            for server in servers:
                server.close()

    async def _serve(self, tool: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self.inner[tool])
        both = [asyncio.create_task(self._requests(tool, reader, back)),
                asyncio.create_task(self._answers(tool, there, writer))]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        back.close()
        writer.close()

    async def _requests(self, tool: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            size = await reader.readexactly(4)
            message = await reader.readexactly(int.from_bytes(size))
            self.asked[tool][int.from_bytes(message[:2])] += 1
            writer.write(size + message)

    async def _answers(self, tool: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            self.answered[tool] += len(data)
            writer.write(data)


class World:
    """Topics that grow, and groups without members that commit."""

    def __init__(self, cluster: KafkaCluster, groups: int, partitions: int) -> None:
        self._broker = cluster.brokers[1].address
        self._security = security({}, Access(cluster.bootstrap).allowed)
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 200})
        self._topics = [f"topic-{number}" for number in range(-(-groups // SHARED))]
        self._groups = {f"group-{number}": self._topics[number // SHARED] for number in range(groups)}
        self._partitions = partitions
        self._ends: Counter[tuple[str, int]] = Counter()
        self._committed: Counter[str] = Counter()
        self.broken = False
        self.refused = 0                         # of the last round
        made = [*(NewTopic(topic, partitions, 1) for topic in self._topics), *(NewTopic(fault, 1, 1) for fault in FAULTS)]
        for future in self._admin.create_topics(made, request_timeout=300).values():
            future.result()

    async def produce(self) -> None:
        """A record a second for each partition, FAST where there will be a fault."""
        while True:
            begun = time.monotonic()
            for topic, count, each in [*((topic, self._partitions, 1) for topic in self._topics),
                                       *((fault, 1, FAST) for fault in FAULTS)]:
                for partition in range(count):
                    for _ in range(each):
                        self._producer.produce(topic, b"x", partition=partition)
                    self._ends[topic, partition] += each
                self._producer.poll(0)
                await asyncio.sleep(0)
            await asyncio.sleep(max(0.0, begun + 1.0 - time.monotonic()))

    async def commit(self) -> None:
        """All groups, every COMMIT_SECONDS."""
        while True:
            begun = time.monotonic()
            await asyncio.to_thread(self._producer.flush)
            wanted = {group: (topic, [self._ends[topic, each] for each in range(self._partitions)])
                      for group, topic in self._groups.items()}
            wanted |= {fault: (fault, [offset]) for fault in FAULTS if (offset := self._next(fault)) is not None}
            async with connected(self._broker, self._security, 60.0) as broker:
                await find_coordinators(self._broker, broker, list(wanted))           # which makes the topic of offsets
                self.refused = 0
                for group, (topic, offsets) in wanted.items():
                    answer = await broker.ask(commit(group, topic, offsets), OffsetCommitResponse)
                    self.refused += any(each.error_code for topic in answer.topics for each in topic.partitions)
                    if group in FAULTS:
                        self._committed[group] = offsets[0]
            await asyncio.sleep(max(0.0, begun + COMMIT_SECONDS - time.monotonic()))

    def _next(self, fault: str) -> int | None:
        end, last, step = self._ends[fault, 0], self._committed[fault], int(FAST * COMMIT_SECONDS)
        if not self.broken:
            return end
        return {"stops": None, "stalls": last, "leaks": last + step * 7 // 10, "rewinds": last + step, "loses": None}[fault]

    async def break_all(self) -> None:
        """From now on each has its fault."""
        self.broken = True
        self._committed["rewinds"] -= 10_000
        await asyncio.sleep(COMMIT_SECONDS + 5)
        await asyncio.to_thread(self._producer.flush)
        for future in self._admin.delete_records([Place("loses", 0, self._ends["loses", 0])]).values():
            future.result()


def commit(group: str, topic: str, offsets: Iterable[int]) -> OffsetCommitRequest:
    return OffsetCommitRequest(group_id=GroupId(group), member_id="", topics=(OffsetCommitRequestTopic(
        name=TopicName(topic), partitions=tuple(
            OffsetCommitRequestPartition(partition_index=i32(number), committed_offset=i64(offset), committed_metadata=None)
            for number, offset in enumerate(offsets))),))


# --- the three ---------------------------------------------------------------------------------------------------------


def burrow_settings(servers: str, web: int) -> str:
    return f"""
[logging]
level="warn"
[client-profile.test]
kafka-version="3.6.0"
client-id="burrow"
[cluster.local]
class-name="kafka"
servers=["{servers}"]
client-profile="test"
topic-refresh=60
offset-refresh=10
[consumer.local]
class-name="kafka"
cluster="local"
servers=["{servers}"]
client-profile="test"
[httpserver.default]
address="127.0.0.1:{web}"
[storage.default]
class-name="inmemory"
intervals=15
min-distance=1
"""


class Words:
    """What each tool said last of the partition of each fault, and when it said another thing."""

    def __init__(self) -> None:
        self.begun = float("inf")
        self._last: dict[tuple[str, str], str] = {}
        self._told: dict[tuple[str, str], list[str]] = {}

    def say(self, tool: str, fault: str, word: str) -> None:
        if self._last.get((tool, fault)) != word:
            self._last[tool, fault] = word
            if (after := time.monotonic() - self.begun) > 0:
                self._told.setdefault((tool, fault), []).append(f"{word} after {after:.0f} s")

    def of(self, tool: str, fault: str) -> str:
        return ", ".join(self._told.get((tool, fault), ["no other word"]))


async def ask_burrow(web: int, words: Words) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            for fault in FAULTS:
                with suppress(aiohttp.ClientError):
                    async with session.get(f"http://127.0.0.1:{web}/v3/kafka/local/consumer/{fault}/lag") as answer:
                        told = (await answer.json()).get("status") or {}
                    parts = [part["status"] for part in told.get("partitions") or ()]
                    words.say("burrow", fault, parts[0] if parts else told.get("status", "nothing"))
            await asyncio.sleep(1.0)


async def scrape(web: int) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            with suppress(aiohttp.ClientError):
                async with session.get(f"http://127.0.0.1:{web}/metrics") as answer:
                    await answer.read()
            await asyncio.sleep(SCRAPE_SECONDS)


async def listen(output: asyncio.StreamReader, words: Words) -> None:
    async for line in output:
        for group in json.loads(line)["groups"]:
            for part in group["partitions"]:
                if group["group"] in FAULTS:
                    words.say("switchover", group["group"], part["verdict"])


async def begin(*command: str, directory: Path, **options: Any) -> asyncio.subprocess.Process:
    with (directory / f"{Path(command[0]).name}.log").open("w") as log:
        return await asyncio.create_subprocess_exec(*command, cwd=directory, stderr=log, **({"stdout": log} | options))


def alive(processes: Mapping[str, asyncio.subprocess.Process], directory: Path) -> None:
    """A tool that has ended is told with its last words."""
    for tool, process in processes.items():
        if process.returncode is not None:
            words = (directory / f"{tool}.log").read_text()[-2000:]
            raise SystemExit(f"{tool} has ended with {process.returncode}: {words}")


async def measure(cluster: KafkaCluster, proxy: Proxy, groups: int, partitions: int, directory: Path) -> None:
    world, words = World(cluster, groups, partitions), Words()
    servers = {tool: f"{host}:{number}" for tool, (host, number) in proxy.outer.items()}
    burrow, kminion = port(), port()
    (directory / "burrow.toml").write_text(burrow_settings(servers["burrow"], burrow))
    async with proxy.serving(), asyncio.TaskGroup() as tasks:
        driving = [tasks.create_task(world.produce()), tasks.create_task(world.commit())]
        await asyncio.sleep(2 * COMMIT_SECONDS)
        processes = {
            "burrow": await begin(os.environ["BURROW"], "--config-dir", str(directory), directory=directory),
            "kminion": await begin(os.environ["KMINION"], directory=directory, env={
                **os.environ, "KAFKA_BROKERS": servers["kminion"],
                "EXPORTER_PORT": str(kminion), "EXPORTER_HOST": "127.0.0.1",
                "MINION_CONSUMERGROUPS_SCRAPEMODE": "adminApi", "MINION_CONSUMERGROUPS_GRANULARITY": "partition",
                "LOGGER_LEVEL": "warn"}),
            "switchover": await begin(str(Path(sys.executable).parent / "switchover"), "lag", "--bootstrap-server",
                                      servers["switchover"], "--watch", "--output", "json", directory=directory,
                                      stdout=asyncio.subprocess.PIPE, limit=1 << 26),
        }
        try:
            output = processes["switchover"].stdout
            assert output is not None
            driving += [tasks.create_task(each) for each in (
                ask_burrow(burrow, words), scrape(kminion), listen(output, words))]
            await asyncio.sleep(LEARN_SECONDS)
            alive(processes, directory)
            assert not world.refused, f"{world.refused} groups could not commit"
            cpu = {tool: cpu_seconds(process.pid) for tool, process in processes.items()}
            asked = {tool: proxy.asked[tool].total() for tool in TOOLS}
            answered = proxy.answered.copy()
            await asyncio.sleep(CALM)
            for tool, process in processes.items():
                spent, requests, answers = (after - before for after, before in (
                    (cpu_seconds(process.pid), cpu[tool]), (proxy.asked[tool].total(), asked[tool]),
                    (proxy.answered[tool], answered[tool])))
                print(f"{tool}: CPU {spent * 60 / CALM:.2f} s a minute, requests {requests * 60 / CALM:.0f}, answers "
                      f"{answers / 1024 * 60 / CALM:.0f} KiB; {memory(process.pid)}; load {os.getloadavg()[0]:.1f}",
                      flush=True)
            words.begun = time.monotonic()
            await world.break_all()
            await asyncio.sleep(TROUBLE)
            for fault, what in FAULTS.items():
                print(f"{fault} ({what}): Burrow: {words.of('burrow', fault)}; ours: {words.of('switchover', fault)}",
                      flush=True)
        finally:
            for process in processes.values():
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
            await asyncio.sleep(1.0)                       # until the proxy has seen their connections end
            for task in driving:
                task.cancel()


def main(groups: str = "200", partitions: str = "50") -> None:
    with tempfile.TemporaryDirectory() as name, kafka_cluster(Path(name)) as cluster:
        address = cluster.brokers[1].address
        proxy = Proxy(address.host)
        cluster.start_zookeeper_mode(proxy.properties(str(address)))
        asyncio.run(measure(cluster, proxy, int(groups), int(partitions), Path(name)))


if __name__ == "__main__":
    main(*sys.argv[1:])
