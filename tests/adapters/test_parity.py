"""Parity on a real cluster in dual write: every kind created, changed and deleted, then one difference of each kind planted.

The controller cuts snapshots all the time, so that in the end one is read; it keeps none for long, so that a minute later
there is no other way to read the log.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kazoo.client import KazooClient
from kio.schema.alter_client_quotas.v1 import AlterClientQuotasRequest, AlterClientQuotasResponse
from kio.schema.alter_client_quotas.v1.request import EntityData, EntryData, OpData
from kio.schema.create_delegation_token.v3 import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from kio.schema.create_delegation_token.v3.request import CreatableRenewers
from kio.schema.errors import ErrorCode
from kio.schema.expire_delegation_token.v2 import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.static.primitive import i8, i64Timedelta

from adapters.admin import changed, create_topic
from adapters.clusters import KafkaCluster, kafka_cluster, patient_wire
from adapters.eventually import eventually
from adapters.formatted import lay_out
from adapters.test_wire_faults import Trimmed, reading
from fakes.metadata_sides import config, topic_node
from patience import stretched
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.gates.dual_write import are_ended_by_a_new_leader
from switchover.kafka.client.connection import connected
from switchover.metadata.cluster import ClusterMetadata, Difference, Resource, Topic
from switchover.metadata.parity import Comparison, LogImage, MigrationState, Parity, TreeReading, compare
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.network.security import security
from switchover.zookeeper.client.zookeeper import KazooZooKeeper

SECRET = "encoder-secret"
PASSWORD = "listener.name.later.ssl.keystore.password"
COMMON = f"""
super.users=User:ANONYMOUS;User:alice
password.encoder.secret={SECRET}
delegation.token.secret.key=token-secret
"""
MECHANISM = ScramMechanism.SCRAM_SHA_256
TOPIC_TYPE, BROKER_TYPE = 2, 4
SET, DELETE = 0, 1

Answer = TypeVar("Answer")


class Story:
    """One broker, one controller, the clients that change metadata, and both sides of the comparison."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.cluster = cluster
        self.broker = cluster.brokers[1]
        self.sasl = Address(self.broker.address.host, 9094)
        self.nodes = patient_wire({})
        self.tree = KazooZooKeeper(Access(cluster.zookeeper_connect))
        self.last: Comparison | None = None

    @property
    def voters(self) -> dict[int, Address]:
        return {3000: self.cluster.controllers[3000].address}

    def admin(self, change: Callable[[AdminClient], dict[Any, Any]]) -> None:
        """A client for one change: one that saw the broker restart waits for a controller too long."""
        changed(self.cluster.bootstrap, change)

    def properties(self, mode: str) -> str:
        authorizer = ("org.apache.kafka.metadata.authorizer.StandardAuthorizer" if mode == Mode.KRAFT
                      else "kafka.security.authorizer.AclAuthorizer")
        encoder = COMMON.replace("password.encoder.secret", "unused.here") if mode == Mode.KRAFT else COMMON
        return self.cluster.broker_properties(1, mode, encoder + f"""
listeners=PLAINTEXT://{self.broker.address},SASL_PLAINTEXT://{self.sasl}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  user_alice="alice-secret";
authorizer.class.name={authorizer}
""")

    async def begin(self) -> None:
        self.cluster.zookeeper.start(self.cluster.zookeeper.properties())
        self.broker.start(self.properties(Mode.ZOOKEEPER))
        self.cluster.wait_for_brokers()

    async def start_controller(self) -> None:
        state = await self.tree.state()
        server = self.cluster.controllers[3000]
        text = self.cluster.controller_properties(3000, Mode.MIGRATION_CONTROLLER, COMMON + """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
metadata.log.max.record.bytes.between.snapshots=1000
metadata.max.retention.ms=1
""")
        lay_out(server, state.cluster_id, text)
        server.start(text)

    async def to(self, mode: str) -> None:
        """The broker in its next mode, registered and able to serve."""
        self.broker.restart(self.properties(mode))
        await eventually(self.log, lambda image: image.migration_state is MigrationState.MIGRATION
                         and 1 in image.brokers and not image.brokers[1].fenced
                         and image.brokers[1].migrating_zk == (mode == Mode.MIGRATION))
        self.cluster.wait_for_brokers()

    def fail_over(self) -> None:
        """The controller leads anew, and writes everything to ZooKeeper once more."""
        server = self.cluster.controllers[3000]
        server.restart((server.directory / "server.properties").read_text())
        self.cluster.wait_for_brokers()

    # --- both sides ---------------------------------------------------------------------------------------------------

    async def log(self) -> LogImage:
        return await self.nodes.log(self.voters)

    async def metadata(self) -> TreeReading:
        return await self.tree.metadata(SECRET)

    async def compared(self) -> Parity:
        self.last = compare(self.last, await self.metadata(), await self.log())
        return self.last.parity

    async def is_equal(self) -> ClusterMetadata:
        """Both sides, without a difference that counts; what is on its way arrives."""
        parity = await eventually(self.compared, lambda parity: parity.proven and not parity.unsettled, 20)
        assert parity.differences == ()
        return (await self.metadata()).metadata

    async def differences(self) -> tuple[Difference, ...]:
        """Those that count, once all that was seen counts."""
        return (await eventually(self.compared, lambda parity: parity.unsettled == 0, 20)).differences

    # --- changes through Kafka ----------------------------------------------------------------------------------------

    async def ask(self, request: Any, response: type[Answer], *, as_alice: bool = False) -> Answer:
        properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"alice\""
            " password=\"alice-secret\";")} if as_alice else {}
        where = self.sasl if as_alice else self.broker.address
        async with connected(where, security(properties), 20) as connection:
            return await connection.ask(request, response)              # type: ignore[type-var]

    async def configure(self, kind: int, name: str, **values: str | None) -> None:
        changes = tuple(AlterableConfig(name=key.replace("__", "."), value=value,
                                        config_operation=i8(DELETE if value is None else SET))
                        for key, value in values.items())
        answer = await self.ask(IncrementalAlterConfigsRequest(resources=(AlterConfigsResource(
            resource_type=i8(kind), resource_name=name, configs=changes),), validate_only=False),
            IncrementalAlterConfigsResponse)
        assert [item.error_code for item in answer.responses] == [ErrorCode.none], answer

    async def quota(self, value: float | None, **entity: str | None) -> None:
        key = "connection_creation_rate" if "ip" in entity else "producer_byte_rate"
        answer = await self.ask(AlterClientQuotasRequest(entries=(EntryData(
            entity=tuple(EntityData(entity_type=kind.replace("_", "-"), entity_name=name) for kind, name in entity.items()),
            ops=(OpData(key=key, value=value or 0.0, remove=value is None),),           # type: ignore[arg-type]
        ),), validate_only=False), AlterClientQuotasResponse)
        assert [item.error_code for item in answer.entries] == [ErrorCode.none], answer

    async def token(self) -> CreateDelegationTokenResponse:
        answer = await self.ask(CreateDelegationTokenRequest(
            owner_principal_type=None, owner_principal_name=None,
            renewers=(CreatableRenewers(principal_type="User", principal_name="b o*b"),),
            max_lifetime=i64Timedelta.parse(timedelta(hours=1)),
        ), CreateDelegationTokenResponse, as_alice=True)
        assert answer.error_code is ErrorCode.none, answer
        return answer

    async def expire(self, token: CreateDelegationTokenResponse, seconds: float) -> None:
        """A KRaft broker hears of a new token a moment later."""
        request = ExpireDelegationTokenRequest(
            hmac=token.hmac, expiry_time_period=i64Timedelta.parse(timedelta(seconds=seconds)))
        await eventually(lambda: self.ask(request, ExpireDelegationTokenResponse, as_alice=True),
                         lambda answer: answer.error_code is ErrorCode.none, 20)

    def topic(self, name: str, partitions: int = 2) -> None:
        create_topic(self.cluster.bootstrap, name, partitions)

    def acl(self, name: str, pattern: ResourcePatternType = ResourcePatternType.LITERAL) -> AclBinding:
        binding = AclBinding(ResourceType.TOPIC, name, pattern, "User:alice", "*", AclOperation.READ,
                             AclPermissionType.ALLOW)
        self.admin(lambda client: client.create_acls([binding]))
        return binding

    def scram(self, user: str, password: str | None) -> None:
        change = (UserScramCredentialDeletion(user, MECHANISM) if password is None else
                  UserScramCredentialUpsertion(user, ScramCredentialInfo(MECHANISM, 4096), password.encode()))
        self.admin(lambda client: client.alter_user_scram_credentials([change]))

    def producer(self) -> None:
        """An idempotent producer makes the broker take a block of producer ids."""
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "enable.idempotence": True})
        producer.produce("orders", b"x")
        assert producer.flush(stretched(60)) == 0


