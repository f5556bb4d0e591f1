"""The forms in which `zookeeper.connect` stands in configurations: read as Kafka reads them, or refused."""

import pytest
from kazoo.client import KazooClient
from pydantic import ValidationError

from switchover.network.credentials import Access
from switchover.zookeeper.client.zookeeper import KazooZooKeeper
from unit.pictures import spec_of


@pytest.mark.parametrize(("connect", "servers", "chroot"), [
    ("zk:2181", ["zk:2181"], ""),
    ("zk:2181/", ["zk:2181"], ""),
    ("zk:2181/kafka", ["zk:2181"], "/kafka"),
    ("zk-0.zk:2181,zk-1.zk:2181/kafka/a", ["zk-0.zk:2181", "zk-1.zk:2181"], "/kafka/a"),
])
def test_servers_and_chroot_are_those_that_kafka_has(connect: str, servers: list[str], chroot: str) -> None:
    named = spec_of(zookeeper={"connect": connect}).zookeeper.connect
    assert [str(server) for server in KazooZooKeeper(Access(named)).servers()] == servers
    assert KazooClient(named).chroot == chroot


@pytest.mark.parametrize("connect", [
    "zk", "zk-0:2181/kafka,zk-1:2181/kafka", "zk-0:2181, zk-1:2181", "zk-0:2181,zk-1:2181,"])
def test_other_forms_are_refused(connect: str) -> None:
    with pytest.raises(ValidationError, match="zookeeper"):
        spec_of(zookeeper={"connect": connect})
