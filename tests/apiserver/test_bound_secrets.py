"""Secrets in a real API server, a secured Kafka, the operator as a process: they go to their servers, and nowhere else."""

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.clusters import KafkaCluster, kafka_cluster
from apiserver.examples import documented_of
from apiserver.processes import running
from patience import until
from switchover.cli import follow
from switchover.cli.objects import KINDS, Found
from switchover.network.addresses import Address

Kubectl = Callable[..., Any]
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SASL = 9096


class Listener:
    """A server of somebody else's, which remembers what it is sent."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = Address(*self._server.getsockname())
        self.told: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                self.told.append(connection.recv(1_000))

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def mallory() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaCluster]:
    """A broker in ZooKeeper mode that wants SASL/PLAIN on a port of its own."""
    with kafka_cluster(tmp_path / "cluster") as cluster:
        address = cluster.brokers[1].address
        cluster.start_zookeeper_mode(
            f"listeners=PLAINTEXT://{address},SASL_PLAINTEXT://{address.host}:{SASL}\nsasl.enabled.mechanisms=PLAIN\n"
            f'listener.name.sasl_plaintext.plain.sasl.jaas.config={PLAIN} required user_ada="hunter2-kafka";\n')
        yield cluster


def secret(name: str, **values: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}


def migrations(name: str, kafka: str, zookeeper: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """One of each kind that only shows its plan, with servers of somebody's choice and the Secrets of the namespace."""
    to_kafka = {"bootstrapServers": kafka, "credentialsRef": {"name": "kafka-client"}}
    cluster, group = documented_of("KafkaMigration")[0], documented_of("ConsumerGroupMigration")[0]
    common = {"desiredState": "Planned", "acceptedRisks": ["PasswordsInClear"], "kafka": to_kafka}
    group["spec"].pop("audit")
    return (
        {**cluster, "metadata": {"name": name}, "spec": {**cluster["spec"], **common, "zookeeper": {
            "connect": zookeeper, "credentialsRef": {"name": "zookeeper-client"}}}},
        {**group, "metadata": {"name": name}, "spec": {**group["spec"], **common}},
    )


def test_secrets_go_to_the_servers_that_they_name_and_to_no_others(
        kafka: KafkaCluster, mallory: Listener, kubeconfig: Path, kubectl: Kubectl, namespace: str,
        apply: Callable[..., None], crds: object, tmp_path: Path) -> None:
    """The security review's first attack, by somebody who may only create and change migrations."""
    servers = f"{kafka.brokers[1].address.host}:{SASL}"
    login = PLAIN + ' required username="ada" password="{}";'
    client = {"bootstrap.servers": servers, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    apply(secret("kafka-client", **client, **{"sasl.jaas.config": login.format("hunter2-wrong")}),
          secret("zookeeper-client", **{"zookeeper.connect": str(kafka.zookeeper.address),
                                        "zookeeper.digest": "super:hunter2-zookeeper"}))
    kinds = "kafkamigrations.switchover.dev,consumergroupmigrations.switchover.dev"
    kubectl("-n", namespace, "create", "role", "mallory", "--verb=get,list,create,update,patch", f"--resource={kinds}")
    kubectl("-n", namespace, "create", "rolebinding", "mallory", "--role=mallory", "--user=mallory")
    hers = tmp_path / "hers.json"
    hers.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": migrations(
        "hers", str(mallory.address), str(mallory.address))}))
    kubectl("-n", namespace, "--as", "mallory", "apply", "-f", str(hers))
    apply(*migrations("ours", servers, kafka.zookeeper_connect))

    def told(kind: str, name: str) -> dict[str, Any]:
        found = json.loads(kubectl("-n", namespace, "get", kind, name, "--output", "json").stdout)
        status: dict[str, Any] = found.get("status") or {}
        return status

    def says(kind: str, name: str, words: str) -> bool:
        return re.search(words, json.dumps(told(kind, name))) is not None

    log = tmp_path / "log"
    with running(kubeconfig, namespace, log, LOG_FORMAT="json") as operator:
        def expect(kind: str, name: str, words: str) -> None:
            until(lambda: says(kind, name, words), lambda: f"{kind} {name} says {words!r}: {told(kind, name)}", pause=1)

        expect("kafkamigration", "hers", f"Secret zookeeper-client does not name {mallory.address}")
        expect("consumergroupmigration", "hers", f"Secret kafka-client does not name {mallory.address}")
        expect("kafkamigration", "ours", '"clusterId": "[^"]+"')                        # ZooKeeper's word
        expect("consumergroupmigration", "ours", f"{servers}: refused user ada: SASL_AUTHENTICATION_FAILED")
        apply(secret("kafka-client", **client, **{"sasl.jaas.config": login.format("hunter2-kafka")}))
        expect("consumergroupmigration", "ours", '"clusterId": "[^"]+"')                # Kafka's
        assert operator.poll() is None
    assert told("kafkamigration", "ours")["clusterId"] == told("consumergroupmigration", "ours")["clusterId"]
    assert mallory.told == []
    everything = kubectl("-n", namespace, "get", f"{kinds},events,configmaps", "--output", "yaml").stdout + log.read_text()
    assert "hunter2" not in everything
    for kind in KINDS:
        found = Found(kind, {"metadata": {"name": "ours", "namespace": namespace}})
        first, *story = [line for _, line in follow.story_of(log.read_text().splitlines(), found)]
        assert first == "step: Preflight, forward"
        assert [line for line in story if line.startswith(("fails: ", "unknown: "))], story
