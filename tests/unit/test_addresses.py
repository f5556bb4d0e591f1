"""One address in many spellings: Java's, Kubernetes' and people's."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.api.kafka_migration import KafkaMigration
from switchover.kafka.client.connection import Connection
from switchover.kubernetes.client.pods import read_member_pod
from switchover.operator.connections import Connections, GroupConnections, GroupOpeners, Openers
from switchover.outside.access import Access
from switchover.outside.addresses import Address, canonical, looked_up
from switchover.outside.security import security
from unit.group_pictures import moment, with_member, with_pod


@pytest.mark.parametrize(("text", "address"), [
    ("10.0.0.1", "10.0.0.1"), ("0:0:0:0:0:0:0:1", "::1"), ("fd00:0:0:1:0:0:0:a", "fd00:0:0:1::a"), ("FD00::A", "fd00::a"),
    ("::ffff:10.0.0.1", "10.0.0.1"), ("kafka-0", "kafka-0"), ("", ""), ("10.0.0.256", "10.0.0.256")])
def test_one_spelling_for_each_address(text: str, address: str) -> None:
    assert canonical(text) == address


def test_a_pod_of_dual_stack_has_two() -> None:
    found = {"metadata": {"name": "orders-0", "uid": "1"}, "spec": {}, "status": {
        "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00:0:0::1"}]}}
    assert read_member_pod(found).ips == {"10.0.0.1", "fd00::1"}
    assert read_member_pod({**found, "status": {}}).ips == frozenset()


def test_a_member_is_known_by_any_address_of_its_pod() -> None:
    picture = with_member(0, host="fd00::1")(with_pod("orders-0", ips=frozenset({"10.0.0.0", "fd00::1"}))(moment("Settle")))
    pod = next(pod for _, _, pod in picture.pods() if pod.name == "orders-0")
    assert [member.host for member in picture.members_of(pod)] == ["fd00::1"]
    assert picture.strangers() == ()


def test_a_server_of_ipv6_has_brackets_where_a_port_follows() -> None:
    assert Access("[::1]:9092,kafka:9093").addresses == [Address("::1", 9092), Address("kafka", 9093)]
    assert [str(each) for each in Access("[::1]:9092,kafka:9093").addresses] == ["[::1]:9092", "kafka:9093"]


# --- names, for an operator that serves other namespaces than its own ----------------------------------------------------


@pytest.mark.parametrize(("written", "found"), [
    ("kafka", "kafka.shop.svc"), ("kafka-0.kafka-headless", "kafka-0.kafka-headless.shop.svc"),
    ("kafka-0.shop", "kafka-0.shop"), ("kafka.shop", "kafka.shop"), ("kafka.bank", "kafka.bank"),
    ("kafka.shop.svc.cluster.local", "kafka.shop.svc.cluster.local"), ("broker-1.example.com", "broker-1.example.com"),
    ("kafka.", "kafka."), ("10.0.0.1", "10.0.0.1"), ("fd00::1", "fd00::1"), ("localhost", "localhost")])
def test_a_name_means_what_it_means_in_the_namespace_where_it_was_written(written: str, found: str) -> None:
    assert looked_up(written, "shop") == found
    assert looked_up(written, "") == written


def test_every_server_of_a_list_is_looked_up_so() -> None:
    servers = "zookeeper-0.zookeeper:2181,zookeeper.shop:2181, [fd00::1]:2181/kafka"
    assert Access(servers, within="shop").reached == (
        "zookeeper-0.zookeeper.shop.svc:2181,zookeeper.shop:2181,[fd00::1]:2181/kafka")
    assert Access(servers).reached == servers.replace(", ", ",")


@pytest.mark.parametrize(("home", "within"), [("switchover", "shop"), ("shop", ""), ("", "")])
def test_every_client_of_a_migration_is_told_whose_names_are_meant(home: str, within: str) -> None:
    told: list[str] = []

    def opened(access: Any, _: Any = None, namespace: str | None = None) -> Any:
        told.append(access.within if namespace is None else namespace)
        return SimpleNamespace(close=lambda: asyncio.sleep(0))

    async def run() -> None:
        metadata = {"name": "kafka", "namespace": "shop"}
        kafka, zookeeper = {"bootstrapServers": "kafka:9092"}, {"connect": "zookeeper:2181"}
        cluster = KafkaMigration.model_validate({"metadata": metadata, "spec": {
            "kafka": kafka, "zookeeper": zookeeper, "brokers": [{"name": "kafka"}],
            "controllers": {"storage": {"size": "1Gi"}}}})
        workloads: Any = None
        observer = await Connections("shop", workloads, workloads, workloads, Openers(*[opened] * 5), home=home)(cluster)
        await observer._connected.clients(controllers=True)
        group = ConsumerGroupMigration.model_validate({"metadata": metadata, "spec": {
            "kafka": kafka, "zookeeper": zookeeper, "group": "orders", "coordination": {"to": "Kafka"},
            "workloads": [{"name": "orders", "kind": "Deployment", "container": "app", "template": {"image": "orders:2"}}]}})
        watcher = await GroupConnections(workloads, workloads, workloads, GroupOpeners(*[opened] * 3), home=home)(group)
        await watcher._connected.clients()

    asyncio.run(run())
    assert told == [within] * 9


def test_a_broker_is_connected_to_by_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[Any, ...]] = []

    async def refused(*where: Any, **_: Any) -> Any:
        called.append(where)
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio, "open_connection", refused)
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(Connection.open(Address("kafka-0.kafka", 9092), security({}, within="shop")))
    assert called == [("kafka-0.kafka.shop.svc", 9092)]
