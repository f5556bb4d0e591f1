"""A namespace with a quota: what we make is admitted where the brokers were, and what is not made is told with why."""

import asyncio
from collections.abc import Callable
from typing import Any

import yaml

from patience import Patience
from switchover.api.kafka_migration import KafkaMigrationSpec, RehearsalSpec
from switchover.cluster.controllers import manifests
from switchover.cluster.door import brokers as door_brokers
from switchover.cluster.facts import Export
from switchover.cluster.rehearsal import replica_job
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.workloads import Workload

SPEC = KafkaMigrationSpec.model_validate({
    "zookeeper": {"connect": "zookeeper:2181"}, "kafka": {"bootstrapServers": "kafka:9092"}, "brokers": [{"name": "kafka"}],
    "controllers": {"storage": {"size": "1Gi"}}})
CONTAINER = {"name": "kafka", "image": "localhost/kafka:1",
             "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}}
TEMPLATE = {"metadata": {"labels": {"app": "kafka"}}, "spec": {"containers": [CONTAINER]}}
FOUND = door_brokers.find(TEMPLATE, SPEC.brokers[0], {"log.dirs": "/var/lib/kafka"})
MADE = manifests.manifests("main", SPEC, SPEC.brokers[0], {"template": TEMPLATE}, (), FOUND)


def quota(cpus: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all"},
            "spec": {"hard": {"limits.cpu": str(cpus), "limits.memory": "64Gi", "requests.cpu": "64"}}}


async def controllers(workloads: KubernetesWorkloads, pods: int) -> Workload:
    """Their StatefulSet, once so many pods are there and of the others it is told why not."""
    for _ in Patience(60).looks():
        found = await workloads.stateful_set("kafka-controller")
        assert found is not None
        if len(found.pods) == pods and all(found.absent.values()):
            return found
        await asyncio.sleep(0.2)
    raise AssertionError(f"{len(found.pods)} pods of {pods}, the others: {found.absent}")


async def test_controllers_are_admitted_where_brokers_are_and_one_for_which_there_is_no_room_is_told(
        workloads: KubernetesWorkloads, apply: Callable[..., None]) -> None:
    """A quota refuses every container that does not say what it counts."""
    apply(quota(4))
    for manifest in MADE:
        await workloads.apply(manifest)
    found = await controllers(workloads, 2)
    [(name, why)] = found.absent.items()
    assert f'Create Pod {name} in StatefulSet kafka-controller failed error: pods "{name}" is forbidden: exceeded' in why
    assert "limits.cpu=2, used: limits.cpu=4, limited: limits.cpu=4" in why
    apply(quota(6))
    assert (await controllers(workloads, 3)).absent == {}


async def test_a_volume_that_nobody_provisions_is_told_of_the_pod_that_waits(
        workloads: KubernetesWorkloads, apply: Callable[..., None], kubectl: Callable[..., Any], namespace: str) -> None:
    for manifest in MADE:
        await workloads.apply(manifest)
    found = await controllers(workloads, 3)
    claim = f"{manifests.METADATA}-kafka-controller-0"
    uid = kubectl("-n", namespace, "get", "pvc", claim, "-o", "jsonpath={.metadata.uid}").stdout
    assert (await controllers(workloads, 3)).pods.keys() == found.pods.keys()
    apply({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "told"}, "type": "Warning", "count": 3,
           "reason": "ProvisioningFailed", "message": "no room in the pool", "source": {"component": "csi"},
           "involvedObject": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim, "uid": uid,
                              "namespace": namespace}, "lastTimestamp": "2100-01-01T00:00:00Z"})
    again = KubernetesWorkloads(workloads._server, workloads._clock)     # nothing of before is remembered
    pod = (await controllers(again, 3)).pods["kafka-controller-0"]
    assert f"claim {claim}: ProvisioningFailed: no room in the pool" in pod.trouble


async def test_a_rehearsal_for_which_there_is_no_room_says_so(
        workloads: KubernetesWorkloads, apply: Callable[..., None]) -> None:
    """Each container of its pod has a limit where the brokers' has, so that the sum is all that is in the way."""
    apply(quota(4))
    job = replica_job.job("main-rehearsal", RehearsalSpec(), TEMPLATE["spec"], CONTAINER, "/opt/kafka/start.sh", "3.9",
                          "localhost/switchover:1", Export("", ()), "n0nce", {})
    uid = await workloads.create(yaml.safe_load(yaml.safe_dump(job)))
    for _ in Patience(60).looks():
        found = await workloads.job("main-rehearsal", uid)
        assert found is not None
        if "FailedCreate" in found.detail:
            break
        await asyncio.sleep(0.2)
    assert "is forbidden: exceeded quota: all, requested: limits.cpu=8, used: limits.cpu=0" in found.detail
    assert "must specify" not in found.detail
