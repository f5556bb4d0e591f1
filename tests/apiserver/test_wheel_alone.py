"""What a user does before anything is installed: the wheel alone, a kubeconfig, and a Kafka that answers."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.clusters import KafkaCluster, kafka_cluster
from adapters.eventually import eventually
from adapters.group_members import assignment, classic_member, create_topic, subscription
from installed import Installation, built_wheel, installed
from switchover.kafka.client.groups import WireGroups
from switchover.network.credentials import Access


@pytest.fixture
def wheel(tmp_path: Path) -> Iterator[Installation]:
    work = tmp_path / "work"
    work.mkdir()
    with installed(built_wheel(tmp_path / "wheel"), "cli", "cli-alone", work) as found:
        yield found


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaCluster]:
    with kafka_cluster(tmp_path / "cluster") as cluster:
        cluster.start_zookeeper_mode()
        yield cluster


def manifests(cluster: KafkaCluster, group: str) -> Mapping[str, Mapping[str, Any]]:
    """One of each kind, whose workloads nobody has made yet."""
    servers = {"bootstrapServers": cluster.bootstrap}
    return {
        "KafkaMigration": {"kafka": servers, "zookeeper": {"connect": cluster.zookeeper_connect},
                           "brokers": [{"name": "kafka"}], "controllers": {"storage": {"size": "1Gi"}}},
        "ConsumerGroupMigration": {"kafka": servers, "group": group, "protocol": {"to": "Consumer"}, "workloads": [
            {"name": "orders", "container": "app", "template": {"env": [{"name": "GROUP_PROTOCOL", "value": "consumer"}]}}]}}


async def test_preflight_and_plan_of_a_file_look_at_a_kafka_that_answers(
        wheel: Installation, kafka: KafkaCluster, kubeconfig: Path, namespace: str) -> None:
    server = kafka.brokers[1].address
    await create_topic(server, "orders", 2)
    await eventually(lambda: WireGroups(Access(kafka.bootstrap)).describe("orders"), lambda _: True)
    await classic_member(server, "orders", subscription("orders"), assignment("orders", 0, 1))
    specs = manifests(kafka, "orders")

    def run(command: str, kind: str, *options: str) -> str:
        manifest = {"apiVersion": "switchover.dev/v1alpha1", "kind": kind, "metadata": {"name": "new"}, "spec": specs[kind]}
        (wheel.directory / "migration.yaml").write_text(yaml.safe_dump(manifest))
        done = wheel.run("switchover", command, "-f", "migration.yaml", "-n", namespace, *options,
                         KUBECONFIG=str(kubeconfig))
        assert (done.returncode, done.stderr) == (1, ""), (kind, done.stdout, done.stderr)
        return done.stdout

    found = json.loads(run("preflight", "KafkaMigration", "-o", "json"))
    assert {each["code"] for each in found["findings"]} == {
        "StatefulSetMissing", "BrokersNotIdentified", "SingleZooKeeper", "LowControllerEpoch", "MetadataSize"}
    assert {each["reason"] for each in found["gates"] if each["verdict"] == "Unknown"} == {
        "BrokersNotIdentified", "NotObserved", "SettingsUnknown"}, "what rests on the StatefulSet"

    found = json.loads(run("preflight", "ConsumerGroupMigration", "-o", "json"))
    assert {each["code"] for each in found["findings"]} == {"WorkloadMissing", "WrongKafkaVersion", "OldToolsGoBlind"}
    assert "Unknown" not in {each["verdict"] for each in found["gates"]}
    assert {each["name"]: each["verdict"] for each in found["gates"]}["Group"] == "Pass", "as its coordinator tells it"

    lines = run("plan", "ConsumerGroupMigration").splitlines()
    assert lines[:2] == ["> Preflight", "  Baseline"]
    assert lines[-1] == "next: record: Preflight begins"
    assert any(line.startswith("finding Blocker WrongKafkaVersion [broker 1] ") for line in lines)