@pytest.fixture
async def story(tmp_path: Path) -> AsyncIterator[Story]:
    with kafka_cluster(tmp_path, controllers=(3000,)) as cluster:
        story = Story(cluster)
        await story.begin()
        yield story
        await story.tree.close()


@pytest.mark.parametrize("trimmed", [
    pytest.param(False, id="a snapshot's file"), pytest.param(True, id="trimmed", marks=pytest.mark.long)])
async def test_parity_of_a_cluster_in_dual_write(trimmed: bool, story: Story) -> None:
    await create_everything(story)
    await story.start_controller()
    await story.to(Mode.MIGRATION)
    copied = await story.is_equal()
    every_kind_is_there(copied, {"orders", "gone"})
    await change_everything(story)
    found = await story.differences()
    assert [str(item) for item in found] == [
        "quota ip (default) connection_creation_rate: ZooKeeper says 21.0, KRaft says nothing"], "what Kafka 3.9.2 forgets"
    assert are_ended_by_a_new_leader(found)
    story.fail_over()
    changed = await story.is_equal()
    every_kind_is_there(changed, {"orders", "later"})
    assert Resource("topic", "gone") not in changed.configs
    unread = (await story.tree.metadata(None)).metadata
    assert unread.malformed.keys() == {"/config/brokers/1"}, "what is encrypted is not taken for the password"
    assert "password.encoder.secret is not known" in unread.malformed["/config/brokers/1"]

    await story.to(Mode.KRAFT)
    await story.is_equal()
    lasting = await story.token()
    await story.expire(lasting, 1800)
    await story.expire(await story.token(), -1)
    story.producer()
    story.topic("from-kraft", 1)
    old_password = encrypted_password(story)
    await story.configure(BROKER_TYPE, "1", **{PASSWORD.replace(".", "__"): "third"})
    moved = await story.is_equal()
    assert lasting.token_id in moved.tokens
    assert moved.next_producer_id is not None
    assert changed.next_producer_id is not None
    assert moved.next_producer_id > changed.next_producer_id

    planted = plant_differences(story, moved, lasting.token_id, old_password)
    found = await story.differences()
    assert sorted(f"{item.kind} {item.key}" for item in found) == sorted(planted)
    assert "secret" not in str(found).lower()
    assert {item.kind for item in found if are_ended_by_a_new_leader((item,))} == {"SCRAM user", "quota"}

    with zookeeper(story) as client:
        client.delete("/config/clients/broken")                            # what KRaft cannot read it cannot repair
    story.fail_over()
    healed = await story.is_equal()
    assert healed == moved, "a new leader writes everything to ZooKeeper once more"

    followed = await story.log()
    fresh = await (from_a_trimmed_log(story) if trimmed else eventually(
        lambda: from_a_snapshot(story), lambda image: image.metadata == followed.metadata, 30))
    assert fresh.metadata == followed.metadata
    assert (fresh.migration_state, fresh.brokers, fresh.controllers) == (
        followed.migration_state, followed.brokers, followed.controllers)


