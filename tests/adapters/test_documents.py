"""The commands on the pages for users, on real Kafka and ZooKeeper: each block as it stands, in the order of the pages."""

import asyncio
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient

from adapters.admin import commit_for, create_topic
from adapters.clusters import KRaftNode, kafka_cluster
from adapters.formatted import lay_out, random_id
from adapters.group_members import assignment, classic_member, joined, subscription
from adapters.servers import KAFKA, libraries
from adapters.test_groups_command import coordinated, share_member
from documents import Block, run, sampled
from load import consumer
from load.history import History
from patience import stretched
from switchover.runtime.signals import Stop

FEATURES = "#!/bin/sh\nexec {}/bin/kafka-run-class.sh org.apache.kafka.tools.FeatureCommand \"$@\"\n"
PLACEHOLDERS = {"TOPIC": "payments"}


class World(NamedTuple):
    """Where the page's kafka:9092 and zookeeper:2181 are."""

    kafka: str
    zookeeper: str = ""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Kafka 3.9 on ZooKeeper, with the offsets of an old consumer."""
    with kafka_cluster(tmp_path_factory.mktemp("old"), brokers=(0,)) as cluster:
        cluster.start_zookeeper_mode()
        for topic in ("orders", "payments"):
            create_topic(cluster.bootstrap, topic)
        tree = KazooClient(str(cluster.zookeeper.address), timeout=stretched(30))
        tree.start()
        tree.create("/consumers/billing/offsets/payments/0", b"4711", makepath=True)
        tree.stop()
        tree.close()
        yield World(cluster.bootstrap, str(cluster.zookeeper.address))


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Kafka 4.4 on the disks of 3.9, and at its levels."""
    server = KRaftNode(tmp_path_factory.mktemp("upgraded"), "3.9")
    properties = server.properties()
    lay_out(server, random_id(), properties)
    server.version = "4.4"
    server.start(properties)
    yield World(str(server.address))
    server.kill()


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Kafka 4.4 with a group of each type."""
    server = KRaftNode(tmp_path_factory.mktemp("groups"), "4.4")
    server.begin()
    asyncio.run(grouped(server))
    yield World(str(server.address))
    server.kill()


async def grouped(server: KRaftNode) -> None:
    create_topic(str(server.address), "orders", 3)
    await coordinated(server.address, ["orders"])
    await classic_member(server.address, "orders", subscription("orders"), assignment("orders", 0, 1, 2))
    await classic_member(server.address, "connect", b"\xff", b"\xff", protocol_type="connect", strategies=("sessioned",))
    await joined(server.address, "payments", "orders")
    await share_member(server.address, "sessions", "orders")


@pytest.fixture(scope="module")
def lagging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Kafka 4.4 with a group that keeps up, and one that nobody consumes for."""
    server = KRaftNode(tmp_path_factory.mktemp("lagging"), "4.4")
    server.begin()
    servers, stop = str(server.address), Stop()
    for topic in ("orders", "payments"):
        create_topic(servers, topic, 3)
    producer = Producer({"bootstrap.servers": servers})
    for number in range(9000):
        producer.produce("payments", b"1", partition=number % 3)
    assert producer.flush(stretched(60)) == 0
    for number in range(3):
        commit_for(servers, "payments", "payments", 0, partition=number)

    def orders() -> None:
        while not stop.wait(0.1):
            for number in range(3):
                producer.produce("orders", b"1", partition=number)
            producer.poll(0)

    threads = [Thread(target=orders), Thread(target=consumer.consume, args=(
        servers, "orders", "orders", History("orders", tmp_path_factory.mktemp("history") / "orders.json"), stop))]
    for thread in threads:
        thread.start()
    yield World(servers)
    stop.set()
    for thread in threads:
        thread.join()
    server.kill()


@pytest.mark.parametrize("block", sampled("kafka"))
def test_it_runs_on_real_kafka(block: Block, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    world: World = request.getfixturevalue((block.marker or {})["place"])
    (tmp_path / "kafka-features.sh").write_text(FEATURES.format(shlex.quote(str(KAFKA))))
    (tmp_path / "kafka-features.sh").chmod(0o755)
    script = block.script.replace("kafka:9092", world.kafka).replace("zookeeper:2181", world.zookeeper)
    for placeholder, value in PLACEHOLDERS.items():
        script = re.sub(rf"\b{placeholder}\b", value, script)
    names, path = {world.kafka: "kafka:9092"}, f"{tmp_path}:{KAFKA / 'bin'}"
    run(block, tmp_path, script, names, seconds=200, PATH=path, KAFKA_LIBS=str(libraries()))
