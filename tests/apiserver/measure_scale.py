"""What many migrations cost one operator, on a real API server, with real brokers and ZooKeeper.

    PYTHONPATH=operator:tests:sandbox .venv/bin/python -m apiserver.measure_scale 1 10 100
    … 300 1000 100:moving 1000:ended 100:planned:10000 10:clusters 100:clusters:0:5000
    TREES=/path/of/another/checkout/operator,operator WINDOW=60 … 30

For each argument (NUMBER:KIND:FOREIGN:TOPICS, KIND planned, scaled, moving, ended or clusters) and each tree: so many
migrations beside FOREIGN pods of others. ConsumerGroupMigrations are each of a Deployment of two pods, which if `scaled`
has a budget and an autoscaler and is Planned, and of a classic group of two members on a topic of 12 partitions of Kafka
4.4; `clusters` are KafkaMigrations that are Planned, each of a StatefulSet of one pod, all of one Kafka 3.9 and its
ZooKeeper; with TOPICS one more, which no figure counts, is of 100 brokers with so many topics of 40 partitions.
The operator is a process of its own: SETTLE seconds until it stands, WINDOW seconds in which it is counted, then a change
of DECISIONS specs, timed until the status speaks of it, and its restart after SIGKILL. Those that move have a status that
says so, and stand in Baseline, which waits for pods with a pass a second: pods stay Pending, since there is no node.
Those that have ended have a status as well. SWITCHOVER_APISERVER_KUBECONFIG names an API server; without one the tests'
own is started.
"""

import asyncio
import json
import math
import multiprocessing
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from adapters.clusters import KafkaCluster, KRaftNode, kafka_cluster, node
from adapters.eventually import eventually
from adapters.group_members import create_topic
from adapters.measure_largest_cluster import BROKERS, PARTITIONS, written
from adapters.processor import cpu_seconds
from adapters.simulated_members import Topic, crowd
from apiserver.conftest import ROOT, STATE, sandbox
from apiserver.processes import port
from switchover.api.meta import API_VERSION
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.group import MemberProtocol
from switchover.kubernetes.client import api_server
from switchover.kubernetes.client.api_server import ApiServer, NotFound, connect
from switchover.outside.access import Access
from unit import measure_views

TOPIC = Topic("orders", 12)
SETTLE, WINDOW = float(os.environ.get("SETTLE", "60")), float(os.environ.get("WINDOW", "60"))
TREES = os.environ.get("TREES", "operator").split(",")
DECISIONS, PATIENCE = int(os.environ.get("DECISIONS", "15")), 90.0
BEGUN = "2026-11-28T00:00:00Z"
CLUSTERS, SCALED = "clusters", "scaled"
PROGRESS = {
    "moving": {"step": "Baseline", "index": 1, "total": 6, "startTime": BEGUN, "stepStartTime": BEGUN, "openTime": BEGUN},
    "ended": {"step": "HandOver", "index": 5, "total": 6, "startTime": BEGUN, "stepStartTime": BEGUN, "openTime": BEGUN,
              "completeTime": BEGUN},
}
"""What the status of each kind says of where it stands."""


@dataclass(frozen=True)
class Wanted:
    """What is measured: so many migrations of a kind (planned, scaled, moving, ended, clusters) beside so many pods of
    others."""

    count: int
    kind: str = "planned"
    foreign: int = 0
    topics: int = 0

    @property
    def plural(self) -> str:
        """The resource."""
        return "kafkamigrations" if self.kind == CLUSTERS else "consumergroupmigrations"

    def __str__(self) -> str:
        beside = ", ".join(words for words, number in (
            (f"{self.foreign} pods of others", self.foreign),
            (f"one of {BROKERS} brokers and {self.topics} topics", self.topics)) if number)
        return f"{self.count} {self.kind}{f' beside {beside}' if beside else ''}"


def wanted(text: str) -> Wanted:
    """NUMBER:KIND:FOREIGN:TOPICS, of which the number is enough."""
    count, kind, foreign, topics = (text.split(":") + ["planned", "0", "0"][text.count(":"):])[:4]
    if kind not in ("planned", SCALED, CLUSTERS, *PROGRESS):
        raise SystemExit(f"{text}: a kind is planned, {SCALED}, moving, ended or {CLUSTERS}")
    return Wanted(int(count), kind, int(foreign), int(topics))


