"""The operator's parts that hear others, in a process of their own, under all floods at once; then a report as JSON.

Its argument is JSON: `limit` (a file with a memory limit), `port` (of the metrics), `kubeconfig`, and where the others are.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

import switchover.process.run as _whole_operator  # noqa: F401    at rest it has all of this in memory
from switchover.answers import memory
from switchover.answers.errors import Refused, Unreachable
from switchover.kafka.client.nodes import KafkaWire
from switchover.kubernetes.client.api_server import connect
from switchover.kubernetes.client.reflector import WatchedServer
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.process.metrics import Metrics
from switchover.process.probe import answering, metrics
from switchover.zookeeper.client.zookeeper import KazooZooKeeper

HONEST_EVERY = 0.2          # seconds


def resident(what: str = "VmHWM") -> int:
    """MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) // 1024


async def main(given: dict[str, Any]) -> dict[str, Any]:
    memory.FILES = (Path(given["limit"]),)
    registry = CollectorRegistry()
    Metrics(registry, time.monotonic)
    there = await connect("flood", given["kubeconfig"])
    flooded, honest = WatchedServer(there), WatchedServer(there.within("shop"))
    said: dict[str, set[str]] = {}
    waits: dict[str, list[float]] = {}

    async def told(name: str, ask: Callable[[], Awaitable[object]]) -> None:
        try:
            said.setdefault(name, set()).add(f"{await ask()}")
        except (Refused, Unreachable) as error:
            said.setdefault(name, set()).add(f"{type(error).__name__}: {error}")

    async def listed(server: WatchedServer, version: str, kind: str) -> str:
        return f"{len(await server.items(server.path(version, kind)))} of {kind}"

    zookeepers = [KazooZooKeeper(Access(each)) for each in given["zookeepers"]]
    own = KazooZooKeeper(Access(given["honest zookeeper"]))
    floods = [
        *(told("zookeeper", each.state) for each in zookeepers),
        *(told("kafka", lambda each=each: KafkaWire({}).api_versions(Address(*each)))       # type: ignore[misc]
          for each in given["kafkas"]),
        told("claims", lambda: listed(flooded, "v1", "PersistentVolumeClaim")),
        told("revisions", lambda: listed(flooded, "apps/v1", "ControllerRevision")),
    ]

    async def goes_on(name: str, ask: Callable[[], Awaitable[object]]) -> None:
        while True:
            begun = time.monotonic()
            await told(f"honest {name}", ask)
            waits.setdefault(name, []).append(time.monotonic() - begun)
            await asyncio.sleep(HONEST_EVERY)

    async with answering(given["port"], metrics(registry)):
        at_rest = resident()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)                 # the metrics' port is flooded
        others = [asyncio.create_task(each) for each in (
            goes_on("zookeeper", own.state),
            goes_on("kafka", lambda: KafkaWire({}).api_versions(Address(*given["honest kafka"]))),
            goes_on("pods", lambda: listed(honest, "v1", "Pod")))]
        for _ in range(given["rounds"]):
            await asyncio.gather(*floods)
        for each in others:
            each.cancel()
    await asyncio.gather(own.close(), flooded.close(), honest.close(), *(each.close() for each in zookeepers))
    await there.close()
    return {"at rest": at_rest, "highest": resident(), "held": memory.ANSWERS.held, "waits": waits,
            "said": {name: sorted(each) for name, each in said.items()}}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
