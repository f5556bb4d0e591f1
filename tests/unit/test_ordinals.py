"""A StatefulSet whose pods are counted from another number than 0: spec.ordinals.start, stable since Kubernetes 1.31."""

import json
import shlex
from dataclasses import replace
from typing import Any

from simulation.virtual_time import Timeline
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import Verdict as Outcome
from switchover.cluster.estimate import nodes_of
from switchover.cluster.gates.workloads import REPLICAS_UNCHANGED
from switchover.cluster.picture import Picture
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from unit.pictures import ACTIVE, moment, spoil, spoil_workload, value, workload_of
from unit.preflight_pictures import check, registered

FROM_ONE = ("kafka-1", "kafka-2", "kafka-3")


def from_one(picture: Picture) -> Picture:
    """The same brokers in pods that are counted from 1, each advertised by its pod's name."""
    pods = workload_of(picture).pods.values()
    picture = spoil_workload(picture, first_ordinal=1, pods={
        name: replace(pod, name=name) for name, pod in zip(FROM_ONE, pods, strict=True)})
    picture = spoil(picture, "zookeeper", brokers={})
    for broker_id, name in enumerate(FROM_ONE, 1):
        picture = registered(broker_id, f"{name}.kafka")(picture)
    return picture


def test_the_pods_are_those_that_there_are() -> None:
    picture = from_one(moment("Preflight"))
    assert check("ObjectsExist", picture).outcome is Outcome.PASS
    assert value(picture.broker_pods()) == {"kafka-1": 1, "kafka-2": 2, "kafka-3": 3}
    assert {name for name in nodes_of(picture) if name not in picture.controllers} == {*FROM_ONE}


def test_a_pod_that_goes_away_is_none_of_them() -> None:
    gone = spoil_workload(moment("Preflight"), first_ordinal=1)
    assert check("ObjectsExist", gone).reason == "PodsNotReady"


def test_who_counts_anew_in_the_middle_is_told_how_to_put_it_back() -> None:
    under_way = moment("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, state=ACTIVE)
    assert REPLICAS_UNCHANGED.check(under_way).outcome is Outcome.PASS
    verdict = REPLICAS_UNCHANGED.check(spoil_workload(under_way, first_ordinal=1))
    assert (verdict.reason, verdict.subject) == ("ReplicasChanged", "kafka")
    kubectl = shlex.split(verdict.unblocks)
    assert kubectl[:-1] == ["kubectl", "--namespace", "kafka", "patch", "statefulset", "kafka", "--type", "merge", "--patch"]
    assert json.loads(kubectl[-1]) == {"spec": {"ordinals": {"start": 0}}}


class Server(ApiServer):
    """Has a StatefulSet with these ordinals and no pod."""

    def __init__(self, ordinals: Any) -> None:
        self.namespace, self.ordinals = "kafka", ordinals

    async def get(self, path: str) -> dict[str, Any]:
        return {"metadata": {"name": "kafka", "uid": "u"},
                "spec": {"replicas": 2, "template": {"spec": {"containers": []}}, **self.ordinals}}

    async def events(self, uid: str, most: int) -> list[dict[str, Any]]:
        return []

    async def items(self, path: str, labels: Any = None) -> list[dict[str, Any]]:
        return []


async def test_where_they_begin_is_read() -> None:
    for ordinals, wanted in (({}, ("kafka-0", "kafka-1")), ({"ordinals": {"start": 5}}, ("kafka-5", "kafka-6"))):
        found = await KubernetesWorkloads(Server(ordinals), Timeline()).stateful_set("kafka")
        assert found is not None
        assert found.wanted == wanted
