"""Servers shared by all tests of this directory: give topics, groups and znodes a name of their own."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from adapters.clusters import KafkaCluster, KRaftNode, kafka_cluster, node
from adapters.group_brokers import Serve, one_at_a_time
from adapters.servers import ZooKeeperServer


@pytest.fixture(scope="package")
def zookeeper_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """ZooKeeper and broker 1 in mode ZooKeeper. Leave them running; nobody migrates this cluster."""
    with kafka_cluster(tmp_path_factory.mktemp("zookeeper-cluster")) as cluster:
        cluster.start_zookeeper_mode("super.users=User:nobody\n")
        yield cluster


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[KafkaCluster]:
    """A cluster of this test alone, broker 1 and controllers 3000–3002, nothing started yet."""
    with kafka_cluster(tmp_path, controllers=(3000, 3001, 3002)) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def newest_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KRaftNode]:
    """One node of Kafka 4.4 as it comes: consumer protocol on, groups may be converted both ways. Leave it running."""
    with node(tmp_path_factory.mktemp("kafka-4.4"), "4.4") as server:
        server.begin()
        yield server


@pytest.fixture(scope="package")
def oldest_kafka_4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KRaftNode]:
    """One node of Kafka 4.0 as it comes. Leave it running."""
    with node(tmp_path_factory.mktemp("kafka-4.0"), "4.0") as server:
        server.begin()
        yield server


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """ZooKeeper without Kafka. Who freezes it lets it go on."""
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    server.start(server.properties())
    yield server
    server.kill()


@pytest.fixture
def client(server: ZooKeeperServer) -> Iterator[KazooClient]:
    """A client in a chroot of this test alone."""
    chroot = f"/{uuid.uuid4().hex}"
    root = KazooClient(str(server.address))
    root.start()
    root.create(chroot)
    root.stop()
    client = KazooClient(f"{server.address}{chroot}")
    client.start()
    yield client
    client.stop()


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Brokers for a file that asks several, one of them at a time."""
    with one_at_a_time(tmp_path_factory) as serve:
        yield serve
