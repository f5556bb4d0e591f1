"""The KafkaAdmin port against real brokers."""

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from adapters.admin import create_topic
from adapters.certificates import Certificates
from adapters.clusters import KafkaCluster, KRaftNode, kafka_cluster, node
from adapters.eventually import eventually
from adapters.servers import loopback
from patience import stretched, until
from switchover.kafka.client import admin as kafka
from switchover.kafka.client import librdkafka
from switchover.kafka.client.admin import ConfluentKafkaAdmin
from switchover.kafka.client.memberships import WireMemberships
from switchover.kafka.client.offsets import WireOffsets
from switchover.lag.membership import Membership
from switchover.lag.window import Asked
from switchover.outside.access import Access
from switchover.outside.addresses import Address
from switchover.outside.errors import Refused, Unreachable


@contextlib.asynccontextmanager
async def opened(
    servers: str, properties: Mapping[str, str] | None = None, *, seconds: float = 10.0
) -> AsyncIterator[ConfluentKafkaAdmin]:
    admin = ConfluentKafkaAdmin(Access(servers, properties or {}), seconds=seconds)
    try:
        yield admin
    finally:
        await admin.close()


def created(servers: str, partitions: int = 1, config: dict[str, str] | None = None) -> str:
    """A new topic, once the broker knows it: a KRaft broker hears of it a moment after the controller has made it."""
    name = uuid.uuid4().hex
    create_topic(servers, name, partitions, config=config)
    admin, resource = AdminClient({"bootstrap.servers": servers}), ConfigResource(ConfigResource.Type.TOPIC, name)
    until(lambda: admin.describe_configs([resource])[resource].exception(stretched(10)) is None,
          f"the broker knows topic {name}")
    return name