async def from_a_snapshot(story: Story) -> LogImage:
    """What the newest snapshot tells a new reader; a leader by script sends the controller's own file."""
    file = max((story.cluster.controllers[3000].directory / "data" / "__cluster_metadata-0").glob("*.checkpoint"))
    offset, epoch = map(int, file.stem.split("-"))
    leader = Trimmed({}, offset, epoch, start=offset, start_epoch=epoch, snapshot=file.read_bytes())
    async with reading(leader) as log:
        image: LogImage = await log()
    return image


async def from_a_trimmed_log(story: Story) -> LogImage:
    """A new reader's image, as soon as it began with a snapshot: the log is trimmed once a minute."""
    async def read() -> tuple[int, LogImage]:
        wire = patient_wire({})
        image = await wire.log(story.voters)
        return wire._log._begin, image

    _, image = await eventually(read, lambda found: found[0] > 0, 150)
    return image


async def create_everything(story: Story) -> None:
    """In ZooKeeper mode."""
    story.topic("orders", 3)
    story.topic("gone")
    await story.configure(TOPIC_TYPE, "orders", retention__ms="100000", cleanup__policy="compact")
    await story.configure(TOPIC_TYPE, "gone", retention__ms="5")
    await story.configure(BROKER_TYPE, "1", message__max__bytes="1000001", **{PASSWORD.replace(".", "__"): "first"})
    await story.configure(BROKER_TYPE, "", message__max__bytes="1000002")
    await story.quota(1000, user="a@b c*")
    await story.quota(1001, user=None)
    await story.quota(1002, user="a@b c*", client_id="c d")
    await story.quota(1003, user=None, client_id=None)
    await story.quota(1004, client_id="c d")
    await story.quota(1005, client_id=None)
    await story.quota(20, ip="127.0.0.9")
    await story.quota(21, ip=None)
    await story.quota(7, user="was here")
    await story.quota(None, user="was here")
    for name in ("orders", "gone"):
        story.acl(name)
    story.acl("ord", ResourcePatternType.PREFIXED)
    story.scram("a@b c*", "secret-1")
    story.scram("leaver", "secret-2")
    story.producer()
    await story.token()
    await story.expire(await story.token(), 1200)


