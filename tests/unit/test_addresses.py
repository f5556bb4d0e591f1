"""One address in many spellings: Java's, Kubernetes' and people's."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from switchover.api.consumer_group_migration import ConsumerGroupMigration
from switchover.api.kafka_migration import KafkaMigration
from switchover.kafka.client.connection import Connection
from switchover.kubernetes.client.pods import read_member_pod
from switchover.network.addresses import Address, canonical, looked_up, search_list
from switchover.network.credentials import Access
from switchover.network.security import security
from switchover.process import connections
from switchover.process.connections import Connections, GroupConnections, GroupOpeners, Openers
from switchover.zookeeper.client.session import addresses_of
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
    assert picture.foreign_members() == ()


def test_a_server_of_ipv6_has_brackets_where_a_port_follows() -> None:
    assert Access("[::1]:9092,kafka:9093").addresses == [Address("::1", 9092), Address("kafka", 9093)]
    assert [str(each) for each in Access("[::1]:9092,kafka:9093").addresses] == ["[::1]:9092", "kafka:9093"]


# --- names, for an operator that serves other namespaces than its own ----------------------------------------------------

RESOLV_CONF = """\
nameserver 10.96.0.10
search switchover.svc.cluster.local svc.cluster.local cluster.local corp.example
options ndots:5
"""


def there(namespace: str) -> tuple[str, ...]:
    return search_list(RESOLV_CONF, "switchover", namespace)


def test_a_pods_search_list_is_ours_with_its_namespace() -> None:
    assert there("shop") == ("shop.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example")
    assert search_list(RESOLV_CONF, "bank", "shop")[0] == "switchover.svc.cluster.local"
    assert search_list("", "switchover", "shop") == search_list("search\n", "switchover", "shop") == ()


NAMES = {f"{name}.": name for name in (
    "kafka.shop.svc.cluster.local", "kafka.switchover.svc.cluster.local", "kafka-0.kafka.kafka.svc.cluster.local",
    "kafka.kafka.svc.cluster.local", "kafka-0.kafka.shop.svc.cluster.local", "kafka-0.kafka.switchover.svc.cluster.local",
    "kafka.bank.svc.cluster.local", "broker-1.bank.svc.cluster.local", "broker-1.example.com", "zookeeper.corp.example")}
"""What the cluster's name server knows."""


@pytest.mark.parametrize(("namespace", "written", "meant"), [
    ("shop", "kafka", "kafka.shop.svc.cluster.local"),
    ("shop", "kafka-0.kafka", "kafka-0.kafka.shop.svc.cluster.local"),
    ("kafka", "kafka.kafka", "kafka.kafka.svc.cluster.local"),                  # a namespace that is called as its Service
    ("kafka", "kafka-0.kafka", "kafka-0.kafka.kafka.svc.cluster.local"),
    ("kafka", "kafka-0.kafka.kafka.svc", "kafka-0.kafka.kafka.svc.cluster.local"),
    ("shop", "kafka.bank", "kafka.bank.svc.cluster.local"),
    ("shop", "broker-1.bank", "broker-1.bank.svc.cluster.local"),               # a Service that is called like a pod
    ("shop", "kafka.shop.svc.cluster.local", "kafka.shop.svc.cluster.local"),
    ("shop", "broker-1.example.com", "broker-1.example.com"),
    ("shop", "zookeeper", "zookeeper.corp.example"),
    ("orders", "kafka", ""), ("orders", "kafka-0.kafka", "")])                  # never those of the operator's own namespace
def test_a_name_is_sought_as_a_pod_of_its_namespace_seeks_it(namespace: str, written: str, meant: str) -> None:
    assert next((NAMES[name] for name in looked_up(written, there(namespace)) if name in NAMES), "") == meant
    assert looked_up(written, ()) == (written,)


@pytest.mark.parametrize("written", ["kafka.", "10.0.0.1", "FD00::1", "::ffff:10.0.0.1", "localhost", ""])
def test_what_no_pod_seeks_stays(written: str) -> None:
    assert looked_up(written, there("shop")) == (written,)


@pytest.mark.parametrize(("home", "search"), [("switchover", there("shop")), ("shop", ()), ("", ())])
def test_every_client_of_a_migration_is_told_whose_names_are_meant(
        home: str, search: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[tuple[str, ...]] = []
    (tmp_path / "resolv.conf").write_text(RESOLV_CONF)
    monkeypatch.setattr(connections, "RESOLV_CONF", tmp_path / "resolv.conf")

    def opened(access: Any, _: Any = None, search: tuple[str, ...] | None = None) -> Any:
        told.append(access.search if search is None else search)
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
    assert told == [search] * 9


class NameServer:
    """Instead of the resolver: what exists is on loopback; and what was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *exist: str, error: int = socket.EAI_NONAME) -> None:
        self.asked: list[str] = []
        resolve = socket.getaddrinfo

        def getaddrinfo(host: str, *rest: Any, **more: Any) -> Any:
            self.asked.append(host)
            if host in exist:
                return resolve("127.0.0.1", *rest, **more)
            raise socket.gaierror(error, "not there")

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


KAFKA_0, OTHERS = "kafka-0.kafka.svc.cluster.local.", "kafka-0.kafka.switchover.svc.cluster.local."


def ask_a_broker() -> None:
    asyncio.run(Connection.open(Address("kafka-0.kafka", 1), security({}, search=there("shop"))))


def ask_zookeeper() -> None:
    addresses_of(Address("kafka-0.kafka", 1), there("shop"))
    raise ConnectionRefusedError


@pytest.mark.parametrize("ask", [ask_a_broker, ask_zookeeper])
def test_the_first_name_that_exists_is_reached(ask: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    names = NameServer(monkeypatch, KAFKA_0, OTHERS, "kafka-0.kafka")
    with pytest.raises(ConnectionRefusedError):
        ask()
    assert names.asked == ["kafka-0.kafka.shop.svc.cluster.local.", KAFKA_0]


@pytest.mark.parametrize("ask", [ask_a_broker, ask_zookeeper])
def test_a_name_server_that_does_not_answer_leads_to_no_other_name(
        ask: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    names = NameServer(monkeypatch, KAFKA_0, error=socket.EAI_AGAIN)
    with pytest.raises(socket.gaierror):
        ask()
    assert names.asked == ["kafka-0.kafka.shop.svc.cluster.local."]
