"""What a migration of 100 brokers costs: 5,000 topics with settings × 40 partitions on three of them, 20,000 ACLs.

    python -m measure_largest_cluster metadata 500 5000
    python -m measure_largest_cluster export 500 5000
    python -m measure_largest_cluster rehearsal 500 5000

    python -m measure_largest_cluster broker 500
    python -m measure_largest_cluster plan

`metadata`, `export`: what is read of a real ZooKeeper with such a tree, as the operator does with its memory limit.
`rehearsal`: the replica's processes with the limits of the Job, and what the operator reads of its real controller and its
ZooKeeper in dual write. `broker`: what one real broker of 3.9 answers with so many topics of 4 partitions and 2,000 groups.
`plan`: the estimate of `switchover plan` for such a cluster on paper.
"""

import asyncio
import contextlib
import json
import pickle
import sys
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from confluent_kafka.admin import AdminClient, NewTopic

from adapters.clusters import kafka_cluster, patient_wire
from adapters.rehearsals import running
from adapters.servers import ZooKeeperServer
from fakes.metadata_sides import nodes_of
from fakes.planted_trees import Nodes, state
from measure_lag_sweep import fill
from measure_parity import resident, watched
from measure_rehearsal import CONFIGURED, Memory
from switchover.answers import memory
from switchover.answers.errors import Refused, Unreachable
from switchover.cli import rehearse_replica
from switchover.cluster.observe.rehearsal import handed_in
from switchover.cluster.preview import preview
from switchover.cluster.rehearsal import report
from switchover.cluster.rehearsal.processes import SharedDirectory
from switchover.cluster.rehearsal.replica_job import PROCESSES, RESOURCES
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.client.nodes import KafkaWire
from switchover.kafka.client.offsets import WireOffsets
from switchover.lag.window import Asked
from switchover.metadata.cluster import Acl, Assignment, ClusterMetadata, Resource, Topic
from switchover.metadata.parity import LogImage, TreeReading, compare
from switchover.metadata.tree import state_path
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.zookeeper.client.copying import KazooTree
from switchover.zookeeper.client.zookeeper import KazooZooKeeper
from switchover.zookeeper.tree import COPIED, Tree
from unit import pictures
from unit.kraft_walk import Walk

BROKERS, PARTITIONS, ACLS = 100, 40, 4
GROUPS, WATCHED = 2000, 100
"""Of them as many as spec.gates.groups takes are watched."""
LIMIT = 512
"""MiB of the operator's container."""
T = TypeVar("T")


