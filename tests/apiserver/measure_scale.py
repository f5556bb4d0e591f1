"""What many ConsumerGroupMigrations cost one operator, on a real API server and a real broker of Kafka 4.4.

    PYTHONPATH=operator:tests:sandbox .venv/bin/python -m apiserver.measure_scale 1 10 100
    TREES=/path/of/another/checkout/operator,operator WINDOW=60 … 30

For each number and each tree: so many migrations, Planned, each of a Deployment of two pods and of a classic group of two
members on a topic of 12 partitions, beside FOREIGN pods; the operator as a process of its own; SETTLE seconds until it
stands, WINDOW seconds in which it is counted, then a change of DECISIONS specs, timed until the status speaks of it, and its
restart after SIGKILL. SWITCHOVER_APISERVER_KUBECONFIG names an API server; without one the tests' own is started. Pods stay
Pending, since there is no node.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp

from adapters.clusters import KRaftNode, node
from adapters.eventually import eventually
from adapters.group_members import create_topic
from adapters.measure_coordinator import cpu_seconds
from adapters.simulated_members import Topic, crowd
from apiserver.conftest import ROOT, STATE, sandbox
from apiserver.processes import port
from switchover.api.meta import API_VERSION
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.group import MemberProtocol
from switchover.kubernetes.client import api_server
from switchover.kubernetes.client.api_server import ApiServer, NotFound, connect
from switchover.operator.metrics import INFO
from switchover.outside.access import Access

TOPIC = Topic("orders", 12)
SETTLE, WINDOW = float(os.environ.get("SETTLE", "60")), float(os.environ.get("WINDOW", "60"))
TREES = os.environ.get("TREES", "operator").split(",")
FOREIGN = int(os.environ.get("FOREIGN", "0"))
DECISIONS, PATIENCE = 15, 90.0
PLURAL = "consumergroupmigrations"


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


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "app", "image": "localhost/consumer:1"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}}


def migration(name: str, servers: str) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "ConsumerGroupMigration", "metadata": {"name": name},
            "spec": {"desiredState": "Planned", "group": name, "kafka": {"bootstrapServers": servers},
                     "protocol": {"to": "Consumer"},
                     "workloads": [{"name": name, "container": "app", "template": {"image": "localhost/consumer:2"}}]}}


def foreign(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"foreign-{name}", "labels": {"app": "foreign"}},
            "spec": {"containers": [{"name": "app", "image": "localhost/foreign:1"}]}}


async def each(numbers: range, work: Callable[[str], Awaitable[object]]) -> None:
    """Eight at a time: the API server has the same two cores."""
    room = asyncio.Semaphore(8)

    async def one(number: int) -> None:
        async with room:
            await work(name_of(number))

    await asyncio.gather(*(one(number) for number in numbers))


@asynccontextmanager
async def world(kubeconfig: str, count: int, servers: str) -> AsyncIterator[ApiServer]:
    """A namespace with so many migrations."""
    server = await connect(f"scale-{uuid4().hex[:8]}", kubeconfig)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": server.namespace}}

    async def make(name: str) -> None:
        await server.request("POST", server.path("apps/v1", "Deployment"), deployment(name))
        await server.request("POST", server.resource_path(API_VERSION, PLURAL), migration(name, servers))

    try:
        await server.request("POST", "/api/v1/namespaces", namespace)
        await each(range(count), make)
        await each(range(FOREIGN), lambda name: server.request("POST", server.path("v1", "Pod"), foreign(name)))
        yield server
    finally:
        await each(range(count), lambda name: drop(server, name))
        await server.request("DELETE", f"/api/v1/namespaces/{server.namespace}")
        await server.close()


async def drop(server: ApiServer, name: str) -> None:
    """The migration with its finalizer, whose operator is gone."""
    path = server.resource_path(API_VERSION, PLURAL, name)
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


async def decided(server: ApiServer, name: str) -> float | None:
    """Seconds from a change of the spec to the first status that speaks of it; None: not within PATIENCE."""
    path = server.resource_path(API_VERSION, PLURAL, name)
    wanted = [{"op": "add", "path": "/spec/gates", "value": {"stepPatienceSeconds": 1234}}]
    generation = (await server.json_patch(path, wanted))["metadata"]["generation"]
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < PATIENCE:
        if ((await server.get(path)).get("status") or {}).get("observedGeneration") == generation:
            return passed
        await asyncio.sleep(0.2)
    return None


async def seen(server: ApiServer, count: int) -> float:
    """Seconds until every migration has a status of the operator's; the CRD gives each one that says Pending."""
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < 2 * PATIENCE:
        found = await server.items(server.resource_path(API_VERSION, PLURAL))
        if sum(item["status"]["observedGeneration"] > 0 for item in found) == count:
            return passed
        await asyncio.sleep(max(0.5, count / 200))        # the answer is long, and read on the same two cores
    return float("inf")