@contextmanager
def control_plane() -> Iterator[str]:
    """The kubeconfig of one that runs, with the CRDs of this checkout."""
    given = os.environ.get("SWITCHOVER_APISERVER_KUBECONFIG", "")
    if not given:
        STATE.mkdir(parents=True, exist_ok=True)
        sandbox("up")
    try:
        kubeconfig = given or str(STATE / "kubeconfig")
        kubectl = [str(Path(sandbox("build", "k8s")) / "kubectl"), "--kubeconfig", kubeconfig]
        subprocess.run([*kubectl, "apply", "--server-side", "-f", str(ROOT / "crds")], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*kubectl, "wait", "--for=condition=Established", "-f", str(ROOT / "crds")], check=True,
                       stdout=subprocess.DEVNULL)
        yield kubeconfig
    finally:
        if not given:
            sandbox("down")


def name_of(number: int) -> str:
    return f"group-{number}"


def names(count: int) -> list[str]:
    return [name_of(number) for number in range(count)]


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "app", "image": "localhost/consumer:1"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}}


def migration(name: str, servers: str, kind: str = "planned") -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "ConsumerGroupMigration", "metadata": {"name": name},
            "spec": {"desiredState": "Running" if kind in PROGRESS else "Planned", "group": name,
                     "kafka": {"bootstrapServers": servers}, "protocol": {"to": "Consumer"},
                     "workloads": [{"name": name, "container": "app", "template": {"image": "localhost/consumer:2"}}]}}


