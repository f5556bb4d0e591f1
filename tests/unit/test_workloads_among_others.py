"""What is read of one workload costs what it costs alone, however many pods others have in its namespace."""

from collections import Counter
from typing import Any

from simulation.virtual_time import Timeline
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.workloads import KubernetesWorkloads

LABELS = {"app": "orders", "instance": "shop"}
SELECTOR = {"matchLabels": LABELS, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}


class Asked(ApiServer):
    """Has one workload, and writes down which collections are asked for, and by which labels."""

    def __init__(self) -> None:
        self.namespace = "shop"
        self.collections: dict[str, Any] = {}
        self.asked: Counter[str] = Counter()

    async def get(self, path: str) -> dict[str, Any]:
        template = {"metadata": {"labels": {**LABELS, "tier": "back"}}, "spec": {"containers": []}}
        return {"metadata": {"name": "orders", "uid": "u", "resourceVersion": "1", "generation": 1},
                "spec": {"selector": SELECTOR, "template": template}}

    async def events(self, uid: str, most: int) -> list[dict[str, Any]]:
        return []

    async def items(self, path: str, labels: Any = None) -> list[dict[str, Any]]:
        self.collections[path.rpartition("/")[2]] = labels
        self.asked[path.rpartition("/")[2]] += 1
        return []


async def test_pods_and_replica_sets_of_consumers_are_asked_for_by_their_selector() -> None:
    server = Asked()
    found = await KubernetesWorkloads(server, Timeline()).member_workloads([("Deployment", "orders")])
    assert found["orders"] is not None
    assert {kind: server.collections[kind] for kind in ("pods", "replicasets")} == {"pods": LABELS, "replicasets": LABELS}


async def test_and_so_are_the_pods_of_brokers() -> None:
    server = Asked()
    assert await KubernetesWorkloads(server, Timeline()).stateful_set("orders") is not None
    assert server.collections["pods"] == LABELS


async def test_what_is_of_no_workload_alone_is_asked_for_once_for_all_of_them() -> None:
    server = Asked()
    found = await KubernetesWorkloads(server, Timeline()).stateful_sets(["kafka", "kafka-controller"])
    assert None not in found.values()
    assert server.asked == {"pods": 2, "poddisruptionbudgets": 1, "persistentvolumeclaims": 1}
