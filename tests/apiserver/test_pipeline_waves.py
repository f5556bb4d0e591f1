"""What the inventory writes, before a real API server."""

from typing import Any

import pytest
import yaml
from kubernetes import client

from switchover.pipeline.config import Kafka, Workload, ZooKeeper
from switchover.pipeline.inventory.readiness import Coordination, Group, Storage
from switchover.pipeline.inventory.waves import Wave, document, migration

WORKLOAD = Workload.model_validate({"groups": "*", "name": "app", "container": "app", "template": {
    "env": [{"name": "GROUP_PROTOCOL", "value": "consumer"}]}, "bridge": {"image": "enabled:1"}})
CONNECTION = Kafka.model_validate({"bootstrapServers": "kafka:9092", "credentialsRef": {"name": "kafka-client"}})
TREE = ZooKeeper.model_validate({"connect": "zookeeper:2181", "credentialsRef": {"name": "zookeeper-client"}})
NAMES = ["orders", "Orders_2", "a\nb", "\u202egnp.exe", "é/..", "x" * 255, "-"]


@pytest.mark.parametrize("coordination", [Coordination.KAFKA, Coordination.ZOOKEEPER])
def test_a_wave_is_taken_whatever_the_groups_are_called(
        coordination: Coordination, crds: list[dict[str, Any]], api_client: client.ApiClient, namespace: str) -> None:
    groups = [Group(
        name=name, topics=("t",), partitions=8, storage=Storage.KAFKA, coordination=coordination, protocol="Classic",
        protocol_type="consumer", strategy="range", state="Stable", members=2, subscription="", lag=0, growth=None,
        headroom=1.0, lost=0, rebalances=None, commit_interval=None, last_commit=1) for name in NAMES]
    text = document(Wave(7, tuple(NAMES), 56), [
        migration(group, 7, WORKLOAD, CONNECTION, TREE) for group in groups])
    found = list(yaml.safe_load_all(text))
    api = client.CustomObjectsApi(api_client)
    for each in found:
        made = api.create_namespaced_custom_object(
            "switchover.dev", "v1alpha1", namespace, "consumergroupmigrations", each, field_validation="Strict")
        assert made["spec"]["desiredState"] == "Planned"
        assert made["metadata"]["labels"] == {"switchover.dev/wave": "7"}
    assert [each["spec"]["group"] for each in found] == NAMES
    assert len({each["metadata"]["name"] for each in found}) == len(NAMES)
