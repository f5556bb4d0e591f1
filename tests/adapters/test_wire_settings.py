"""Settings of brokers and topics over the wire against real brokers, with rights and without; groups with few rights."""

import asyncio
import time
import uuid
from collections.abc import Iterator, Mapping
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
from adapters.clusters import KafkaCluster, KRaftNode, kafka_cluster, node, patient_wire
from adapters.eventually import eventually
from patience import stretched, until
from switchover.answers.errors import Refused, Unreachable
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.kafka.client import broker_settings as settings
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.client.nodes import KafkaWire
from switchover.kafka.client.offsets import WireOffsets
from switchover.lag.group import Membership
from switchover.lag.window import Asked
from switchover.network.addresses import Address
from switchover.network.credentials import Access


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
def broker(request: pytest.FixtureRequest) -> Address:
    if request.param == "KRaft":
        one: KRaftNode = request.getfixturevalue("kraft")
        return one.address
    cluster: KafkaCluster = request.getfixturevalue("zookeeper_cluster")
    return cluster.brokers[1].address


# --- What it reads ----------------------------------------------------------------------------------------------------


async def test_min_insync_replicas_in_batches(broker: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "TOPICS", 2)
    servers, wire = str(broker), patient_wire({})
    plain, strict, other = created(servers), created(servers, config={"min.insync.replicas": "2"}), created(servers)
    found = await wire.min_insync_replicas(broker, [plain, strict, "does-not-exist", other, plain])
    assert found == {plain: 1, strict: 2, other: 1}
    assert await wire.min_insync_replicas(broker, []) == {}


async def test_the_live_settings_of_a_broker(broker: Address) -> None:
    settings = await patient_wire({}).settings(broker, 1)
    assert settings["log.cleaner.dedupe.buffer.size"] == "2097152"         # from its file
    assert settings["log.retention.hours"] == "168"                        # a default
    assert "ssl.keystore.password" not in settings                         # sensitive
    assert all(isinstance(value, str) for value in settings.values())


async def test_as_an_ordinary_client_reads_it(broker: Address) -> None:
    """A gate opens by these answers: librdkafka decodes them on its own."""
    topic, admin = created(str(broker), config={"min.insync.replicas": "3"}), AdminClient({"bootstrap.servers": str(broker)})

    def told(kind: ConfigResource.Type, name: str) -> dict[str, str]:
        resource = ConfigResource(kind, name)
        entries = admin.describe_configs([resource])[resource].result(stretched(30))
        return {entry.name: entry.value for entry in entries.values() if entry.value is not None and not entry.is_sensitive}

    wire = patient_wire({})
    assert await wire.settings(broker, 1) == told(ConfigResource.Type.BROKER, "1")
    assert (await wire.min_insync_replicas(broker, [topic]))[topic] == int(
        told(ConfigResource.Type.TOPIC, topic)["min.insync.replicas"])


# --- Faults -----------------------------------------------------------------------------------------------------------


async def test_another_broker_does_not_answer_for_the_one_that_is_meant(broker: Address) -> None:
    with pytest.raises(Unreachable, match=f"^{broker}: cannot read the settings of brokers now: INVALID_REQUEST"):
        await patient_wire({}).settings(broker, 99)


@pytest.mark.long
async def test_a_stopped_broker_is_unreachable_and_comes_back(tmp_path: Path) -> None:
    with kafka_cluster(tmp_path) as cluster:
        cluster.start_zookeeper_mode()
        topic, broker, wire = created(cluster.bootstrap), cluster.brokers[1].address, KafkaWire({}, seconds=2)
        assert await wire.min_insync_replicas(broker, [topic]) == {topic: 1}
        with cluster.brokers[1].frozen():
            await assert_unreachable_in_time(wire, broker, topic)
        await back(wire, broker, topic)
        cluster.brokers[1].stop()
        await assert_unreachable_in_time(wire, broker, topic)
        cluster.brokers[1].start(cluster.broker_properties(1, Mode.ZOOKEEPER))
        await back(wire, broker, topic)


async def assert_unreachable_in_time(wire: KafkaWire, broker: Address, topic: str) -> None:
    started = time.monotonic()
    calls = wire.min_insync_replicas(broker, [topic]), wire.settings(broker, 1)
    for result in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(result, Unreachable), result
    assert time.monotonic() - started < stretched(4)


async def back(wire: KafkaWire, broker: Address, topic: str) -> None:
    """Once the broker is there again; for a moment after its start it knows no topic."""
    await eventually(lambda: wire.min_insync_replicas(broker, [topic]), lambda found: found == {topic: 1})


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
    topic, wire = created(str(secured.plain)), patient_wire(sasl("PLAIN", "alice", "secret"))
    assert await wire.min_insync_replicas(secured.sasl, [topic]) == {topic: 1}
    with pytest.raises(Refused, match="may not read the settings of brokers; grant it DescribeConfigs on the Cluster"):
        await wire.settings(secured.sasl, 1)


async def test_who_is_in_the_groups_and_how_far_they_are_with_rights_and_without(secured: SecuredBroker) -> None:
    topic, group = created(str(secured.plain)), uuid.uuid4().hex
    committed(str(secured.plain), group, [TopicPartition(topic, 0, 0)])
    alice = Access(str(secured.sasl), sasl("PLAIN", "alice", "secret"))
    memberships = WireGroups(alice)
    assert group in await memberships.groups()
    assert await memberships.memberships([group, "nobody"]) == {
        group: Membership("Empty", {}), "nobody": Membership("Dead", {})}
    [reading] = (await WireOffsets(alice).sweep({group: Asked()})).readings.values()
    assert list(reading.offsets) == [(topic, 0)]

    bob = Access(str(secured.sasl), sasl("SCRAM-SHA-256", "bob", "secret"))
    memberships = WireGroups(bob)
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


async def test_whoever_may_not_read_topics_cannot_tell_whether_their_logs_have_their_ids(secured: SecuredBroker) -> None:
    created(str(secured.plain))
    wire = patient_wire(sasl("PLAIN", "alice", "secret"))
    with pytest.raises(Refused, match=r"the user may not read topic (\S+); grant it Read on topic \1"):
        await wire.topic_ids(secured.sasl, 1)


async def test_scram_without_rights(secured: SecuredBroker) -> None:
    topic, wire = created(str(secured.plain)), patient_wire(sasl("SCRAM-SHA-256", "bob", "secret"))
    with pytest.raises(Refused, match=f"not read the settings of topic {topic}; grant it DescribeConfigs on topic {topic}"):
        await wire.min_insync_replicas(secured.sasl, [topic])


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
async def test_a_wrong_password_is_refused_and_not_shown(secured: SecuredBroker, mechanism: str) -> None:
    wrong = sasl(mechanism, "alice", "wr0ng")
    words = rf"{secured.sasl}: refused user alice: SASL_AUTHENTICATION_FAILED"
    with pytest.raises(Refused, match=words) as refused:
        await patient_wire(wrong).settings(secured.sasl, 1)
    assert "wr0ng" not in str(refused.value)
    with pytest.raises(Refused, match=words):
        await WireOffsets(Access(str(secured.sasl), wrong)).sweep({})
