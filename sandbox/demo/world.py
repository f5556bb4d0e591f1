"""The world before Switchover: a Kafka on ZooKeeper in namespace `demo`, with topics and traffic."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from demo import tools
from demo.cluster import Cluster, CommandFailed
from demo.proofs import broker_mode, zookeeper_connections
from patience import Patience

MANIFESTS = Path(__file__).parents[1] / "manifests"
LIGHT = MANIFESTS.with_name("manifests-light")
"""The same with a load of fewer records in fewer requests."""
BROKERS = ("kafka-0", "kafka-1", "kafka-2")
SERVERS = ("zookeeper-0", "zookeeper-1", "zookeeper-2")
CHART, RELEASE = "chart", "kafka"
"""The directory beside a world's manifests with the chart of its brokers, where they come from one, and its release."""
NAME_CACHE_SECONDS = 35
FOREVER = "--timeout=-1s"
"""For `kubectl wait`, whose own patience knows nothing of a busy machine."""
BROKER_PORT, CLIENTS_PORT, ZOOKEEPER_PORT = 9092, 9094, 2181


def images(manifests: Path = MANIFESTS) -> dict[str, str]:
    """The images that a directory of manifests uses, those of its bases and its chart too: name there -> full name."""
    kustomization = yaml.safe_load((manifests / "kustomization.yaml").read_text())
    bases = [manifests / name for name in kustomization["resources"] if (manifests / name).is_dir()]
    own = {image["name"]: f"{image['newName']}:{image['newTag']}" for image in kustomization.get("images", [])}
    if (values := manifests / CHART / "values.yaml").exists():
        own |= {CHART: yaml.safe_load(values.read_text())["image"]}
    return {name: image for base in bases for name, image in images(base).items()} | own


def remove(cluster: Cluster) -> None:
    """Take everything of an earlier run away, also of one that was interrupted in the middle of a migration.

    The finalizer of a migration under way refuses its deletion, and rightly so; here the whole world goes.
    """
    # The operator first, pods and all: it would put the finalizer back.
    ours = ("--selector", "app.kubernetes.io/name=switchover")
    cluster.kubectl("delete", "deployment", *ours, "--cascade=foreground", timeout=120)
    release = '{"metadata":{"finalizers":null}}'
    for kind in ("kafkamigrations", "consumergroupmigrations"):    # another demo may have left them
        with contextlib.suppress(CommandFailed):                   # the kind may not exist
            for found in cluster.items(kind):
                cluster.kubectl("patch", kind, found["metadata"]["name"], "--type", "merge", "--patch", release)
    cluster.kubectl("delete", "namespace", cluster.namespace, "--ignore-not-found", timeout=240)
    crds = ("kafkamigrations.switchover.dev", "consumergroupmigrations.switchover.dev")
    cluster.kubectl("delete", "crd", *crds, "--ignore-not-found", timeout=60)


def deploy(cluster: Cluster, say: Callable[[str], None], manifests: Path = MANIFESTS, *helm: str) -> None:
    """ZooKeeper, Kafka, topics and load; back once every part is ready. `helm` is how a chart is applied.

    Raises CommandFailed.
    """
    cluster.kubectl("create", "namespace", cluster.namespace)
    cluster.kubectl("apply", "--kustomize", str(manifests))
    if (chart := manifests / CHART).exists():
        cluster.helm("install", RELEASE, str(chart), *helm)
    for workload in ("statefulset/zookeeper", "statefulset/kafka"):
        cluster.kubectl("rollout", "status", workload, timeout=300)
        say(f"{workload} is ready")
    cluster.kubectl("wait", "job/topics", "--for=condition=complete", FOREVER, timeout=240)
    say("topics exist")
    for workload in ("deployment/tools", "deployment/producer", "deployment/consumer"):
        cluster.kubectl("rollout", "status", workload, timeout=120)
    await_in_sync(cluster)
    say("producer and consumers run, all replicas are in sync")


def await_in_sync(cluster: Cluster, timeout: float = 180) -> None:
    """Wait until Kafka names no under-replicated partition. Raises CommandFailed when it goes on for too long."""
    patience = Patience(timeout)
    question = "kafka-topics.sh --bootstrap-server kafka:9092 --describe --under-replicated-partitions"
    while lagging := tools.run(cluster, question).strip():
        if patience.over:
            raise CommandFailed(f"partitions are still under-replicated after {patience}:\n{lagging}")
        time.sleep(2)


def rolling_restart(cluster: Cluster) -> tuple[float, float]:
    """`kubectl rollout restart` of the brokers; its window, from the command until every replica was in sync again.

    Back only when the brokers have forgotten the pods' old addresses (Java remembers a name for 30 s), so that the next
    restart, or the migration, does not pay for this one.
    """
    start = time.time()
    cluster.kubectl("rollout", "restart", "statefulset/kafka")
    cluster.kubectl("rollout", "status", "statefulset/kafka", timeout=600)
    await_in_sync(cluster)
    end = time.time()
    time.sleep(NAME_CACHE_SECONDS)
    return start, end


def modes(cluster: Cluster) -> dict[str, str]:
    """The mode of every broker by its ApiVersions."""
    return {broker: broker_mode(cluster, broker, BROKER_PORT) for broker in BROKERS}


def connections(cluster: Cluster) -> dict[str, int]:
    """Connections that every ZooKeeper server counts."""
    servers = sorted(item["metadata"]["name"] for item in cluster.items("pods", "--selector", "app=zookeeper"))
    return {server: zookeeper_connections(cluster, server, ZOOKEEPER_PORT) for server in servers}
