"""What a rehearsal costs: seconds of each part, what is read of the user's ZooKeeper, and what a bystander feels there.

    python -m measure_rehearsal 100 1000 10000

Topics have three partitions on three brokers; the tree is synthetic, written like Kafka's. The replica is processes of this
machine under run.sh, as in the tests.
"""

import asyncio
import contextlib
import gc
import json
import re
import sys
import tempfile
import threading
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from uuid import UUID

from kazoo.client import KazooClient

from adapters.rehearsals import rehearsed
from adapters.servers import ZooKeeperServer, srvr
from fakes.metadata_sides import nodes_of
from fakes.planted_trees import METADATA, Nodes, state
from switchover.cluster.rehearsal import report
from switchover.cluster.rehearsal.pack import packed
from switchover.cluster.rehearsal.report import TO_DUAL_WRITE
from switchover.cluster.rehearsal.settings import masked
from switchover.metadata.cluster import Acl, Assignment, ClusterMetadata, Topic
from switchover.metadata.tree import state_path
from switchover.network.credentials import Access
from switchover.zookeeper.client.copying import KazooTree
from switchover.zookeeper.tree import COPIED, Tree

BROKERS = (1, 2, 3)
CONFIGURED = ("zookeeper", "controller", "canary")
"""The processes of a replica, by the names of their configurations."""


def tree(topics: int) -> Nodes:
    """So many topics × 3 partitions, ACLs and quotas for every twentieth, and one of everything else."""
    assigned = {index: Assignment(tuple(BROKERS[(index + k) % 3] for k in range(3))) for index in range(3)}
    metadata = ClusterMetadata(
        topics={f"topic-{n:05}": Topic(urlsafe_b64encode(UUID(int=n + 10).bytes).decode().rstrip("="), assigned)
                for n in range(topics)},
        configs=METADATA.configs, quotas=METADATA.quotas, scram=METADATA.scram, next_producer_id=5000,
        acls=frozenset(Acl(f"User:u{n}", "*", "Allow", "Read", "Topic", "literal", f"topic-{n:05}")
                       for n in range(0, topics, 20)))
    nodes = nodes_of(metadata)
    nodes = {path: data for path, data in nodes.items() if not path.startswith("/config/topics/topic-") or data}
    nodes |= dict.fromkeys(path for path in COPIED if path not in nodes)
    nodes["/cluster/id"], nodes["/controller_epoch"] = b'{"version":"1","id":"rehearsal-Cluster-AAAA"}', b"7"
    for broker in BROKERS:
        nodes[f"/brokers/ids/{broker}"] = json.dumps({"host": f"kafka-{broker}", "port": 9092, "version": 5}).encode()
    for name, topic in metadata.topics.items():
        for index, assignment in topic.partitions.items():
            nodes[state_path(name, index)] = state(assignment.replicas[0], list(assignment.replicas))
    return nodes


class Bystander:
    """Reads one node again and again, as a broker's controller would; seconds that each took."""

    def __init__(self, server: ZooKeeperServer) -> None:
        self._client = KazooClient(str(server.address))
        self._client.start()
        self._stop = threading.Event()
        self.seconds: list[float] = []
        self._thread = threading.Thread(target=self._read)

    def _read(self) -> None:
        while not self._stop.is_set():
            begun = time.monotonic()
            self._client.get("/cluster/id")
            self.seconds.append(time.monotonic() - begun)
            time.sleep(0.002)

    def during(self, seconds: float = 0.0) -> "Bystander":
        self._thread.start()
        time.sleep(seconds)
        return self

    def p99(self) -> float:
        self._stop.set()
        self._thread.join()
        self._client.stop()
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)] * 1000


class Memory:
    """The most memory that each process of a replica below `directory` ever had, and this one since `begin`."""

    def __init__(self, directory: Path) -> None:
        self._running = re.compile(rf"{re.escape(str(directory))}/commands/({'|'.join(CONFIGURED)})")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.most: dict[str, int] = {}

    @staticmethod
    def begin() -> None:
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")

    @staticmethod
    def of_this_process() -> int:
        """MiB."""
        return _most(Path("/proc/self")) // 1024

    def __enter__(self) -> "Memory":
        self.begin()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            for process in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if found := self._running.search((process / "cmdline").read_text()):
                        self.most[found[1]] = max(self.most.get(found[1], 0), _most(process) // 1024)


def _most(process: Path) -> int:
    lines = (process / "status").read_text().splitlines()
    return int(next((line.split()[1] for line in lines if line.startswith("VmHWM")), 0))


async def measure(topics: int, directory: Path) -> str:
    nodes = tree(topics)
    server = ZooKeeperServer(directory / "users")
    server.heap = "512m"
    server.start(server.properties())
    users = KazooTree(Access(str(server.address)), seconds=60)
    writer = KazooClient(str(server.address))
    writer.start()
    await users.load("/loaded", nodes)
    writer.create("/cluster")
    writer.create("/cluster/id", nodes["/cluster/id"])
    del nodes
    quiet = Bystander(server).during(3.0).p99()
    reads = int(srvr(writer, "Received"))
    bystander, begun = Bystander(server).during(), time.monotonic()
    Memory.begin()
    found = await users.export("/loaded")
    exported = time.monotonic() - begun
    beside = bystander.p99()
    asked = int(srvr(writer, "Received")) - reads - len(bystander.seconds)
    await users.close()
    writer.stop()
    server.stop()
    shown = masked(found.nodes)
    parts = packed(Tree(shown))
    operator = Memory.of_this_process()
    (directory / "replica").mkdir()
    with Memory(directory / "replica") as memory:
        told = await rehearsed(directory / "replica", shown)
    assert told.passed, report.lines(told)
    size = sum(len(data or b"") for data in found.nodes.values())
    on_disk = sum(file.stat().st_blocks * 512 for file in (directory / "replica").rglob("*") if file.is_file())
    seconds = {part: f"{taken:.1f}" for part, taken in told.seconds.items()}
    cells = (
        f"{topics:,}", f"{len(found.nodes):,}", f"{asked:,} / {size / 1e6:.2f} MB", f"{exported:.1f}",
        f"{quiet:.1f} / {beside:.1f}", f"{sum(map(len, parts)) / 1e6:.2f} MB in {len(parts)}", seconds["load"],
        seconds["controller"], seconds[TO_DUAL_WRITE], seconds["broker"], seconds["finalize"], seconds["all"],
        f"{on_disk / 2**20:.0f} MB", f"{operator} MiB",
        " / ".join(str(memory.most[name]) for name in CONFIGURED) + f" / {memory.of_this_process()} MiB")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    for topics in map(int, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as directory:
            print(asyncio.run(measure(topics, Path(directory))), flush=True)


if __name__ == "__main__":
    main()
