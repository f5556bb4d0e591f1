"""Deleting the migration takes nothing away, not even with a foreground cascade (docs/architecture.md#promises)."""

import asyncio
from collections.abc import Callable
from typing import Any

import yaml

from patience import Patience, stretched
from switchover.answers.clock import WallClock
from switchover.api.kafka_migration import KafkaMigrationSpec
from switchover.cluster import names, template
from switchover.cluster.controllers import manifests
from switchover.cluster.door import brokers as door_brokers
from switchover.cluster.door import edits, mount
from switchover.cluster.door.mount import DOOR
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.workloads import KubernetesWorkloads

SPEC = {
    "zookeeper": {"connect": "zookeeper:2181"},
    "kafka": {"bootstrapServers": "kafka:9092"},
    "brokers": [{"name": "kafka"}],
    "controllers": {"storage": {"size": "1Gi"}},
}
LABELS = {"app": "kafka"}
USERS_OWN = (
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kafka-config"},
     "data": {"server.properties": "zookeeper.connect=zookeeper:2181\n"}},
    {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "kafka"},
        "spec": {
            "serviceName": "kafka",
            "replicas": 3,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {
                    "containers": [{"name": "kafka", "image": "localhost/kafka:1",
                                    "volumeMounts": [{"name": "config", "mountPath": "/etc/kafka"}]}],
                    "volumes": [{"name": "config", "configMap": {"name": "kafka-config"}}],
                },
            },
        },
    },
)
KINDS = {
    "statefulset": {"kafka", "kafka-controller"},
    "service": {"kafka-controller"},
    "secret": {"kafka-switchover", "kafka-controller-switchover"},
    "poddisruptionbudget": {"kafka-controller"},
    "persistentvolumeclaim": {f"{manifests.METADATA}-kafka-controller-{n}" for n in range(3)},
    "pod": {*(f"kafka-{n}" for n in range(3)), *(f"kafka-controller-{n}" for n in range(3))},
}


async def touch_everything(server: ApiServer, uid: str) -> None:
    """All that a migration writes on its way, by the functions that the plan uses."""
    workloads = KubernetesWorkloads(server, WallClock())
    spec = KafkaMigrationSpec.model_validate(SPEC)
    brokers, labels = spec.brokers[0], names.labels("main")
    before = await workloads.stateful_set("kafka")
    assert before is not None
    claim = {"name": "kafka", "annotations": {names.CLAIM: uid}}
    await workloads.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": claim})
    found = door_brokers.find(before.template, brokers, {"log.dirs": "/var/lib/kafka"})
    kept = template.original_manifest(before, found, 1, labels)
    await workloads.apply(kept)
    original = await workloads.original(names.original("kafka", 1))
    assert original is not None
    assert names.digest(original) == names.digest(kept["data"]), "by which it is known to be ours"
    for name in ("kafka", "kafka-controller"):
        files = {names.pod(name, ordinal): edits.written(("mode A",)) for ordinal in range(3)}
        await workloads.write_node_files(names.node_files(name), {mount.SCRIPT_KEY: DOOR, **files}, labels)
    for manifest in manifests.manifests("main", spec, brokers, original, before.claim_templates, found):
        await workloads.apply(manifest)
    await workloads.patch("apps/v1", "StatefulSet", "kafka", template.patch(before, brokers))
    after = await workloads.stateful_set("kafka")
    assert after is not None
    assert after.claimed_by == uid
    assert template.is_ours(after, brokers)
    assert original["template"] == before.template


def found(kubectl: Callable[..., Any], namespace: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The metadata of everything that must stay, by kind and name."""
    listed = {}
    for kind, expected in KINDS.items():
        items = yaml.safe_load(kubectl("-n", namespace, "get", kind, "-o", "yaml").stdout)["items"]
        listed[kind] = {each["metadata"]["name"]: each["metadata"] for each in items
                        if each["metadata"]["name"] in expected}
    return listed


async def test_a_foreground_cascade_leaves_everything(
    server: ApiServer, kubectl: Callable[..., Any], namespace: str, crds: object
) -> None:
    migration = {"apiVersion": "switchover.dev/v1alpha1", "kind": "KafkaMigration", "metadata": {"name": "main"},
                 "spec": SPEC}
    kubectl("-n", namespace, "apply", "-f", "-", stdin=yaml.safe_dump_all([*USERS_OWN, migration]))
    uid = kubectl("-n", namespace, "get", "kafkamigration", "main", "-o", "jsonpath={.metadata.uid}").stdout
    await touch_everything(server, uid)
    for _ in Patience(30).looks():
        before = found(kubectl, namespace)
        if {kind: set(items) for kind, items in before.items()} == KINDS:
            break
        await asyncio.sleep(0.2)
    assert {kind: set(items) for kind, items in before.items()} == KINDS
    kubectl("-n", namespace, "delete", "kafkamigration", "main", "--cascade=foreground", f"--timeout={stretched(30):.0f}s")
    await asyncio.sleep(5)                             # the garbage collector would have begun by now
    after = found(kubectl, namespace)
    for kind, items in before.items():
        for name, metadata in items.items():
            kept = after[kind].get(name)
            assert kept is not None, f"{kind} {name} is gone"
            assert kept["uid"] == metadata["uid"]
            assert "deletionTimestamp" not in kept
            owners = {owner["kind"] for owner in kept.get("ownerReferences", ())}
            assert owners <= ({"StatefulSet"} if kind == "pod" else set()), f"{kind} {name} is owned by {owners}"
