"""What the operator sees of a group whose coordination moves, on a real ZooKeeper and a real broker of Kafka 3.9.

Old consumers are sessions that write what the old one writes; the Kafka members are librdkafka's.
"""

import contextlib
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kazoo.client import KazooClient

from adapters.admin import create_topic
from adapters.clusters import KafkaCluster
from adapters.eventually import eventually
from patience import stretched
from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.layout import Layout
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Registration
from switchover.engine.gate import Verdict
from switchover.groups.coordination.brokers import CAPACITY
from switchover.groups.coordination.members import Members
from switchover.groups.coordination.membership import CONVERGED, COVERED
from switchover.groups.coordination.mode import SetMode
from switchover.groups.coordination.preflight import find_hazards, find_wrong_group
from switchover.groups.coordination.toggle import FOLLOWED, INTRUDERS
from switchover.groups.observe.observer import GroupClients, GroupObserver
from switchover.groups.picture import Picture
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.client.offsets import WireOffsets
from switchover.kafka.group import GroupState
from switchover.network.credentials import Access
from switchover.shared.partition import TopicPartition
from switchover.zookeeper.client.coordination import KazooZooKeeperGroups
from unit.group_pictures import BRIDGED, moment, spec_of, value, workload_of

PARTITIONS = 4


@dataclass
class Outside:
    """The ports of an observer: no workloads, real Kafka and ZooKeeper, and a clock that a test moves on."""

    clients_: GroupClients
    time: float = 1_795_000_000.0

    def now(self) -> float:
        return self.time

    async def clients(self) -> GroupClients:
        return self.clients_

    async def close(self) -> None:
        assert self.clients_.zookeeper is not None
        await self.clients_.groups.close()
        await self.clients_.offsets.close()
        await self.clients_.zookeeper.close()

    async def member_workloads(self, wanted: object) -> dict[str, Any]:
        return {}

    async def others_called(self, names: object) -> dict[str, str]:
        return {}

    async def original(self, name: str) -> None:
        return None

    async def missing_rights(self, secrets: Iterable[str]) -> tuple[str, ...]:
        return ()


@dataclass
class Group:
    """A group of its own on a topic of its own."""

    cluster: KafkaCluster
    name: str
    sessions: dict[str, KazooClient] = field(default_factory=dict)
    consumers: dict[str, Consumer] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        return Layout(self.name)

    def id_of(self, pod: str) -> str:
        return f"{self.name}_{pod}-1795240855786-0a1b2c3d"

    def registers(self, pod: str, *, enabled: bool = False) -> None:
        """A consumer in a pod is in ZooKeeper."""
        consumer_id, client = self.id_of(pod), KazooClient(self.cluster.zookeeper_connect)
        client.start()
        self.sessions[pod] = client
        if enabled:
            client.ensure_path(self.layout.migration_ids)
            client.create(self.layout.acknowledgement(consumer_id), Acknowledgement().encoded(), ephemeral=True)
        client.create(self.layout.registration(consumer_id), Registration({self.name: 1}).encoded(), ephemeral=True,
                      makepath=True)

    def owns(self, pod: str, *numbers: int) -> None:
        for number in numbers:
            path = self.layout.owner(TopicPartition(self.name, number))
            self.sessions[pod].create(path, f"{self.id_of(pod)}-0".encode(), ephemeral=True, makepath=True)

    def commits(self, pod: str, offset: int) -> None:
        for number in range(PARTITIONS):
            path = self.layout.offset(TopicPartition(self.name, number))
            self.sessions[pod].ensure_path(path)
            self.sessions[pod].set(path, str(offset).encode())

    def joins(self, client_id: str) -> None:
        """A member of Kafka's group."""
        consumer = Consumer({"bootstrap.servers": self.cluster.bootstrap, "group.id": self.name, "client.id": client_id,
                             "partition.assignment.strategy": "range", "enable.auto.commit": False})
        consumer.subscribe([self.name])
        self.consumers[client_id] = consumer

    def poll(self) -> None:
        for consumer in self.consumers.values():
            consumer.poll(0.1)


@pytest.fixture
def group(zookeeper_cluster: KafkaCluster) -> Iterator[Group]:
    name = f"orders-{uuid.uuid4().hex[:8]}"
    create_topic(zookeeper_cluster.bootstrap, name, PARTITIONS)
    producer = Producer({"bootstrap.servers": zookeeper_cluster.bootstrap})
    for number in range(PARTITIONS):
        for _ in range(10):
            producer.produce(name, b"record", partition=number)
    assert producer.flush(stretched(30)) == 0
    found = Group(zookeeper_cluster, name)
    yield found
    for consumer in found.consumers.values():
        consumer.close()
    for client in found.sessions.values():
        client.stop()
        client.close()