async def change_everything(story: Story) -> None:
    """In dual write; the broker still is in ZooKeeper mode.

    The last quota of anybody but a user is removed in KRaft alone: `handleClientQuotasDelta` of 3.9.2 falls over it.
    """
    story.topic("later")
    story.admin(lambda client: client.create_partitions([NewPartitions("orders", 5)]))
    story.admin(lambda client: client.delete_topics(["gone"]))
    await story.configure(TOPIC_TYPE, "orders", retention__ms="200000", cleanup__policy=None)
    await story.configure(BROKER_TYPE, "1", message__max__bytes=None, **{PASSWORD.replace(".", "__"): "second"})
    await story.configure(BROKER_TYPE, "", message__max__bytes="1000003")
    await story.quota(2000, user="a@b c*")
    await story.quota(None, user=None)
    await story.quota(2002, user="n%w", client_id=None)
    await story.quota(None, ip=None)
    await story.quota(2001, ip="127.0.0.9")
    story.acl("passing")
    passing = AclBindingFilter(ResourceType.TOPIC, "passing", ResourcePatternType.LITERAL, None, None, AclOperation.ANY,
                               AclPermissionType.ANY)
    story.admin(lambda client: client.delete_acls([passing]))
    story.acl("later")
    story.scram("a@b c*", "secret-3")
    story.scram("joiner", "secret-4")
    story.scram("leaver", None)


