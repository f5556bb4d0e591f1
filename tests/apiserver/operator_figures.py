"""What an operator as a process of its own asks and takes, counted while it has many migrations to look at."""

import asyncio
import json
import math
import os
import secrets
import statistics
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from adapters.clusters import KafkaCluster
from adapters.processor import cpu_seconds
from apiserver.conftest import ROOT
from apiserver.many_migrations import Largest, Wanted, each, names, world
from apiserver.processes import port
from switchover.api.meta import API_VERSION
from switchover.kubernetes.client.api_server import ApiServer

DECISIONS, PATIENCE = int(os.environ.get("DECISIONS", "15")), 90.0


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
    largest: tuple[float, float]    # the same of the largest one alone, p50 and most
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
                f"{self.late[0]:.2f}, most {self.late[1]:.2f} s; pass p50 {self.passes[0]:.2f}, p99 {self.passes[1]:.2f} s, "
                f"of the largest p50 {self.largest[0]:.2f}, most {self.largest[1]:.2f} s; "
                f"decision {latency} ({len(self.waited)} of {self.changed}), CPU {self.cpu_decisions:.1f} s; all looked at "
                f"again {self.again:.1f} s after a restart, CPU {self.cpu_again:.1f} s, each {again}")


def p99(values: Sequence[float]) -> float:
    return sorted(values)[math.ceil(0.99 * len(values)) - 1]


@asynccontextmanager
async def operating(kubeconfig: str, tree: str, namespace: str, directory: Path) -> AsyncIterator["Operating"]:
    """The operator as a process of its own, until the block ends; then it is killed."""
    counts = directory / "counts.json"
    counts.unlink(missing_ok=True)
    environment = {                        # with the image's own setting of the allocator (Dockerfile)
        **os.environ, "MALLOC_MMAP_THRESHOLD_": "131072", "PYTHONPATH": f"{tree}:tests:sandbox",
        "POD_NAMESPACE": namespace, "POD_NAME": "operator-0",
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
                   settle: float, window: float, largest: Largest | None = None) -> Figures:
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
        (told.get("largest_p50", 0.0), told.get("largest_most", 0.0)),
        min(DECISIONS, count), waited, cpu_decisions, again, asked_again, cpu_again)
