"""The one change of a brokers' template and its way back, on a real API server."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from switchover.adapters.api_server import ApiServer
from switchover.adapters.clock import WallClock
from switchover.adapters.kubernetes import KubernetesWorkloads
from switchover.api.kafka_migration import BrokerSet
from switchover.core.kraft import template
from switchover.core.kraft.facts import Workload
from switchover.ports import Fenced

BROKERS = BrokerSet.model_validate({"name": "kafka", "configuration": {"configMapRef": {"name": "kafka-config"}}})
SCRIPT = "set -e && [ 1 -lt 2 ] && kafka-server-start.sh </dev/null >&2"
"""The API server writes <, > and & as escapes where it compares JSON: a test of such a value never passes."""


def stateful_set() -> dict[str, Any]:
    container = {"name": "kafka", "image": "kafka", "command": ["sh", "-c", SCRIPT],
                 "volumeMounts": [{"name": "config", "mountPath": "/etc/kafka"}]}
    pod = {"containers": [container], "volumes": [{"name": "config", "configMap": {"name": "kafka-config"}}]}
    labels = {"app": "kafka"}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "kafka"}, "spec": {
        "serviceName": "kafka", "replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod}}}


async def read(workloads: KubernetesWorkloads) -> Workload:
    found = await workloads.stateful_set("kafka")
    assert found is not None
    return found


async def test_a_template_goes_there_and_back_whatever_its_commands_say(
    server: ApiServer, kubectl: Callable[..., Any], namespace: str
) -> None:
    workloads = KubernetesWorkloads(server, WallClock())
    kubectl("-n", namespace, "apply", "-f", "-", stdin=yaml.safe_dump(stateful_set()))
    before = await read(workloads)
    original = template.original_manifest(before, 1, {})["data"]
    await workloads.patch("apps/v1", "StatefulSet", "kafka", template.patch(before, BROKERS, ["kafka-0", "kafka-1"], ()))
    ours = await read(workloads)
    assert template.is_ours(ours, BROKERS)
    with pytest.raises(Fenced):
        await workloads.patch("apps/v1", "StatefulSet", "kafka", template.restore_template(before, original))
    await workloads.patch("apps/v1", "StatefulSet", "kafka", template.restore_template(ours, original))
    restored = await read(workloads)
    assert restored.template == before.template
    assert restored.update_strategy == template.ON_DELETE, "pods are still replaced by eviction only"
    await workloads.patch("apps/v1", "StatefulSet", "kafka", template.restore_strategy(restored, original))
    assert (await read(workloads)).update_strategy == before.update_strategy