def filled(servers: str, topic: str, records: Mapping[int, int]) -> None:
    """Write that many records to each partition."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for partition, count in records.items():
        for number in range(count):
            producer.produce(topic, str(number), partition=partition)
    assert producer.flush(stretched(60)) == 0


def committed(servers: str, group: str, offsets: list[TopicPartition]) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


@pytest.fixture(scope="module")
def kraft(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KRaftNode]:
    with node(tmp_path_factory.mktemp("kraft"), "3.9") as server:
        server.begin()
        yield server


@pytest.fixture(params=["ZooKeeper", "KRaft"])
def servers(request: pytest.FixtureRequest) -> str:
    if request.param == "KRaft":
        one: KRaftNode = request.getfixturevalue("kraft")
        return str(one.address)
    cluster: KafkaCluster = request.getfixturevalue("zookeeper_cluster")
    return cluster.bootstrap


# --- What it reads ----------------------------------------------------------------------------------------------------


async def test_min_insync_replicas_in_batches(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "BATCH", 2)
    plain, strict, other = created(servers), created(servers, config={"min.insync.replicas": "2"}), created(servers)
    async with opened(servers) as admin:
        found = await admin.min_insync_replicas([plain, strict, "does-not-exist", other, plain])
        assert await admin.min_insync_replicas([]) == {}
    assert found == {plain: 1, strict: 2, other: 1}


async def test_the_live_settings_of_a_broker(servers: str) -> None:
    async with opened(servers) as admin:
        settings = await admin.broker_settings(1)
    assert settings["log.cleaner.dedupe.buffer.size"] == "2097152"         # from its file
    assert settings["log.retention.hours"] == "168"                        # a default
    assert "ssl.keystore.password" not in settings                         # sensitive
    assert all(isinstance(value, str) for value in settings.values())


# --- Faults -----------------------------------------------------------------------------------------------------------


async def test_an_unknown_broker_is_unreachable_in_time(servers: str) -> None:
    async with opened(servers, seconds=1.5) as admin:
        started = time.monotonic()
        with pytest.raises(Unreachable, match="broker 99"):
            await admin.broker_settings(99)
        assert time.monotonic() - started < stretched(3)


async def test_a_stopped_broker_is_unreachable_and_comes_back(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="switchover")
    with kafka_cluster(tmp_path) as cluster:
        cluster.start_zookeeper_mode()
        topic = created(cluster.bootstrap)
        async with opened(cluster.bootstrap, seconds=2) as admin:
            assert await admin.min_insync_replicas([topic]) == {topic: 1}
            with cluster.brokers[1].frozen():
                await assert_unreachable_in_time(admin, topic)
            await back(admin, topic)
            cluster.brokers[1].stop()
            await assert_unreachable_in_time(admin, topic)
            cluster.brokers[1].start(cluster.broker_properties(1, "A"))
            await back(admin, topic)
            cluster.brokers[1].kill()
            started = time.monotonic()
        assert time.monotonic() - started < stretched(2)              # close, while nobody answers
    assert "switchover#" not in capfd.readouterr().err     # librdkafka's name for our clients
    assert {record.levelno for record in caplog.records if "switchover#" in record.getMessage()} == {logging.DEBUG}


async def assert_unreachable_in_time(admin: ConfluentKafkaAdmin, topic: str) -> None:
    started = time.monotonic()
    calls = admin.min_insync_replicas([topic]), admin.broker_settings(1)
    for result in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(result, Unreachable), result
    assert time.monotonic() - started < stretched(4)


async def back(admin: ConfluentKafkaAdmin, topic: str) -> None:
    """Once the broker is there again; for a moment after its start it knows no topic."""
    await eventually(lambda: admin.min_insync_replicas([topic]), lambda found: found == {topic: 1})


async def test_nobody_listens() -> None:
    async with opened(str(loopback(9092)), seconds=1) as admin:
        started = time.monotonic()
        with pytest.raises(Unreachable):
            await admin.broker_settings(1)
        assert time.monotonic() - started < stretched(2.5)


# --- Credentials and rights -------------------------------------------------------------------------------------------


class SecuredBroker:
    """A broker in ZooKeeper mode with ACLs; its plain listener belongs to the super user.

    Users: alice (PLAIN, rights on topics and groups), bob (SCRAM, none), and whoever has a client certificate (all).
    """

    def __init__(self, cluster: KafkaCluster, directory: Path) -> None:
        self.plain = cluster.brokers[1].address
        self.sasl = Address(self.plain.host, 9094)
        self.tls = Address(self.plain.host, 9095)
        self.certificates = Certificates(directory, self.plain.host)
        cluster.start_zookeeper_mode(
            f"listeners=PLAINTEXT://{self.plain},SASL_PLAINTEXT://{self.sasl},SSL://{self.tls}\n"
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256\n"
            f"listener.name.sasl_plaintext.plain.sasl.jaas.config={login('PLAIN', 'x', 'x', ' user_alice=secret')}\n"
            f"listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config={login('SCRAM', 'bob', 'secret')}\n"
            "listener.name.ssl.ssl.client.auth=required\n"
            f"{self.certificates.broker_properties()}"
            "authorizer.class.name=kafka.security.authorizer.AclAuthorizer\n"
            "super.users=User:ANONYMOUS;User:CN=client\n")
        admin = AdminClient({"bootstrap.servers": str(self.plain)})
        changes: list[Future[None]] = [*admin.alter_user_scram_credentials([UserScramCredentialUpsertion(
            "bob", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"secret")]).values()]
        for resource, operations in {
            ResourceType.TOPIC: (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS),
            ResourceType.GROUP: (AclOperation.DESCRIBE,),
        }.items():
            changes += admin.create_acls([
                AclBinding(resource, "*", ResourcePatternType.LITERAL, "User:alice", "*", operation,
                           AclPermissionType.ALLOW) for operation in operations]).values()
        for change in changes:
            change.result(stretched(60))


def login(mechanism: str, user: str, password: str, more: str = "") -> str:
    module = {"PLAIN": "plain.Plain", "SCRAM": "scram.Scram"}[mechanism]
    return (f"org.apache.kafka.common.security.{module}LoginModule required "
            f'username="{user}" password="{password}"{more};')


def sasl(mechanism: str, user: str, password: str) -> dict[str, str]:
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism,
            "sasl.jaas.config": login(mechanism.split("-")[0], user, password)}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with kafka_cluster(tmp_path_factory.mktemp("secured")) as cluster:
        yield SecuredBroker(cluster, tmp_path_factory.mktemp("pem"))


async def test_sasl_plain_and_its_rights(secured: SecuredBroker) -> None:
    topic = created(str(secured.plain))
    async with opened(str(secured.sasl), sasl("PLAIN", "alice", "secret")) as admin:
        assert await admin.min_insync_replicas([topic]) == {topic: 1}
        with pytest.raises(Refused, match=r"broker 1: .*DESCRIBE_CONFIGS on the cluster"):
            await admin.broker_settings(1)


async def test_who_is_in_the_groups_and_how_far_they_are_with_rights_and_without(secured: SecuredBroker) -> None:
    topic, group = created(str(secured.plain)), uuid.uuid4().hex
    committed(str(secured.plain), group, [TopicPartition(topic, 0, 0)])
    alice = Access(str(secured.sasl), sasl("PLAIN", "alice", "secret"))
    memberships = WireMemberships(alice)
    assert group in await memberships.groups()
    assert await memberships.memberships([group, "nobody"]) == {
        group: Membership("Empty", {}), "nobody": Membership("Dead", {})}
    [reading] = (await WireOffsets(alice).sweep({group: Asked()})).readings.values()
    assert list(reading.offsets) == [(topic, 0)]

    bob = Access(str(secured.sasl), sasl("SCRAM-SHA-256", "bob", "secret"))
    memberships = WireMemberships(bob)
    assert await memberships.groups() == []
    assert f"grant it Describe on group {group}" in str((await memberships.memberships([group]))[group])
    [reading] = (await WireOffsets(bob).sweep({group: Asked()})).readings.values()
    assert reading.why == "our user is not allowed to ask; it needs DESCRIBE on the group (GROUP_AUTHORIZATION_FAILED)"


async def test_a_topic_that_our_user_may_not_see_is_told_and_not_taken_for_uncommitted(secured: SecuredBroker) -> None:
    topic, group = created(str(secured.plain)), uuid.uuid4().hex
    committed(str(secured.plain), group, [TopicPartition(topic, 0, 0)])
    admin = AdminClient({"bootstrap.servers": str(secured.plain)})
    denied = AclBinding(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:alice", "*", AclOperation.DESCRIBE,
                        AclPermissionType.DENY)
    admin.create_acls([denied])[denied].result(stretched(60))
    offsets = WireOffsets(Access(str(secured.sasl), sasl("PLAIN", "alice", "secret")))
    sweep = await eventually(lambda: offsets.sweep({group: Asked(frozenset({topic}))}),
                             lambda found: bool(found.readings[group].failed))      # the ACL takes a moment
    reading = sweep.readings[group]
    assert reading.offsets == {}
    assert reading.failed == {
        topic: "our user is not allowed to ask; it needs DESCRIBE on the topic (TOPIC_AUTHORIZATION_FAILED)"}


async def test_scram_without_rights(secured: SecuredBroker) -> None:
    topic = created(str(secured.plain))
    async with opened(str(secured.sasl), sasl("SCRAM-SHA-256", "bob", "secret"), seconds=stretched(3)) as admin:
        with pytest.raises(Refused, match=f"topic {topic}: .*it needs DESCRIBE and DESCRIBE_CONFIGS on it"):
            await admin.min_insync_replicas([topic])


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_a_wrong_password_is_refused_and_not_shown(secured: SecuredBroker, mechanism: str) -> None:
    async with opened(str(secured.sasl), sasl(mechanism, "alice", "wr0ng"), seconds=2) as admin:
        with pytest.raises(Refused, match=r"does not accept us: .*[Aa]uthentication") as refused:
            await admin.broker_settings(1)
    assert "wr0ng" not in str(refused.value)
    with pytest.raises(Refused, match=rf"{secured.sasl}: refused user alice: SASL_AUTHENTICATION_FAILED"):
        await WireOffsets(Access(str(secured.sasl), sasl(mechanism, "alice", "wr0ng"))).sweep({})


async def test_tls_with_a_client_certificate(secured: SecuredBroker) -> None:
    topic, pem = created(str(secured.plain)), secured.certificates
    trust = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem.authority}
    identity = {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": pem.client_chain}
    for key in ({"ssl.keystore.key": pem.client_key},
                {"ssl.keystore.key": pem.encrypted_client_key("sesame"), "ssl.key.password": "sesame"}):
        async with opened(str(secured.tls), trust | identity | key) as admin:
            assert await admin.min_insync_replicas([topic]) == {topic: 1}
    async with opened(str(secured.tls), {"security.protocol": "SSL"}, seconds=2) as admin:
        with pytest.raises(Refused, match=r"does not accept us: .*certificate"):
            await admin.min_insync_replicas([topic])
    with pytest.raises(Refused, match="Kafka credentials cannot be used"):
        ConfluentKafkaAdmin(Access(str(secured.tls), trust | {"ssl.truststore.certificates": "no PEM"}))


@pytest.mark.parametrize(("properties", "words"), [
    ({"security.protocol": "KERBEROS"}, "security.protocol"),
    ({"ssl.truststore.location": "/etc/kafka/truststore.jks"}, "ssl.truststore.location names a file"),
    ({"ssl.keystore.type": "JKS"}, "ssl.keystore.type JKS is not supported"),
    ({"sasl.login.callback.handler.class": "x"}, "sasl.login.callback.handler.class, which"),
    ({"security.protocol": "SASL_SSL"}, r"sasl.mechanism \(absent\) is none of PLAIN"),
    ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "sasl.mechanism GSSAPI is none of PLAIN"),
    ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config is not of the form"),
    (sasl("PLAIN", "a", "b") | {"sasl.mechanism": "SCRAM-SHA-512"}, "must name ScramLoginModule"),
])
def test_properties_that_cannot_be_used_are_refused_by_name(properties: dict[str, str], words: str) -> None:
    with pytest.raises(Refused, match=words):
        ConfluentKafkaAdmin(Access("kafka:9092", properties))


def test_java_properties_in_librdkafkas_words() -> None:
    assert librdkafka.configuration({
        "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "ssl.truststore.type": "PEM",
        "sasl.jaas.config": login("SCRAM", "bob", r"a\"b;c"), "ssl.truststore.certificates": "pem",
        "ssl.endpoint.identification.algorithm": "", "zookeeper.digest": "switchover:secret",
    }) == {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "bob",
        "sasl.password": 'a"b;c', "ssl.ca.pem": "pem", "ssl.endpoint.identification.algorithm": "none",
    }


async def test_brokers_whose_names_mean_other_hosts_where_we_run_are_not_asked(
        kraft: KRaftNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka looks their names up by itself."""
    admin = ConfluentKafkaAdmin(Access(str(kraft.address), within="shop"))
    try:
        assert await admin.broker_settings(1)
        monkeypatch.setattr(kafka, "looked_up", lambda host, _: f"{host}.shop.svc")
        admin._checked = False
        with pytest.raises(Refused, match="which means another host where this operator runs than in namespace shop"):
            await admin.broker_settings(1)
    finally:
        await admin.close()