def cluster(topics: int) -> ClusterMetadata:
    """Each topic with two settings and its ACLs, replicas spread over all brokers; a quota for every fifth."""
    def assigned(number: int) -> Assignment:
        return Assignment(tuple((number + k * (1 + number // BROKERS % 33)) % BROKERS for k in range(3)))

    names = [f"topic-{n:05}" for n in range(topics)]
    return ClusterMetadata(
        topics={name: Topic(urlsafe_b64encode(UUID(int=n + 10).bytes).decode().rstrip("="),
                            {p: assigned(n * PARTITIONS + p) for p in range(PARTITIONS)}) for n, name in enumerate(names)},
        configs={Resource("topic", name): {"retention.ms": str(n), "cleanup.policy": "delete"}
                 for n, name in enumerate(names)},
        quotas={(("user", f"user-{n}"),): {"producer_byte_rate": float(n + 1)} for n in range(0, topics, 5)},
        acls=frozenset(Acl(f"User:user-{n}", "*", "Allow", operation, "Topic", "literal", name)
                       for n, name in enumerate(names) for operation in ("Read", "Write", "Describe", "Alter")[:ACLS]),
        next_producer_id=5000)


def tree(topics: int, ports: Mapping[int, int]) -> Nodes:
    """Brokers are at these ports of loopback, or nowhere."""
    metadata = cluster(topics)
    nodes: Nodes = nodes_of(metadata)
    nodes |= dict.fromkeys(path for path in COPIED if path not in nodes)
    nodes["/cluster/id"], nodes["/controller_epoch"] = b'{"version":"1","id":"largest-Cluster-AAAAAA"}', b"7"
    for broker in range(BROKERS):
        host, port = ("127.0.0.1", ports[broker]) if ports else (f"kafka-{broker}", 9092)
        nodes[f"/brokers/ids/{broker}"] = json.dumps({
            "features": {}, "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}, "version": 5, "jmx_port": -1,
            "endpoints": [f"PLAINTEXT://{host}:{port}"], "host": host, "port": port,
            "timestamp": "1732500000000"}).encode()
    for name, topic in metadata.topics.items():
        for index, assignment in topic.partitions.items():
            nodes[state_path(name, index)] = state(assignment.replicas[0], list(assignment.replicas))
    return nodes


async def told(what: str, asked: Awaitable[T], more: Callable[[T], object] = lambda _: "") -> T:
    """Print what it takes; the memory is the most that this process had, and what was there before."""
    before = resident()
    Memory.begin()
    used, begun = time.process_time(), time.perf_counter()
    async with watched() as stall:
        found = await asked
    took, busy = time.perf_counter() - begun, time.process_time() - used
    print(f"  {what}: {took:.1f} s, {busy:.1f} s of CPU, loop stood {stall.longest:.2f} s at most, {before:.0f} MiB, then "
          f"{Memory.of_this_process()} at most, {resident():.0f} after, {memory.ANSWERS.held / 2**20:.0f} MiB held "
          f"{more(found)}", flush=True)
    return found


async def in_the_way(zookeeper: KazooZooKeeper, what: str, asked: Awaitable[T]) -> T:
    """The same, with the longest wait of another question to ZooKeeper in the meantime."""
    task = asyncio.ensure_future(told(what, asked))
    slowest = 0.0
    while not task.done():
        begun = time.perf_counter()
        try:
            await zookeeper.state()
        except Unreachable as error:
            print(f"  meanwhile: {error}")
        slowest = max(slowest, time.perf_counter() - begun)
        await asyncio.sleep(0.1)
    print(f"    another question to ZooKeeper took {slowest:.1f} s at most")
    return await task


def limited(directory: Path, mebibytes: int) -> None:
    """Be the operator in a container of that limit."""
    file = directory / "memory.max"
    file.write_text(str(mebibytes * 2**20))
    memory.FILES = (file,)
    memory.room.cache_clear()


async def write(server: str, topics: int, ports: str) -> None:
    """In a process whose memory is not counted."""
    loader = KazooTree(Access(server), seconds=60)
    await loader.load("/kafka", tree(topics, dict(enumerate(json.loads(ports)))))
    await loader.close()


@contextlib.asynccontextmanager
async def written(topics: int, directory: Path, ports: Sequence[int] = ()) -> AsyncIterator[ZooKeeperServer]:
    server = ZooKeeperServer(directory / "users")
    server.heap = "1g"
    server.start(server.properties())
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "measure_largest_cluster", "write", str(server.address), str(topics),
        json.dumps(ports))
    assert await writer.wait() == 0
    yield server
    server.stop()


async def metadata(topics: int, directory: Path) -> None:
    async with written(topics, directory) as server:
        limited(directory, LIMIT)
        zookeeper = KazooZooKeeper(Access(f"{server.address}/kafka"))
        await told("state", zookeeper.state())
        await told("topics", zookeeper.topics())
        await in_the_way(zookeeper, "tree, first", zookeeper.metadata(None))
        await in_the_way(zookeeper, "partition_epoch", zookeeper.partition_epoch())
        await in_the_way(zookeeper, "tree, unchanged, with states", zookeeper.metadata(None, states=True))
        await in_the_way(zookeeper, "stateless", zookeeper.stateless())
        await zookeeper.close()


async def export(topics: int, directory: Path) -> None:
    async with written(topics, directory) as server:
        users = KazooTree(Access(str(server.address)))
        for limit in (LIMIT, 256):
            limited(directory, limit)
            try:
                found = await told(f"export, with a limit of {limit} MiB", users.export("/kafka"), lambda e: len(e.nodes))
                await told("masked and packed", asyncio.to_thread(handed_in, found), lambda e: (
                    f"{sum(map(len, e.parts)) / 1e6:.2f} MB in {len(e.parts)}"))
                del found
            except Refused as error:
                print(f"  export: {error}")
        await users.close()


async def rehearsal(topics: int, directory: Path) -> None:
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "measure_largest_cluster", "pack", str(topics), str(directory / "tree"))
    assert await writer.wait() == 0
    digest, parts = pickle.loads((directory / "tree").read_bytes())
    print(f"  handed in: {sum(map(len, parts)) / 1e6:.2f} MB in {len(parts)} ConfigMaps")

    async def unpack() -> Tree:
        return await asyncio.to_thread(rehearse_replica.tree_of, parts, {report.TREE_DIGEST: digest})

    found = await told("unpacked", unpack(), lambda t: f"{len(t.nodes)} nodes")
    (directory / "replica").mkdir()
    limits = {name: int(limit[:-2]) << {"Mi": 20, "Gi": 30}[limit[-2:]]
              for name in PROCESSES for limit in (RESOURCES[name]["limits"]["memory"],)}
    begun = time.monotonic()
    with Memory(directory / "replica") as most, running(directory / "replica", limits=limits) as place:
        beside: list[asyncio.Task[None]] = []

        def say(line: str) -> None:
            print(f"  {time.monotonic() - begun:6.1f} s {line}, {Memory.of_this_process()} MiB at most, "
                  f"{on_disk(directory / 'replica')}", flush=True)
            if line == "dual write":
                beside.append(asyncio.create_task(operators(place.host, place.controller, place.zookeeper)))

        done = await rehearse_replica.rehearsed(found, place, SharedDirectory(directory / "replica"), "3.9", say)
        await asyncio.gather(*beside)
    print(f"  {'passed' if done.passed else report.lines(done)} {done.seconds}")
    memories = {**{name: most.most[name] for name in CONFIGURED}, "conductor": most.of_this_process()}
    print(f"  MiB: {memories}")


def on_disk(directory: Path) -> str:
    found: dict[str, int] = {}
    for file in directory.rglob("*"):
        try:
            if file.is_file():
                name = file.relative_to(directory).parts[0]
                found[name] = found.get(name, 0) + file.stat().st_blocks * 512
        except OSError:
            continue
    return ", ".join(f"{name} {size / 2**20:.0f} MiB" for name, size in found.items() if size > 2**20)


async def operators(host: str, controller: int, zookeeper: int) -> None:
    """What the operator reads of a cluster in dual write, in a process of its own."""
    reader = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "measure_largest_cluster", "read", host, str(controller), str(zookeeper))
    await reader.wait()


async def read(host: str, controller: int, port: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        limited(Path(directory), LIMIT)
        wire, voters = KafkaWire({}), {node: Address(host, controller) for node in (3000,)}

        async def log() -> LogImage:
            while True:
                try:
                    async with asyncio.timeout(12):
                        return await wire.log(voters)
                except (TimeoutError, Unreachable) as error:
                    print(f"  a pass ended before the log did: {error}", flush=True)

        await told("the log, read once", log())
        image = await told("the log, read on", log())
        tree = KazooZooKeeper(Access(f"{host}:{port}/1"))
        reading: TreeReading = await told("tree, first", tree.metadata(None))
        reading = await told("tree, unchanged", tree.metadata(None))

        async def compared() -> str:
            found = compare(None, reading, image).parity
            return f"{found.unsettled} differ, {found.behind} behind"

        await told("compared", compared(), str)
        await told("compared, equal", compared(), str)
        await tree.close()


async def broker(topics: int, directory: Path) -> None:
    with kafka_cluster(directory) as cluster:
        cluster.start_zookeeper_mode()
        names = fill(cluster.bootstrap, GROUPS, 4)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for made in admin.create_topics([NewTopic(f"other-{number}", 4, 1) for number in range(topics - GROUPS // 10)],
                                        request_timeout=300).values():
            made.result()
        limited(directory, LIMIT)
        wire, [(node, server)], access = patient_wire({}), cluster.brokers.items(), Access(cluster.bootstrap)
        view = await told("all partitions", wire.metadata(server.address), lambda view: f"{view.size} partitions")
        again = await told("the same, unchanged", wire.metadata(server.address))
        assert all(again.topics[name] is topic for name, topic in view.topics.items())
        listed = admin.list_topics(timeout=60).topics
        assert {name: {each.index: (each.leader, each.replicas, each.isr) for each in topic.partitions}
                for name, topic in view.topics.items()} == {
            name: {index: (each.leader, tuple(each.replicas), tuple(each.isrs)) for index, each in topic.partitions.items()}
            for name, topic in listed.items()}
        ids = await told("topic ids", wire.topic_ids(server.address, node))
        assert (ids.others, ids.silent, len(ids.served)) == ({}, frozenset(), len(listed))
        await told("min.insync.replicas", wire.min_insync_replicas(server.address, view.topics))
        await told("examination", wire.examine(server.address, node))
        await told("settings", wire.settings(server.address, node))
        memberships, offsets = WireGroups(access), WireOffsets(access)
        await told("the names of all groups", memberships.groups(), len)
        await told(f"members of {WATCHED} groups", memberships.memberships(names[:WATCHED]))
        await told(f"a sweep over {WATCHED} groups", offsets.sweep({name: Asked() for name in names[:WATCHED]}))
        await told("the next one", offsets.sweep({name: Asked() for name in names[:WATCHED]}))


def plan() -> None:
    pictures.BROKERS.update({f"kafka-{number}": number for number in range(BROKERS)})
    for size, bake in (({"pods": 1}, 60), ({"pods": 1}, 0), ({"pods": 5}, 60), ({"percent": 10}, 60), ({"percent": 20}, 60)):
        walk = Walk()
        walk.spec = pictures.spec_of(soakSeconds=86400, rollout={"steps": [
            {"pods": 1, "bakeSeconds": 300}, {**size, "bakeSeconds": bake}]})
        found = preview(walk.picture())
        assert found is not None
        hours = {step.name: round(step.estimated_seconds / 3600, 1) for step in found.steps}
        print(f"  {size}, a bake of {bake} s: {found.estimated_seconds / 3600:.1f} h, {hours}, {found.restarts} restarts; "
              f"{len(json.dumps(found.manifest()))} bytes of status")


def main(what: str, *arguments: str) -> None:
    match what:
        case "plan":
            plan()
        case "write":
            asyncio.run(write(arguments[0], int(arguments[1]), arguments[2]))
        case "pack":
            handed = handed_in(Tree(tree(int(arguments[0]), {})))
            Path(arguments[1]).write_bytes(pickle.dumps((handed.digest, handed.parts)))
        case "read":
            asyncio.run(read(arguments[0], int(arguments[1]), int(arguments[2])))
        case _:
            for topics in map(int, arguments):
                measure = {"metadata": metadata, "export": export, "rehearsal": rehearsal, "broker": broker}[what]
                print(f"{what}: {topics} topics × {PARTITIONS} partitions, {topics * ACLS} ACLs", flush=True)
                with tempfile.TemporaryDirectory() as directory:
                    asyncio.run(measure(topics, Path(directory)))


if __name__ == "__main__":
    main(*sys.argv[1:])
