"""The one change of a brokers' template and its way back, on a real API server."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from switchover.answers.clock import WallClock
from switchover.answers.errors import Fenced
from switchover.api.kafka_migration import BrokerSet
from switchover.cluster import names, template
from switchover.cluster.door import brokers, mount
from switchover.kubernetes import reports
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.survey import KubernetesSurvey
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.workloads import Workload

BROKERS = BrokerSet.model_validate({"name": "kafka"})
SETTINGS = {"log.dirs": "/data/one,/data/two", "inter.broker.protocol.version": "3.5-IV2",
            "listener.security.protocol.map": "INTERNAL:SASL_SSL,CLIENTS:PLAINTEXT"}
START = "/kafka/bin/kafka-server-start.sh"
SCRIPT = f"set -e && [ 1 -lt 2 ] && {START} /etc/kafka/server.properties </dev/null >&2"
"""The API server writes <, > and & as escapes where it compares JSON: a test of such a value never passes."""


def stateful_set() -> dict[str, Any]:
    """With a variable of every kind, as a real API server fills their fields in; one uses another."""
    variables = [
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "KAFKA_ADVERTISED_LISTENERS", "value": "PLAINTEXT://$(POD).kafka:9092"},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "password"}}},
        {"name": "JAVA_TOOL_OPTIONS", "value": "-Dmine=1"},
    ]
    container = {"name": "kafka", "image": "kafka", "command": ["sh", "-c", SCRIPT], "env": variables,
                 "envFrom": [{"prefix": "KAFKA_", "configMapRef": {"name": "base"}}],
                 "volumeMounts": [{"name": "config", "mountPath": "/etc/kafka"}, {"name": "data", "mountPath": "/data"}]}
    pod = {"containers": [{"name": "metrics", "image": "metrics"}, container],
           "initContainers": [{"name": "wait", "image": "kafka", "command": ["true"]}],
           "volumes": [{"name": "config", "configMap": {"name": "kafka-config"}}, {"name": "data", "emptyDir": {}}]}
    labels = {"app": "kafka"}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "kafka"}, "spec": {
        "serviceName": "kafka", "replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod}}}


async def read(workloads: KubernetesWorkloads) -> Workload:
    found = await workloads.stateful_set("kafka")
    assert found is not None
    return found


@pytest.fixture
async def workloads(server: ApiServer, kubectl: Callable[..., Any], namespace: str) -> KubernetesWorkloads:
    kubectl("-n", namespace, "apply", "-f", "-", stdin=yaml.safe_dump(stateful_set()))
    return KubernetesWorkloads(server, WallClock())


async def test_a_template_goes_there_and_back_whatever_its_commands_say(workloads: KubernetesWorkloads) -> None:
    before = await read(workloads)
    original = template.original_manifest(before, brokers.find(before.template, BROKERS, SETTINGS), 1, {})["data"]
    await workloads.patch("apps/v1", "StatefulSet", "kafka", template.patch(before, BROKERS))
    ours = await read(workloads)
    assert template.is_ours(ours, BROKERS)
    with pytest.raises(Fenced):
        await workloads.patch("apps/v1", "StatefulSet", "kafka", template.restore_template(before, original))
    await workloads.patch("apps/v1", "StatefulSet", "kafka", template.restore_template(ours, original))
    restored = await read(workloads)
    assert restored.template == before.template
    assert restored.update_strategy == template.ON_DELETE, "pods are still replaced by eviction only"
    await workloads.patch("apps/v1", "StatefulSet", "kafka", template.restore_strategy(restored, original))
    last = await read(workloads)
    assert last.update_strategy == before.update_strategy
    assert template.is_restored(last, original)


async def test_what_the_api_server_keeps_is_what_was_written(server: ApiServer, workloads: KubernetesWorkloads) -> None:
    """A copy of the script's directory, the door, the pod's edits, and what the user had, in its order."""
    before = await read(workloads)
    tried = await KubernetesSurvey(server).try_patch("StatefulSet", "kafka", template.patch(before, BROKERS))
    assert (await read(workloads)).template == before.template, "a dry run changes nothing"
    await workloads.patch("apps/v1", "StatefulSet", "kafka", template.patch(before, BROKERS))
    ours = await read(workloads)
    assert (ours.template, ours.update_strategy) == (tried.template, tried.update_strategy)
    pod, user = ours.template["spec"], before.template["spec"]
    metrics, kafka = pod["containers"]
    assert metrics == user["containers"][0]
    assert kafka["volumeMounts"] == [
        *user["containers"][1]["volumeMounts"],
        {"name": mount.RUN_VOLUME, "mountPath": "/kafka/bin", "subPath": "start"},
        {"name": mount.VOLUME, "mountPath": mount.SCRIPT, "subPath": "door.sh", "readOnly": True},
        {"name": mount.VOLUME, "mountPath": mount.EDITS, "subPathExpr": "$(SWITCHOVER_POD_NAME)", "readOnly": True},
        {"name": mount.FILES_VOLUME, "mountPath": mount.RUN},
    ]
    assert pod["volumes"] == [
        *user["volumes"],
        {"name": mount.VOLUME, "secret": {"secretName": "kafka-switchover", "defaultMode": 0o555}},
        *mount.DIRECTORIES,
    ]
    pod_name = {"name": "SWITCHOVER_POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}
    *first, options = user["containers"][1]["env"]
    assert kafka["env"] == [pod_name, *first, {**options, "value": "-Dmine=1 -Dsun.net.inetaddr.ttl=1"}]
    assert [each["name"] for each in pod["initContainers"]] == [mount.KEEPER, "wait", reports.DISKS]
    assert pod["initContainers"][0]["command"][4] == START

    await workloads.patch("apps/v1", "StatefulSet", "kafka", template.patch(ours, BROKERS))
    again = await read(workloads)
    assert again.template == ours.template
    assert again.generation == ours.generation, "the same change once more is none: no pod would be outdated by it"


async def test_what_the_brokers_were_is_kept_word_for_word(workloads: KubernetesWorkloads) -> None:
    before = await read(workloads)
    found = brokers.find(before.template, BROKERS, SETTINGS)
    manifest, name = template.original_manifest(before, found, 1, {}), names.original("kafka", 1)
    assert await workloads.original(name) is None
    for _ in range(2):                                     # its data cannot change: the same again must be welcome
        await workloads.apply(manifest)
    kept = await workloads.original(name)
    assert kept == manifest["data"]
    assert kept is not None
    assert brokers.stored(kept) == found == brokers.Brokers("kafka", START, "/data/one", "3.9", True, ("INTERNAL",), "",
                                                           "3.5-IV2", listener="PLAINTEXT")
    assert template.is_restored(before, kept)
