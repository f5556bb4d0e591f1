"""What one real coordinator of Kafka 4.4 does under thousands of members, and what the gate of its capacity says of them.

    python -m measure_coordinator 100 1000 5000

Members of each protocol, in groups of 200 on one topic of 1,000 partitions: all but two join, the gate is asked whether two
more may come, they come, heartbeats are timed for 20 s, the gate is asked again, everybody leaves. The gate's facts are read
by WireGroups in a process of its own, as an operator reads them.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from adapters.capacity import BATCH, capacity, stable
from adapters.clusters import KRaftNode, node
from adapters.eventually import eventually
from adapters.group_members import create_topic
from adapters.processor import cpu_seconds
from adapters.servers import Server
from adapters.simulated_members import Crowd, Topic, crowd
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.group import MemberProtocol
from switchover.network.credentials import Access

TOPIC = Topic("orders", 1000)
GROUP_SIZE = 200
CONNECTIONS = 100
HOLD = 20.0                 # seconds of heartbeats that are timed
LIMIT = 600.0               # seconds that everything may take
KAFKAS_OWN = "group.initial.rebalance.delay.ms=3000\n"      # the default, which our other tests do without
HEAP = "1g"                 # Kafka's own too
SIZES = ("group.max.size", "group.consumer.max.size")


def groups_of(members: int) -> dict[str, int]:
    """As few groups of GROUP_SIZE as hold so many."""
    return {f"group-{start // GROUP_SIZE}": min(GROUP_SIZE, members - start) for start in range(0, members, GROUP_SIZE)}


async def tell_gate(servers: str, group: str, limit: int) -> None:
    """The gate's words, and what the reading of its facts takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    verdict = await capacity(servers, group, limit)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"  gate, limit {limit}: {verdict.outcome} {verdict.reason}: {verdict.message}; {verdict.subject} "
          f"{verdict.observed} {verdict.threshold}; read in {wall:.2f} s (CPU {cpu:.2f})", flush=True)


async def ask_gate(servers: str, group: str, limit: int) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "measure_coordinator", "gate", servers, group, str(limit))
    assert await process.wait() == 0


# --- figures ----------------------------------------------------------------------------------------------------------


def quantiles(seconds: list[float]) -> str:
    """p50, p99 and the most, in ms."""
    hundredths = statistics.quantiles(seconds, n=100)
    return f"{1000 * hundredths[49]:.1f} / {1000 * hundredths[98]:.1f} / {1000 * max(seconds):.0f} ms"


def memory(pid: int) -> str:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return f"{int(status['VmRSS'].split()[0]) // 1024} MiB"


def live_heap(server: Server) -> str:
    """Of the broker, after a full collection."""
    def jcmd(command: str) -> str:
        return subprocess.run(["jcmd", str(server.pid), command], capture_output=True, text=True, check=True).stdout

    jcmd("GC.run")
    used = [line.split(" used ")[1].split("K")[0] for line in jcmd("GC.heap_info").splitlines()
            if "generation" in line and " used " in line]
    return f"{sum(map(int, used)) // 1024} MiB"


def load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


async def timed_heartbeats(server: Server, held: Crowd) -> None:
    held.tally.answered.clear()
    held.tally.late.clear()
    broker, own = cpu_seconds(server.pid), time.process_time()
    await asyncio.sleep(HOLD)
    broker, own = cpu_seconds(server.pid) - broker, time.process_time() - own
    beats = held.tally
    print(f"  {len(beats.answered)} heartbeats in {HOLD:.0f} s: sent to answered {quantiles(beats.answered)}; due to "
          f"answered {quantiles(beats.late)}; CPU of the broker {broker / HOLD:.0%}, ours {own / HOLD:.0%}; {load()}",
          flush=True)


# --- the measurement --------------------------------------------------------------------------------------------------


async def measure(server: KRaftNode, protocol: MemberProtocol, members: int, seconds: float) -> None:
    groups = groups_of(members - BATCH)
    last = list(groups)[-1]
    print(f"{members} {protocol} members, {len(groups)} groups, {CONNECTIONS} connections; {load()}", flush=True)
    async with crowd(server.address, protocol, TOPIC, connections=CONNECTIONS, seconds=seconds) as held:
        begun = time.perf_counter()
        await held.join(groups)
        joined = time.perf_counter() - begun
        await stable(server.address, len(groups))
        print(f"  {members - BATCH} joined after {joined:.1f} s, all groups Stable after "
              f"{time.perf_counter() - begun:.1f} s; {dict(held.tally.lost)}; {load()}", flush=True)
        await ask_gate(str(server.address), last, members)
        begun = time.perf_counter()
        await held.join({last: BATCH})
        await stable(server.address, len(groups))
        print(f"  {BATCH} more: Stable after {time.perf_counter() - begun:.1f} s; {dict(held.tally.lost)}", flush=True)
        held.tally.lost.clear()
        await timed_heartbeats(server, held)
        await ask_gate(str(server.address), last, members)
        print(f"  lost: {dict(held.tally.lost)}; live heap of the broker {live_heap(server)}, memory {memory(server.pid)}, "
              f"ours {memory(os.getpid())}", flush=True)
        begun = time.perf_counter()
    await stable(server.address, 0)
    print(f"  all left after {time.perf_counter() - begun:.1f} s", flush=True)
    await ask_gate(str(server.address), last, members)


async def measure_all(server: KRaftNode, sizes: list[int]) -> None:
    end = time.monotonic() + LIMIT
    async with asyncio.timeout(LIMIT):
        await create_topic(server.address, TOPIC.name, TOPIC.partitions)
        groups = WireGroups(Access(str(server.address)))
        await eventually(lambda: groups.describe("group-0"), lambda _: True, LIMIT)
        settings = (await groups.broker(server.address, 1)).settings
        print({name: settings[name] for name in SIZES}, flush=True)
        for protocol in (MemberProtocol.CONSUMER, MemberProtocol.CLASSIC):
            for members in sizes:
                await measure(server, protocol, members, end - time.monotonic())


def main(*sizes: str) -> None:
    with tempfile.TemporaryDirectory() as directory, node(Path(directory), "4.4") as server:
        server.heap = HEAP
        server.begin(KAFKAS_OWN)
        asyncio.run(measure_all(server, [int(size) for size in sizes]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["gate"]:
        asyncio.run(tell_gate(sys.argv[2], sys.argv[3], int(sys.argv[4])))
    else:
        main(*sys.argv[1:])
