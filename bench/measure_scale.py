"""What many migrations cost one operator, on a real API server, with real brokers and ZooKeeper.

    python -m measure_scale 1 10 100
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
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import measure_views
from adapters.clusters import KafkaCluster, KRaftNode, kafka_cluster, node
from apiserver.conftest import ROOT, STATE, sandbox
from apiserver.many_migrations import CLUSTERS, PROGRESS, SCALED, Largest, Wanted, crowded
from apiserver.operator_figures import measured
from measure_largest_cluster import BROKERS, PARTITIONS, written
from switchover.kubernetes.client import api_server

SETTLE, WINDOW = float(os.environ.get("SETTLE", "60")), float(os.environ.get("WINDOW", "60"))
TREES = os.environ.get("TREES", "operator").split(",")


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
        yield Largest(f"{zookeeper.address}/kafka", f"127.0.0.1:{ports[0]}", BROKERS)
    brokers.kill()


async def measure(kubeconfig: str, what: Wanted, servers: str | KafkaCluster, directory: Path) -> None:
    async with largest_cluster(what.topics, directory / "largest") as largest:
        for tree in TREES:
            figures = await measured(kubeconfig, tree, what, servers, directory, settle=SETTLE, window=WINDOW,
                                     largest=largest)
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