@dataclass(frozen=True)
class Figures:
    """Of one operator and so many migrations. Counts and seconds are of all of them together."""

    count: int
    first: float                    # seconds from the operator's start to the last first status, Python's start among them
    asked_first: Mapping[str, int]  # requests until then: api, kafka, connections
    cpu_first: float                # CPU until then, in seconds
    asked: Mapping[str, float]      # the same an hour, once it stands
    cpu: float                      # of a core, once it stands
    rss: int                        # MiB
    peak: int
    late: tuple[float, float]       # how late the loop is, p99 and most, in seconds
    waited: tuple[float | None, ...]
    cpu_decisions: float            # CPU while they were waited for, in seconds
    again: float                    # seconds from its start after SIGKILL until every migration was looked at

    def __str__(self) -> str:
        told = sorted(each for each in self.waited if each is not None)
        latency = f"p50 {statistics.median(told):.2f}, most {told[-1]:.2f} s" if told else "none"
        first = ", ".join(f"{what} {number / self.count:.1f}" for what, number in self.asked_first.items())
        asked = ", ".join(f"{what} {hourly / self.count:.0f} ({hourly:.0f} in all)" for what, hourly in self.asked.items())
        return (f"first status of all {self.first:.1f} s, CPU {self.cpu_first:.1f} s, each {first}; an hour and object: "
                f"{asked}; CPU {self.cpu:.1%} of a core; RSS {self.rss}, peak {self.peak} MiB; loop late p99 "
                f"{self.late[0]:.2f}, most {self.late[1]:.2f} s; decision {latency} ({len(told)} of {len(self.waited)}), "
                f"CPU {self.cpu_decisions:.1f} s; looked at all again {self.again:.1f} s after a restart")


@asynccontextmanager
async def operating(kubeconfig: str, tree: str, namespace: str, directory: Path) -> AsyncIterator["Operating"]:
    """The operator as a process of its own, until the block ends; then it is killed."""
    counts, metrics = directory / "counts.json", port()
    counts.unlink(missing_ok=True)
    environment = {
        **os.environ, "PYTHONPATH": f"{tree}:tests:sandbox", "POD_NAMESPACE": namespace, "POD_NAME": "operator-0",
        "KUBECONFIG": kubeconfig, "PROBE_PORT": str(port()), "METRICS_PORT": str(metrics), "COUNTS": str(counts)}
    with (directory / "log").open("a") as log:
        process = await asyncio.create_subprocess_exec(
            *os.environ.get("UNDER", "").split(), sys.executable, "-m", "apiserver.counted", cwd=ROOT, env=environment,
            stderr=log)
    try:
        yield Operating(process.pid, counts, metrics, time.monotonic())
    finally:
        process.kill()
        await process.wait()


@dataclass(frozen=True)
class Operating:
    pid: int
    file: Path
    metrics: int
    begun: float

    def counts(self) -> dict[str, float]:
        """So far."""
        found: dict[str, float] = json.loads(self.file.read_text())
        return found

    def since(self, before: Mapping[str, float]) -> dict[str, float]:
        """Requests to the API server and to Kafka, and connections to it."""
        now = self.counts()
        return {what: now.get(what, 0) - before.get(what, 0) for what in ("api", "kafka", "connections")}

    async def looked_at(self, count: int) -> float:
        """Seconds from its start until so many migrations were looked at, each of which its metrics name then."""
        async with aiohttp.ClientSession() as session:
            while (passed := time.monotonic() - self.begun) < 2 * PATIENCE:
                with suppress(aiohttp.ClientError):
                    async with session.get(f"http://127.0.0.1:{self.metrics}/metrics") as answer:
                        if (await answer.text()).count(f"\n{INFO}{{") >= count:
                            return passed
                await asyncio.sleep(0.5)
        return float("inf")


async def measured(kubeconfig: str, tree: str, count: int, servers: str, directory: Path, *, settle: float = SETTLE,
                   window: float = WINDOW) -> Figures:
    async with world(kubeconfig, count, servers) as server:
        async with operating(kubeconfig, tree, server.namespace, directory) as operator:
            await seen(server, count)
            first, asked_first, cpu_first = time.monotonic() - operator.begun, operator.since({}), cpu_seconds(operator.pid)
            await asyncio.sleep(settle)
            before, cpu = operator.counts(), cpu_seconds(operator.pid)
            await asyncio.sleep(window)
            asked, cpu = operator.since(before), cpu_seconds(operator.pid) - cpu
            late, (rss, peak) = operator.counts(), memory(operator.pid)
            cpu_decisions = cpu_seconds(operator.pid)
            waited = await asyncio.gather(*(decided(server, name_of(number)) for number in range(min(DECISIONS, count))))
            cpu_decisions = cpu_seconds(operator.pid) - cpu_decisions
        async with operating(kubeconfig, tree, server.namespace, directory) as operator:
            again = await operator.looked_at(count)
    return Figures(
        count, first, {what: round(number) for what, number in asked_first.items()}, cpu_first,
        {what: number * 3600 / window for what, number in asked.items()}, cpu / window, rss, peak,
        (late["late_p99"], late["late_most"]), tuple(waited), cpu_decisions, again)


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
            await members.join({name_of(number): 2 for number in range(joined, count)})
            joined = count

        yield join


async def measure_all(kubeconfig: str, broker: KRaftNode, numbers: list[int], directory: Path) -> None:
    async with crowded(broker, max(numbers)) as join:
        for count in sorted(numbers):
            await join(count)
            for tree in TREES:
                figures = await measured(kubeconfig, tree, count, str(broker.address), directory)
                beside = f" beside {FOREIGN} pods of others" if FOREIGN else ""
                print(f"{count} Planned{beside}, {tree}: {figures}; load {os.getloadavg()[0]:.1f}", flush=True)


def main(*numbers: str) -> None:
    api_server.SECONDS_PER_CALL = 60.0               # this program's own patience; the operator keeps its own
    with control_plane() as kubeconfig, tempfile.TemporaryDirectory() as directory, node(Path(directory), "4.4") as broker:
        broker.begin()
        asyncio.run(measure_all(kubeconfig, broker, [int(number) for number in numbers], Path(directory)))


if __name__ == "__main__":
    main(*sys.argv[1:])