def beside(name: str) -> list[dict[str, Any]]:
    """A budget of the Deployment and an autoscaler."""
    named = {"metadata": {"name": name}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return [{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", **named,
             "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}}},
            {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **named,
             "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 2}}]


def stateful_set(name: str, replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    container = {
        "name": "kafka", "image": "localhost/kafka:3.9.2", "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "command": ["/opt/kafka/bin/kafka-server-start.sh", "/etc/kafka/server.properties"]}
    claim = {"metadata": {"name": "data"},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
            "spec": {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
                     "volumeClaimTemplates": [claim]}}


def cluster_migration(name: str, zookeeper: str, servers: str) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "KafkaMigration", "metadata": {"name": name},
            "spec": {"desiredState": "Planned", "zookeeper": {"connect": zookeeper},
                     "kafka": {"bootstrapServers": servers}, "brokers": [{"name": name}],
                     "controllers": {"name": f"{name}-controller", "storage": {"size": "1Gi"}}}}


def foreign(name: str) -> dict[str, Any]:
    """Of a scheduler that does not exist: the real one writes again and again why it finds no node for each."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"foreign-{name}", "labels": {"app": "foreign"}},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "app", "image": "localhost/foreign:1"}]}}


async def each(names: Iterable[str], work: Callable[[str], Awaitable[object]]) -> None:
    """Eight at a time: the API server has the same two cores."""
    room = asyncio.Semaphore(8)

    async def one(name: str) -> None:
        async with room:
            await work(name)

    await asyncio.gather(*map(one, names))


def status(made: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """That of a migration which an operator has brought so far."""
    phase = {"moving": "Running", "ended": "Succeeded"}[kind]
    return {"observedGeneration": made["metadata"]["generation"], "uid": made["metadata"]["uid"], "phase": phase,
            "progress": PROGRESS[kind]}


class Largest(NamedTuple):
    """A cluster of BROKERS and 200,000 partitions: where its metadata is, and who answers for its brokers."""

    zookeeper: str
    servers: str


@asynccontextmanager
async def largest_cluster(topics: int, directory: Path) -> AsyncIterator[Largest | None]:
    """Real metadata in a real ZooKeeper. Its brokers tell of topics and their ids, and answer nonsense to all else."""
    if not topics:
        yield None
        return
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    brokers = multiprocessing.get_context("spawn").Process(
        target=measure_views.serve, args=(theirs, BROKERS, topics, PARTITIONS), daemon=True)
    brokers.start()
    ports, _ = await asyncio.to_thread(ours.recv)
    async with written(topics, directory, [ports[number] for number in range(BROKERS)]) as zookeeper:
        yield Largest(f"{zookeeper.address}/kafka", f"127.0.0.1:{ports[0]}")
    brokers.kill()


@asynccontextmanager
async def world(kubeconfig: str, wanted: Wanted, servers: str | KafkaCluster,
                largest: Largest | None) -> AsyncIterator[ApiServer]:
    """A namespace with so many migrations: of groups at these bootstrap servers, or of this cluster, and the largest one."""
    count = wanted.count
    server = await connect(f"scale-{uuid4().hex[:8]}", kubeconfig)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": server.namespace}}

    async def make(name: str) -> None:
        path = server.resource_path(API_VERSION, wanted.plural)
        if isinstance(servers, KafkaCluster):
            await server.request("POST", server.path("apps/v1", "StatefulSet"), stateful_set(name))
            await server.request("POST", path, cluster_migration(name, servers.zookeeper_connect, servers.bootstrap))
            return
        await server.request("POST", server.path("apps/v1", "Deployment"), deployment(name))
        if wanted.kind == SCALED:
            for made in beside(name):
                await server.request("POST", server.path(made["apiVersion"], made["kind"]), made)
        made = await server.request("POST", path, migration(name, servers, wanted.kind))
        if wanted.kind in PROGRESS:
            await server.json_patch(f"{path}/{name}/status",
                                    [{"op": "add", "path": "/status", "value": status(made, wanted.kind)}])

    try:
        await server.request("POST", "/api/v1/namespaces", namespace)
        await each(names(count), make)
        await each(names(wanted.foreign), lambda name: server.request("POST", server.path("v1", "Pod"), foreign(name)))
        if largest is not None:
            await server.request("POST", server.path("apps/v1", "StatefulSet"), stateful_set("largest", BROKERS))
            await server.request("POST", server.resource_path(API_VERSION, wanted.plural), cluster_migration(
                "largest", *largest))
        yield server
    finally:
        if largest is not None:
            await drop(server, wanted.plural, "largest")
        await each(names(count), lambda name: drop(server, wanted.plural, name))
        await server.request("DELETE", f"/api/v1/namespaces/{server.namespace}")
        await server.close()


async def drop(server: ApiServer, plural: str, name: str) -> None:
    """The migration with its finalizer, whose operator is gone."""
    path = server.resource_path(API_VERSION, plural, name)
    try:
        await server.json_patch(path, [{"op": "add", "path": "/metadata/finalizers", "value": []}])
        await server.request("DELETE", path)
    except NotFound:
        pass


# --- figures ----------------------------------------------------------------------------------------------------------


def memory(pid: int) -> tuple[int, int]:
    """RSS and its peak, in MiB."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) // 1024, int(status["VmHWM"].split()[0]) // 1024


async def decided(server: ApiServer, plural: str, names: Sequence[str]) -> list[float]:
    """Seconds from a change of each spec to the first status that speaks of it, of those within PATIENCE."""
    collection = server.resource_path(API_VERSION, plural)
    version = (await server.request("GET", collection, limit=1))["metadata"]["resourceVersion"]
    wanted = [{"op": "add", "path": "/spec/gates", "value": {"stepPatienceSeconds": 3601 + secrets.randbelow(1000)}}]
    changed: dict[str, tuple[int, float]] = {}
    told: dict[tuple[str, int], float] = {}

    async def change(name: str) -> None:
        begun = time.monotonic()
        changed[name] = (await server.json_patch(f"{collection}/{name}", wanted))["metadata"]["generation"], begun

    def waited() -> list[float]:
        return [told[name, generation] - begun for name, (generation, begun) in changed.items()
                if (name, generation) in told]

    async def listen() -> None:
        async with server.watch(collection, version) as lines:
            async for line in lines:
                event = json.loads(line)
                if event["type"] == "BOOKMARK":
                    continue
                found = event["object"]
                observed = (found.get("status") or {}).get("observedGeneration", -1)
                told.setdefault((found["metadata"]["name"], observed), time.monotonic())
                if len(waited()) == len(names):
                    return

    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
            tasks.create_task(listen())
            await each(names, change)
    return waited()


@dataclass(frozen=True)
class Figures:
    """Of one operator and so many migrations. Counts and seconds are of all of them together; a pass is timed by itself."""

    count: int
    first: float                    # seconds from the operator's start until it has looked at all, Python's start among them
    asked_first: Mapping[str, int]  # requests until then: api, kafka, zookeeper, connections
    cpu_first: float                # CPU until then, in seconds
    asked: Mapping[str, float]      # the same an hour, and passes, once it stands
    cpu: float                      # of a core, once it stands
    rss: int                        # MiB
    peak: int
    late: tuple[float, float]       # how late the loop is, p99 and most, in seconds
    passes: tuple[float, float]     # how long one takes, p50 and p99, in seconds
    changed: int
    waited: Sequence[float]         # from the change of a spec to the status that speaks of it, in seconds
    cpu_decisions: float            # CPU while they were waited for, in seconds
    again: float                    # seconds from its start after SIGKILL until every migration was looked at
    asked_again: Mapping[str, int]
    cpu_again: float

    def __str__(self) -> str:
        latency = f"p50 {statistics.median(self.waited):.2f}, p99 {p99(self.waited):.2f} s" if self.waited else "none"
        first, again = (", ".join(f"{what} {number / self.count:.1f}" for what, number in asked.items())
                        for asked in (self.asked_first, self.asked_again))
        asked = ", ".join(f"{what} {hourly / self.count:.0f} ({hourly:.0f} in all)" for what, hourly in self.asked.items())
        return (f"all looked at {self.first:.1f} s, CPU {self.cpu_first:.1f} s, each {first}; an hour and object: "
                f"{asked}; CPU {self.cpu:.1%} of a core; RSS {self.rss}, peak {self.peak} MiB; loop late p99 "
                f"{self.late[0]:.2f}, most {self.late[1]:.2f} s; pass p50 {self.passes[0]:.2f}, p99 {self.passes[1]:.2f} s; "
                f"decision {latency} ({len(self.waited)} of {self.changed}), CPU {self.cpu_decisions:.1f} s; all looked at "
                f"again {self.again:.1f} s after a restart, CPU {self.cpu_again:.1f} s, each {again}")


def p99(values: Sequence[float]) -> float:
    return sorted(values)[math.ceil(0.99 * len(values)) - 1]


@asynccontextmanager
async def operating(kubeconfig: str, tree: str, namespace: str, directory: Path) -> AsyncIterator["Operating"]:
    """The operator as a process of its own, until the block ends; then it is killed."""
    counts = directory / "counts.json"
    counts.unlink(missing_ok=True)
    environment = {
        **os.environ, "PYTHONPATH": f"{tree}:tests:sandbox", "POD_NAMESPACE": namespace, "POD_NAME": "operator-0",
        "KUBECONFIG": kubeconfig, "PROBE_PORT": str(port()), "METRICS_PORT": str(port()), "COUNTS": str(counts)}
    with (directory / "log").open("a") as log:
        process = await asyncio.create_subprocess_exec(
            *os.environ.get("UNDER", "").split(), sys.executable, "-m", "apiserver.counted", cwd=ROOT, env=environment,
            stderr=log)
    try:
        yield Operating(process.pid, counts, time.monotonic())
    finally:
        process.kill()
        await process.wait()


@dataclass(frozen=True)
class Operating:
    pid: int
    file: Path
    begun: float

    def counts(self) -> dict[str, float]:
        """So far."""
        found: dict[str, float] = json.loads(self.file.read_text())
        return found

    def since(self, before: Mapping[str, float]) -> dict[str, int]:
        """Requests to the API server, to Kafka and to ZooKeeper, connections to Kafka, and passes."""
        now = self.counts()
        return {what: round(now.get(what, 0) - before.get(what, 0))
                for what in ("api", "kafka", "zookeeper", "connections", "passes")}

    async def looked_at(self, count: int) -> float:
        """Seconds from its start until so many migrations were looked at."""
        while (passed := time.monotonic() - self.begun) < 2 * PATIENCE:
            if self.file.exists() and self.counts().get("looked", 0) >= count:
                return passed
            await asyncio.sleep(0.1)
        return float("inf")


async def measured(kubeconfig: str, tree: str, wanted: Wanted, servers: str | KafkaCluster, directory: Path, *,
                   settle: float = SETTLE, window: float = WINDOW, largest: Largest | None = None) -> Figures:
    count = wanted.count
    async with world(kubeconfig, wanted, servers, largest) as server:
        async with operating(kubeconfig, tree, server.namespace, directory) as operator:
            first, asked_first, cpu_first = await operator.looked_at(count), operator.since({}), cpu_seconds(operator.pid)
            await asyncio.sleep(settle)
            before, cpu = operator.counts(), cpu_seconds(operator.pid)
            await asyncio.sleep(window)
            asked, cpu = operator.since(before), cpu_seconds(operator.pid) - cpu
            told, (rss, peak) = operator.counts(), memory(operator.pid)
            cpu_decisions = cpu_seconds(operator.pid)
            waited = await decided(server, wanted.plural, names(min(DECISIONS, count)))
            cpu_decisions = cpu_seconds(operator.pid) - cpu_decisions
        async with operating(kubeconfig, tree, server.namespace, directory) as operator:
            again, asked_again, cpu_again = await operator.looked_at(count), operator.since({}), cpu_seconds(operator.pid)
    return Figures(
        count, first, asked_first, cpu_first, {what: number * 3600 / window for what, number in asked.items()},
        cpu / window, rss, peak, (told["late_p99"], told["late_most"]), (told["pass_p50"], told["pass_p99"]),
        min(DECISIONS, count), waited, cpu_decisions, again, asked_again, cpu_again)


@asynccontextmanager
async def crowded(broker: KRaftNode, most: int) -> AsyncIterator[Callable[[int], Awaitable[None]]]:
    """The broker serves groups, `most` at last; so many of them have two members once the function has returned."""
    await create_topic(broker.address, TOPIC.name, TOPIC.partitions)
    groups = WireGroups(Access(str(broker.address)))

    async def served() -> None:
        """The first question makes the broker create __consumer_offsets, whose partitions it begins to serve one by one."""
        await asyncio.gather(*(groups.describe(name_of(number)) for number in range(most)))

    await eventually(served, lambda _: True)
    async with crowd(broker.address, MemberProtocol.CLASSIC, TOPIC, connections=20, seconds=36_000) as members:
        joined = 0

        async def join(count: int) -> None:
            nonlocal joined
            if count > joined:
                await members.join({name_of(number): 2 for number in range(joined, count)})
            joined = max(joined, count)

        yield join


async def measure(kubeconfig: str, what: Wanted, servers: str | KafkaCluster, directory: Path) -> None:
    async with largest_cluster(what.topics, directory / "largest") as largest:
        for tree in TREES:
            figures = await measured(kubeconfig, tree, what, servers, directory, largest=largest)
            print(f"{what}, {tree}: {figures}; load {os.getloadavg()[0]:.1f}", flush=True)


async def measure_groups(kubeconfig: str, broker: KRaftNode, asked: list[Wanted], directory: Path) -> None:
    async with crowded(broker, max(each.count for each in asked)) as join:
        for what in asked:
            await join(what.count)
            await measure(kubeconfig, what, str(broker.address), directory)


def main(*words: str) -> None:
    api_server.SECONDS_PER_CALL = 60.0               # this program's own patience; the operator keeps its own
    asked = sorted(map(wanted, words), key=lambda each: each.count)
    groups, clusters = ([each for each in asked if (each.kind == CLUSTERS) is of_clusters] for of_clusters in (False, True))
    with control_plane() as kubeconfig, tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        if clusters:
            with kafka_cluster(directory / "clusters") as cluster:
                cluster.start_zookeeper_mode()
                for what in clusters:
                    asyncio.run(measure(kubeconfig, what, cluster, directory))
        if groups:
            with node(directory, "4.4") as broker:
                broker.begin()
                asyncio.run(measure_groups(kubeconfig, broker, groups, directory))


if __name__ == "__main__":
    main(*sys.argv[1:])
