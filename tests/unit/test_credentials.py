"""Credentials: which servers a Secret names, and what travels unencrypted."""

import json
import shlex
from typing import cast

import pytest

from switchover.answers.ask import Answers
from switchover.answers.errors import Refused
from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.api.meta import AcceptedRisk
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.network.addresses import Address
from switchover.network.credentials import (
    ANYWHERE,
    KAFKA,
    ZOOKEEPER,
    Unusable,
    allowed_servers,
    check_encrypted,
    checks_hosts,
)
from switchover.process.connections import REAL_GROUPS, CredentialedGroups
from unit.group_pictures import BRIDGED, spec_of, workload_of


def why_not(named: str, *wanted: Address, key: str = KAFKA) -> str:
    return allowed_servers("s", "demo", {key: named}, key).why_not(wanted)


@pytest.mark.parametrize(("named", "host", "port"), [
    ("kafka:9092", "kafka", 9092),
    ("kafka", "kafka", 1),
    ("Kafka.Demo.SVC.:9092", "kafka.demo.svc", 9092),
    ("kafka.demo.svc:9092", "KAFKA.demo.svc.", 9092),
    ("other:1, *.kafka:9092", "kafka-2.kafka", 9092),
    ("*.kafka.demo.svc", "kafka-0.kafka.demo.svc", 9093),
    ("10.0.0.7:9092", "10.0.0.7", 9092),
    ("[FD00::7]:9092", "fd00::7", 9092),
])
def test_named(named: str, host: str, port: int) -> None:
    assert why_not(named, Address(host, port)) == ""


@pytest.mark.parametrize(("named", "host", "port"), [
    ("", "kafka", 9092),
    ("kafka:9092", "kafka", 9093),
    ("kafka:9092", "kafka.evil", 9092),
    ("kafka:9092", "evil-kafka", 9092),
    ("*.kafka:9092", "kafka", 9092),
    ("*.kafka:9092", "evil.x.kafka", 9092),               # one label, as in a certificate
    ("*.kafka:9092", ".kafka.evil", 9092),
    ("*.kafka:9092", "a.kafka.evil", 9092),
    ("kafka.demo.svc", "kafkaxdemo.svc", 9092),           # a dot is a dot
    ("10.0.0.7:9092", "10.0.0.70", 9092),
])
def test_not_named(named: str, host: str, port: int) -> None:
    assert "Secret s does not name" in why_not(named, Address(host, port))


@pytest.mark.parametrize("named", [
    "*", "*:9092", "*.", "k*fka:9092", "**.kafka", "a.*.kafka", "kafka:", "kafka:port", "kafka:123456", "http://kafka:9092",
    "kafka;evil", "kafka evil", "-kafka", "ka\nfka", "\u212aafka"])
def test_what_is_no_server_is_refused_without_its_value(named: str) -> None:
    with pytest.raises(Unusable) as refused:
        allowed_servers("s", "demo", {KAFKA: named}, KAFKA)
    assert str(refused.value) == ("bootstrap.servers is not made of host:port pairs, separated by commas, such as"
                                  " kafka:9092,*.kafka:9092")


def test_zookeepers_chroot_is_no_server() -> None:
    assert why_not("zookeeper-0.zookeeper:2181,zookeeper-1.zookeeper:2181/kafka", Address("zookeeper-1.zookeeper", 2181),
                   key=ZOOKEEPER) == ""


def test_the_command_names_all_that_are_missing_beside_those_that_are_named() -> None:
    pods = [Address(f"kafka-{broker}.kafka.demo.svc", 9092) for broker in range(3)]
    wanted = [*pods, Address("kafka-1.example.org", 9092), Address("fd00::7", 9092), Address("kafka", 9092)]
    told = why_not("kafka:9092", *wanted)
    *kubectl, patch = shlex.split(told.partition("if they may be: ")[2])
    assert kubectl == ["kubectl", "--namespace", "demo", "patch", "secret", "s", "--patch"]
    named = json.loads(patch)["stringData"][KAFKA]
    assert named == "kafka:9092,*.kafka.demo.svc:9092,kafka-1.example.org:9092,[fd00::7]:9092"
    assert why_not(named, *wanted) == ""


@pytest.mark.parametrize(("properties", "checks"), [
    ({}, True), ({"ssl.endpoint.identification.algorithm": "https"}, True),
    ({"ssl.endpoint.identification.algorithm": " "}, False),
    ({"zookeeper.ssl.endpoint.identification.algorithm": ""}, False)])
def test_the_check_of_names_is_on_unless_it_is_turned_off(properties: dict[str, str], checks: bool) -> None:
    assert checks_hosts(properties) is checks


def test_a_file_of_the_users_own_goes_where_the_command_line_says() -> None:
    assert ANYWHERE.why_not([Address("anywhere", 1)]) == ""


PLAIN = {"sasl.mechanism": "PLAIN", "security.protocol": "SASL_PLAINTEXT"}


@pytest.mark.parametrize("properties", [
    PLAIN, PLAIN | {"security.protocol": "sasl_plaintext"}, {"zookeeper.digest": "u:p"},
    {"zookeeper.digest": "u:p", "zookeeper.ssl.client.enable": "false"}])
def test_a_password_in_clear_is_accepted_by_name_only(properties: dict[str, str]) -> None:
    with pytest.raises(Unusable, match=r"spec.acceptedRisks: \[PasswordsInClear\]"):
        check_encrypted(properties, (AcceptedRisk.WEAKER_CONTROLLERS,))
    check_encrypted(properties, (AcceptedRisk.PASSWORDS_IN_CLEAR,))


@pytest.mark.parametrize("properties", [
    {}, PLAIN | {"security.protocol": "SASL_SSL"}, PLAIN | {"sasl.mechanism": "SCRAM-SHA-512"},
    {"zookeeper.digest": "u:p", "zookeeper.ssl.client.enable": " TRUE "}, {"zookeeper.sasl.jaas.config": "x"}])
def test_what_is_encrypted_or_never_sent_is_nobodys_risk(properties: dict[str, str]) -> None:
    check_encrypted(properties, ())


class NoSecrets:
    """Kubernetes with none of the Secrets that are asked for."""

    async def client_properties(self, name: str) -> dict[str, str]:
        raise Refused(f"Secret {name} does not exist")


async def test_a_group_is_told_of_every_secret_that_refuses() -> None:
    spec = spec_of(
        workload_of(**BRIDGED), coordination={"to": "Kafka"},
        kafka={"bootstrapServers": "kafka:9092", "credentialsRef": {"name": "kafka-client"}},
        zookeeper={"connect": "zookeeper:2181", "credentialsRef": {"name": "zookeeper-client"}})
    migration = ConsumerGroupMigration.model_validate(
        {"metadata": {"name": "orders", "namespace": "demo", "uid": "uid-1", "generation": 1}, "spec": spec.manifest()})
    connected = CredentialedGroups(migration, cast(KubernetesWorkloads, NoSecrets()), REAL_GROUPS, Answers())
    with pytest.raises(Refused, match="Secret kafka-client does not exist; Secret zookeeper-client does not exist"):
        await connected.clients()
