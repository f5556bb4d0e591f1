"""Raising inter.broker.protocol.version on ZooKeeper brokers and going back to the old one, with real Kafka and data.

Upstream promises the way up only. The way back is what RaiseProtocolVersion undoes, so it is run here: 3.9 binaries write
nothing in ZooKeeper mode that an older protocol version of the same binaries could not read.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from adapters.admin import create_topic
from adapters.clusters import KafkaCluster, kafka_cluster, patient_wire
from adapters.pods import as_pod, brokers_of
from patience import Patience, stretched, until
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cluster.door import edits

RECORDS = 100
NEW = "3.9"
OLDEST, NEWEST = "2.8", "3.5"
"""From the first version whose controller writes topic ids to the last one that cannot begin a migration."""


class Rolling:
    """Two brokers that are rolled from one protocol version to another, with records written at every stop."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.cluster = cluster
        self.written: list[str] = []

    def begin(self, version: str = "", release: str = NEW) -> None:
        """On the user's own file, which says this protocol version or none, with the binaries of a release."""
        replicated = "offsets.topic.replication.factor=2\ntransaction.state.log.replication.factor=2\n"
        self.cluster.zookeeper.start(self.cluster.zookeeper.properties())
        for broker, server in self.cluster.brokers.items():
            text = self.cluster.broker_properties(broker, Mode.ZOOKEEPER, replicated)
            told = f"inter.broker.protocol.version={version}" if version else ""
            as_pod(server, text.replace("inter.broker.protocol.version=3.9", told))
            server.version = release
            server.start("", wait=False)
        self.cluster.wait_for_brokers()
        self.create("before")

    async def edits(self, mode: str, image: str = "") -> str:
        """The edits of mode ZooKeeperRaised or ZooKeeperPinned, by what the brokers tell."""
        found = await brokers_of(patient_wire({}), self.cluster.brokers[1].address, 1, image)
        return edits.written(edits.broker(mode, 1, None, found))

    def roll(self, edits_: str, release: str = NEW) -> None:
        """One broker after the other, each back in sync, with both versions in the cluster meanwhile."""
        for broker, server in self.cluster.brokers.items():
            server.stop()
            server.version = release
            server.start(edits_)
            self.cluster.wait_for_brokers()
            self.wait_for_sync()
            self.write(f"{edits.marker_of(edits_)} on broker {broker}")

    def create(self, topic: str) -> None:
        create_topic(self.cluster.bootstrap, topic, replicas=2, config={"min.insync.replicas": "1"})

    def wait_for_sync(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap})

        def whole() -> bool:
            partitions = [partition for topic in admin.list_topics(timeout=stretched(30)).topics.values()
                          for partition in topic.partitions.values()]
            return bool(partitions) and all(set(each.isrs) == set(each.replicas) and each.leader >= 0 for each in partitions)

        until(whole, "the replicas are back in sync", 90)

    def write(self, mark: str) -> None:
        """Records as they are, and a transaction: its log and the group's offsets are read by other brokers, too."""
        plain = Producer({"bootstrap.servers": self.cluster.bootstrap, "acks": "all", "enable.idempotence": True})
        for number in range(RECORDS):
            plain.produce("before", f"{mark}/{number}")
        assert plain.flush(stretched(60)) == 0
        transactional = Producer({"bootstrap.servers": self.cluster.bootstrap, "transactional.id": "one"})
        transactional.init_transactions(stretched(60))
        transactional.begin_transaction()
        transactional.produce("before", f"{mark}/transaction")
        transactional.commit_transaction(stretched(60))
        self.written += [*(f"{mark}/{number}" for number in range(RECORDS)), f"{mark}/transaction"]
        self._read_and_commit()

    def _read_and_commit(self) -> None:
        """What the group has not read yet, from the offset that it committed at the last stop."""
        consumer = Consumer({"bootstrap.servers": self.cluster.bootstrap, "group.id": "readers",
                             "enable.auto.commit": False, "auto.offset.reset": "earliest"})
        (committed,) = self._again(lambda: consumer.committed([TopicPartition("before", 0)], timeout=60))
        consumer.assign([TopicPartition("before", 0, max(committed.offset, 0))])
        unread = self.written[-RECORDS - 1:]
        assert self._read(consumer, len(unread)) == unread
        self._again(lambda: consumer.commit(asynchronous=False))
        consumer.close()

    def _again(self, call: Callable[[], Any]) -> Any:
        """What it gives; done again while the coordinator moves from the broker that was restarted."""
        patience = Patience(60)
        while True:
            try:
                return call()
            except KafkaException:
                if patience.over:
                    raise
                time.sleep(0.5)

    def everything(self) -> list[str]:
        consumer = Consumer({"bootstrap.servers": self.cluster.bootstrap, "group.id": "judge", "enable.auto.commit": False})
        consumer.assign([TopicPartition("before", 0, 0)])
        found = self._read(consumer, len(self.written))
        consumer.close()
        return found

    def _read(self, consumer: Consumer, count: int) -> list[str]:
        found: list[str] = []
        patience = Patience(60)
        while len(found) < count and not patience.over:
            found += [(each.value() or b"").decode() for each in consumer.consume(count, 1) if each.error() is None]
        return found

    async def live(self) -> set[str]:
        """The version that the brokers say they run with."""
        wire = patient_wire({})
        return {(await wire.settings(server.address, broker))["inter.broker.protocol.version"].split("-")[0]
                for broker, server in self.cluster.brokers.items()}

    async def api_keys(self) -> set[frozenset[int]]:
        wire = patient_wire({})
        found = {frozenset((await wire.api_versions(server.address)).api_keys) for server in self.cluster.brokers.values()}
        await wire.close()
        return found


@pytest.fixture
def rolling(tmp_path: Path) -> Iterator[Rolling]:
    with kafka_cluster(tmp_path, brokers=(1, 2)) as cluster:
        yield Rolling(cluster)


@pytest.mark.long
@pytest.mark.parametrize("old", [OLDEST, NEWEST])
async def test_the_version_goes_up_and_comes_back_with_all_data(rolling: Rolling, old: str) -> None:
    rolling.begin(old)
    rolling.write("begin")
    assert await rolling.live() == {old}
    keys = await rolling.api_keys()
    rolling.roll(await rolling.edits(Mode.ZOOKEEPER_RAISED))
    assert await rolling.live() == {NEW}
    assert await rolling.api_keys() == keys, "ApiVersions does not tell the versions apart: the settings do"
    rolling.create("in-the-new-version")
    rolling.wait_for_sync()
    rolling.roll("")
    assert await rolling.live() == {old}
    rolling.create("back-in-the-old-one")
    rolling.wait_for_sync()
    assert rolling.everything() == rolling.written


@pytest.mark.long
@pytest.mark.parametrize("old", ["3.6", "3.8"])
async def test_an_older_kafka_is_upgraded_and_comes_back_with_all_data(rolling: Rolling, old: str) -> None:
    """The protocol version that no file has stays what the older Kafka takes for its own."""
    rolling.begin(release=old)
    rolling.write("begin")
    assert await rolling.live() == {old}
    upgraded = await rolling.edits(Mode.ZOOKEEPER_PINNED, "kafka:3.9")
    for edits_, release in ((upgraded, NEW), ("", old), (upgraded, NEW)):
        rolling.roll(edits_, release)
        assert await rolling.live() == {old}
        rolling.create(f"with-{release}-{len(rolling.written)}")
        rolling.wait_for_sync()
    assert rolling.everything() == rolling.written
