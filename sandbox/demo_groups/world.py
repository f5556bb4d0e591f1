"""The world before Switchover: Kafka 4.4 in namespace `demo`, two groups of six members under traffic."""

from collections.abc import Callable
from pathlib import Path

import demo.world
from demo.cluster import Cluster
from demo.world import FOREVER
from demo.world import remove as remove

MANIFESTS = Path(__file__).parents[1] / "manifests-groups"
LIGHT = MANIFESTS.with_name("manifests-groups-light")
"""The same with the group in Python alone, and a load of fewer records in fewer requests."""
LARGE = MANIFESTS.with_name("manifests-groups-large")
"""The same with a group of 12 members on 60 partitions, and without the other."""
TROUBLES = MANIFESTS.with_name("manifests-groups-troubles")
"""The same with `payments` in a StatefulSet of four static members in Python, and an autoscaler of `orders`."""
PRODUCERS = ("orders-producer", "payments-producer")
MEMBERS = ("orders", "payments")
POLICY = "group.consumer.migration.policy"
NODES = ("kafka-0", "kafka-1", "kafka-2")
PARTITIONS = 24


def images() -> list[str]:
    """Full names of the images that the manifests use."""
    return list(demo.world.images(MANIFESTS).values())


def deploy(cluster: Cluster, say: Callable[[str], None], manifests: Path = MANIFESTS) -> None:
    """Kafka, topics, producers and members; back once every part is ready. Raises CommandFailed."""
    cluster.kubectl("create", "namespace", cluster.namespace)
    cluster.kubectl("apply", "--kustomize", str(manifests))
    cluster.kubectl("rollout", "status", "statefulset/kafka", timeout=300)
    cluster.kubectl("wait", "job/topics", "--for=condition=complete", FOREVER, timeout=240)
    say("Kafka is ready, topics exist")
    for workload in _workloads(cluster, *PRODUCERS, *MEMBERS):
        cluster.kubectl("rollout", "status", workload, timeout=180)
    say("producers and members run")


def set_policy(cluster: Cluster, policy: str) -> None:
    """Restart every broker with that policy; back once all are ready. Raises CommandFailed."""
    nodes = ",".join(f'"{node}":"{policy}"' for node in NODES)
    cluster.kubectl("patch", "configmap", "kafka-migration-policy", "--type", "merge", "--patch", f'{{"data":{{{nodes}}}}}')
    cluster.kubectl("rollout", "restart", "statefulset/kafka")
    cluster.kubectl("rollout", "status", "statefulset/kafka", timeout=300)


def stop_traffic(cluster: Cluster) -> None:
    """Producers first, members after them, so that nothing is left that nobody delivered. Raises CommandFailed."""
    for apps in (PRODUCERS, MEMBERS):
        for workload in _workloads(cluster, *apps):
            cluster.kubectl("scale", workload, "--replicas=0")
        for app in apps:
            cluster.kubectl("wait", "pod", "--selector", f"app={app}", "--for=delete", FOREVER, timeout=120)


def _workloads(cluster: Cluster, *apps: str) -> list[str]:
    """The Deployments and StatefulSets of these apps, as kubectl names them."""
    found = cluster.items("deployments,statefulsets", "--selector", f"app in ({','.join(apps)})")
    return [f"{each['kind'].lower()}/{each['metadata']['name']}" for each in found]