def every_kind_is_there(metadata: ClusterMetadata, topics: Iterable[str]) -> None:
    """An empty side equals an empty side: parity proves nothing if nothing was read."""
    assert metadata.topics.keys() >= set(topics)
    assert {resource.type for resource in metadata.configs} == {"topic", "broker"}
    assert {resource.name for resource in metadata.configs if resource.type == "broker"} == {"", "1"}
    assert PASSWORD in metadata.configs[Resource("broker", "1")]
    assert {tuple(kind for kind, _ in entity) for entity in metadata.quotas} == {
        ("user",), ("client-id",), ("client-id", "user"), ("ip",)}
    assert any(name is None for entity in metadata.quotas for _, name in entity)
    assert (("user", "a@b c*"),) in metadata.quotas
    assert {acl.pattern for acl in metadata.acls} == {"literal", "prefixed"}
    assert ("a@b c*", "SCRAM-SHA-256") in metadata.scram
    assert len(metadata.tokens) == 2
    assert all(token.renewers == ("User:b o*b",) for token in metadata.tokens.values())
    assert metadata.next_producer_id is not None
    assert metadata.malformed == {}


def plant_differences(story: Story, metadata: ClusterMetadata, token_id: str, old_password: str) -> list[str]:
    """One of every kind, written into ZooKeeper past Kafka; what the comparison must call them."""
    with zookeeper(story) as client:
        write_differences(client, metadata, token_id, old_password)
    return [
        "znode /config/clients/broken",
        "topic from-kraft",
        "partition orders-0", "partition orders-1", "partition orders-4",
        "broker configuration (default) message.max.bytes",
        f"broker configuration 1 {PASSWORD}",
        "topic configuration orders retention.ms",
        "quota client-id (default), user (default) producer_byte_rate",
        "quota client-id (default) producer_byte_rate",
        "quota user a@b c* producer_byte_rate",
        "quota ip 127.0.0.9 connection_creation_rate",
        "ACL Allow User:alice from * Read on Topic literal later",
        "ACL Allow User:alice from * Read on Topic prefixed ord",
        "SCRAM user a@b c* SCRAM-SHA-256",
        f"delegation token {token_id}",
        "producer ids next",
    ]


def write_differences(client: KazooClient, metadata: ClusterMetadata, token_id: str, old_password: str) -> None:
    orders = metadata.topics["orders"]
    first = orders.partitions[0]
    client.set("/brokers/topics/orders", topic_node(Topic(orders.id, {
        **{index: item for index, item in orders.partitions.items() if index != 4},
        0: first._replace(adding=(7,)), 1: first._replace(replicas=(1, 7))})))
    client.delete("/brokers/topics/from-kraft", recursive=True)
    client.delete("/config/topics/from-kraft")                          # left behind, it would break the full write
    client.set("/config/topics/orders", config({"retention.ms": "1"}))
    client.set("/config/brokers/1", config({PASSWORD: old_password}))
    client.set("/config/brokers/<default>", config({"message.max.bytes": "9"}))
    user = json.loads(client.get("/config/users/a%40b%20c%2A")[0])["config"]
    client.set("/config/users/a%40b%20c%2A", config(
        {**user, "producer_byte_rate": "1", "SCRAM-SHA-256": user["SCRAM-SHA-256"].replace("4096", "5000")}))
    client.set("/config/users/<default>/clients/<default>", config({"producer_byte_rate": "1"}))
    client.set("/config/ips/127.0.0.9", config({"connection_creation_rate": "1"}))
    client.delete("/config/clients/<default>")
    client.delete("/kafka-acl/Topic/later")
    client.delete("/kafka-acl-extended/prefixed/Topic/ord")
    token = json.loads(client.get(f"/delegation_token/tokens/{token_id}")[0])
    client.set(f"/delegation_token/tokens/{token_id}", json.dumps(token | {"expiryTimestamp": 1}).encode())
    block = json.loads(client.get("/latest_producer_id_block")[0])
    client.set("/latest_producer_id_block", json.dumps(block | {"block_start": "1", "block_end": "1000"}).encode())
    client.create("/config/clients/broken", b"{")


@contextlib.contextmanager
def zookeeper(story: Story) -> Iterator[KazooClient]:
    """A client that writes past Kafka."""
    client = KazooClient(story.cluster.zookeeper_connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()


def encrypted_password(story: Story) -> str:
    """As it stands in ZooKeeper."""
    with zookeeper(story) as client:
        return str(json.loads(client.get("/config/brokers/1")[0])["config"][PASSWORD])
