"""`switchover run` that counts what it asks, into the file COUNTS four times a second, as JSON. For operator_figures.py.

With MEMORY it goes by a limit of so many MiB, as in a container.
"""

import asyncio
import json
import os
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
from kazoo.client import KazooClient

import apiserver.as_shipped  # noqa: F401
from switchover.answers import memory
from switchover.kafka.client import connection
from switchover.process.handlers import Loops
from switchover.process.run import run_operator
from switchover.process.settings import read_settings

EVERY = 0.05                # seconds between two wake-ups, whose lateness is the loop's

counts: Counter[str] = Counter()
late: list[float] = []
passes: list[tuple[float, float, str]] = []
looked: set[str] = set()
RECENT = 60.0               # seconds, of which lateness and passes are counted: those after a start are others'


def count() -> None:
    """Count requests to the API server, whoever sends them, to Kafka and ZooKeeper, connections to Kafka, and passes."""
    request, exchange, call = aiohttp.ClientSession._request, connection.Connection.exchange, KazooClient._call
    opened = connection.asyncio.open_connection

    async def counted_request(self: Any, method: str, url: Any, **options: Any) -> Any:
        counts["api"] += 1
        parts = str(url).partition("?")[0].split("/")
        named = parts.index("namespaces") + 2 if "namespaces" in parts else -1
        counts[f"{method} {parts[named] if len(parts) > named else parts[-1]}"] += 1
        return await request(self, method, url, **options)

    async def counted_exchange(self: Any, message: Any) -> bytes:
        counts["kafka"] += 1
        counts[f"Kafka {type(message).__module__.split('.')[2]}"] += 1
        return await exchange(self, message)

    def counted_call(self: Any, message: Any, answer: Any) -> Any:
        counts["zookeeper"] += 1
        return call(self, message, answer)

    async def counted_connection(*arguments: Any, **options: Any) -> Any:
        counts["connections"] += 1
        return await opened(*arguments, **options)

    begin = Loops._pass

    async def counted_pass(self: Loops, name: str, *arguments: Any, **options: Any) -> Any:
        begun = time.monotonic()
        try:
            return await begin(self, name, *arguments, **options)
        finally:
            passes.append((time.monotonic(), time.monotonic() - begun, name))
            looked.add(name)
            counts["passes"] += 1

    Loops._pass = counted_pass  # type: ignore[method-assign]
    aiohttp.ClientSession._request = counted_request  # type: ignore[method-assign]
    connection.Connection.exchange = counted_exchange  # type: ignore[method-assign]
    KazooClient._call = counted_call
    connection.asyncio.open_connection = counted_connection


async def tell(file: Path) -> None:
    told = time.monotonic()
    while True:
        due = time.monotonic() + EVERY
        await asyncio.sleep(EVERY)
        late.append(time.monotonic() - due)
        if len(late) > 1 and time.monotonic() - told >= 0.25:
            told = time.monotonic()
            recent = late[-round(RECENT / EVERY):]
            figures: dict[str, float] = {"looked": len(looked), "late_most": max(recent)}
            figures["late_p99"] = statistics.quantiles(recent, n=100)[98]
            lasted = {of: [took for ended, took, name in passes if ended > told - RECENT and (name == "largest") is of]
                      for of in (False, True)}
            if len(lasted[False]) > 1:
                hundredths = statistics.quantiles(lasted[False], n=100)
                figures |= {"pass_p50": hundredths[49], "pass_p99": hundredths[98]}
            if lasted[True]:
                figures |= {"largest_p50": statistics.median(lasted[True]), "largest_most": max(lasted[True])}
            new = file.with_suffix(".new")
            new.write_text(json.dumps({**counts, **figures}))
            new.rename(file)


async def main() -> None:
    telling = asyncio.create_task(tell(Path(os.environ["COUNTS"])))
    try:
        await run_operator(read_settings(os.environ))
    finally:
        telling.cancel()


if __name__ == "__main__":
    os.environ.setdefault("USER", "switchover")
    if mebibytes := os.environ.get("MEMORY"):
        memory.limit = lambda: int(mebibytes) * memory.MIB
    count()
    asyncio.run(main())
