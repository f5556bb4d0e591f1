"""What many ConsumerGroupMigrations cost one operator, on a real API server and a real broker of Kafka 4.4.

    PYTHONPATH=operator:tests:sandbox .venv/bin/python -m apiserver.measure_scale 1 10 100
    TREES=/path/of/another/checkout/operator,operator WINDOW=60 … 30

For each number and each tree: so many migrations, Planned, each of a Deployment of two pods and of a classic group of two
members on a topic of 12 partitions; the operator as a process of its own; SETTLE seconds until it stands, WINDOW seconds in
which it is counted, then a change of DECISIONS specs, timed until the status speaks of it. SWITCHOVER_APISERVER_KUBECONFIG
names an API server; without one the tests' own is started. Pods stay Pending, since there is no node.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from adapters.clusters import KRaftNode, node
from adapters.eventually import eventually
from adapters.group_members import create_topic
from adapters.measure_coordinator import cpu_seconds
from adapters.simulated_members import Topic, crowd
from apiserver.conftest import ROOT, STATE, sandbox
from apiserver.processes import port
from switchover.adapters.api_server import ApiServer, NotFound, connect
from switchover.adapters.wire_groups import WireGroups
from switchover.api.meta import API_VERSION
from switchover.core.groups.facts import MemberProtocol
from switchover.ports import Access

TOPIC = Topic("orders", 12)
SETTLE, WINDOW = float(os.environ.get("SETTLE", "60")), float(os.environ.get("WINDOW", "60"))
TREES = os.environ.get("TREES", "operator").split(",")
DECISIONS, PATIENCE = 15, 90.0
PLURAL = "consumergroupmigrations"


@contextmanager
def api_server() -> Iterator[str]:
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


async def each(numbers: range, work: Callable[[str], Awaitable[None]]) -> None:
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
        await asyncio.sleep(0.5)
    return float("inf")


async def measure(kubeconfig: str, tree: str, count: int, servers: str, directory: Path) -> None:
    """One line of figures."""
    async with world(kubeconfig, count, servers) as server:
        counts = directory / "counts.json"
        counts.unlink(missing_ok=True)
        environment = {
            **os.environ, "PYTHONPATH": f"{tree}:tests:sandbox", "POD_NAMESPACE": server.namespace, "POD_NAME": "operator-0",
            "KUBECONFIG": kubeconfig, "PROBE_PORT": str(port()), "METRICS_PORT": str(port()), "COUNTS": str(counts)}
        with (directory / "log").open("a") as log:
            operator = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "apiserver.counted", cwd=ROOT, env=environment, stderr=log)
        try:
            first = await seen(server, count)
            await asyncio.sleep(SETTLE)
            before, cpu = json.loads(counts.read_text()), cpu_seconds(operator.pid)
            await asyncio.sleep(WINDOW)
            after, cpu = json.loads(counts.read_text()), cpu_seconds(operator.pid) - cpu
            now, peak = memory(operator.pid)
            waited = await asyncio.gather(*(decided(server, name_of(number)) for number in range(min(DECISIONS, count))))
        finally:
            operator.kill()
            await operator.wait()
    hourly = {what: (after.get(what, 0) - before.get(what, 0)) * 3600 / WINDOW for what in ("api", "kafka", "connections")}
    told = sorted(each for each in waited if each is not None)
    latency = f"p50 {statistics.median(told):.2f}, most {told[-1]:.2f} s" if told else "none"
    asked = ", ".join(f"{what} {per_hour / count:.0f} ({per_hour:.0f} in all)" for what, per_hour in hourly.items())
    print(f"{count} Planned, {tree}: an hour and object: {asked}; CPU {cpu / WINDOW:.1%} of a core; RSS {now}, peak {peak} "
          f"MiB; loop late p99 {after['late_p99']:.2f}, most {after['late_most']:.2f} s; decision {latency} ({len(told)} of "
          f"{len(waited)}); first status of all {first:.1f} s; load {os.getloadavg()[0]:.1f}", flush=True)


async def measure_all(kubeconfig: str, broker: KRaftNode, numbers: list[int], directory: Path) -> None:
    await create_topic(broker.address, TOPIC.name, TOPIC.partitions)
    groups = WireGroups(Access(str(broker.address)))

    async def served() -> None:
        """The first question makes the broker create __consumer_offsets, whose partitions it begins to serve one by one."""
        await asyncio.gather(*(groups.describe(name_of(number)) for number in range(max(numbers))))

    await eventually(served, lambda _: True)
    async with crowd(broker.address, MemberProtocol.CLASSIC, TOPIC, connections=20, seconds=36_000) as members:
        joined = 0
        for count in sorted(numbers):
            await members.join({name_of(number): 2 for number in range(joined, count)})
            joined = count
            for tree in TREES:
                await measure(kubeconfig, tree, count, str(broker.address), directory)


def main(*numbers: str) -> None:
    with api_server() as kubeconfig, tempfile.TemporaryDirectory() as directory, node(Path(directory), "4.4") as broker:
        broker.begin()
        asyncio.run(measure_all(kubeconfig, broker, [int(number) for number in numbers], Path(directory)))


if __name__ == "__main__":
    main(*sys.argv[1:])