@contextlib.asynccontextmanager
async def observing(group: Group) -> AsyncIterator[tuple[GroupObserver, Outside, Picture]]:
    kafka = Access(group.cluster.bootstrap)
    zookeeper = Access(group.cluster.zookeeper_connect)
    outside = Outside(GroupClients(WireGroups(kafka), WireOffsets(kafka), KazooZooKeeperGroups(zookeeper)))
    spec = spec_of(workload_of(**BRIDGED), group=group.name, coordination={"to": "Kafka"},
                   zookeeper={"connect": group.cluster.zookeeper_connect})
    observer = GroupObserver(outside, outside, outside, outside)  # type: ignore[arg-type]
    try:
        yield observer, outside, moment("Preflight", "OO", spec=spec)
    finally:
        await observer.close()


async def seen(observer: GroupObserver, outside: Outside, picture: Picture, passes: int = 2) -> Picture:
    for _ in range(passes):
        outside.time += 5.0
        picture = replace(await observer.see(replace(picture, now=outside.time), ""), now=outside.time)
    return picture


def _stores_read(picture: Picture) -> bool:
    """The first question for a group's coordinator may still have to make `__consumer_offsets`."""
    return isinstance(picture.facts.stores, Known) and len(picture.facts.stores.value) > 1


def members(picture: Picture) -> Members:
    assert isinstance(picture.members, Known), picture.members
    return picture.members.value


async def test_a_group_that_kafka_does_not_know_is_seen_whole(group: Group) -> None:
    for pod in ("orders-0", "orders-1"):
        group.registers(pod)
    group.owns("orders-0", 0, 1)
    group.owns("orders-1", 2, 3)
    group.commits("orders-0", 7)
    async with observing(group) as (observer, outside, picture):
        picture = await eventually(lambda: seen(observer, outside, picture), _stores_read)
        assert (value(picture.facts.group).state, members(picture).followed) == (GroupState.DEAD, {Mode.ZOOKEEPER})
        assert [gate.check(picture).reason for gate in (CONVERGED, COVERED, FOLLOWED, INTRUDERS)] == ["Passed"] * 4
        assert members(picture).agreeing(None) == ("Range",)
        assert not [*find_wrong_group(picture), *find_hazards(picture)]
        stores = value(picture.facts.stores)
        assert {(each.zookeeper, each.kafka, each.start, each.end) for each in stores[-1].offsets.values()} == {
            (7, None, 0, 10)}
        assert value(picture.facts.samples)[-1].offsets == {
            TopicPartition(group.name, number): (7, 10) for number in range(PARTITIONS)}
        assert value(picture.facts.lag).group.sole_owners
        assert value(picture.facts.quiet_since) == outside.time
        assert value(picture.facts.coordinators) == {value(picture.facts.group).coordinator}
        assert CAPACITY.check(picture).reason == "Passed"
        group.sessions["orders-1"].delete(group.layout.owner(TopicPartition(group.name, 3)))
        picture = await seen(observer, outside, picture)
        assert [gate.check(picture).reason for gate in (CONVERGED, COVERED)] == ["OwnersUnsettled", "PartitionsUnowned"]


async def test_a_migration_enabled_member_is_told_from_a_kafka_consumer(group: Group) -> None:
    group.registers("orders-0", enabled=True)
    group.joins(group.id_of("orders-0"))
    async with observing(group) as (observer, outside, picture):
        began = outside.time

        async def sees() -> Picture:
            group.poll()
            return await seen(observer, outside, picture, 1)

        async def whole(count: int) -> Picture:
            return await eventually(sees, lambda found: isinstance(found.facts.group, Known) and (
                found.facts.group.value.state, len(found.facts.group.value.members)) == (GroupState.STABLE, count))

        alone = await whole(1)
        assert (members(alone).enabled, members(alone).kafka_consumers) == ({group.id_of("orders-0")}, ())
        assert INTRUDERS.check(replace(alone, position=replace(alone.position, step="Toggle"))).reason == "Passed"
        assert value(alone.facts.quiet_since) <= began + 5.0
        group.joins("console")
        both = await whole(2)
        assert [each.client_id for each in members(both).kafka_consumers] == ["console"]
        verdict: Verdict = INTRUDERS.check(replace(both, position=replace(both.position, step="Toggle", opened=None)))
        assert (verdict.reason, verdict.subject) == ("KafkaConsumerTooEarly", "console")
        await observer.perform(SetMode(group.name, Mode.KAFKA, -1))
        migration = ConsumerGroupMigration.model_validate({"metadata": {"name": "m", "uid": "u"}, "spec": both.spec})
        assert await observer.leftovers(migration) == [f"znode {group.layout.mode}, which says kafka"]
        after = await seen(observer, outside, both, 1)
        assert (members(after).world.mode, members(after).world.mode_version >= 0) == (Mode.KAFKA, True)
        assert FOLLOWED.check(after).reason == "ModeNotFollowed"
