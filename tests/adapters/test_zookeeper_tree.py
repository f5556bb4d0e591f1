"""The whole metadata read from a real ZooKeeper, and ZooKeeper asked other things meanwhile."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from adapters.servers import ZooKeeperServer
from fakes import planted_trees
from fakes.metadata_sides import config, nodes_of, topic_node
from switchover.answers.errors import Refused
from switchover.metadata.cluster import Acl, Assignment, ClusterMetadata, Hidden, Resource, Scram, Token, Topic
from switchover.metadata.tree import TreeParser, state_path
from switchover.network.credentials import Access
from switchover.zookeeper.client.zookeeper import KazooZooKeeper

ORDERS = Topic("AAAAAAAAAAAAAAAAAAAAAg", {0: Assignment((1, 2, 3)), 1: Assignment((2, 3, 1), adding=(1,))})
SAMPLE = ClusterMetadata(
    topics={"orders": ORDERS},
    configs={Resource("topic", "orders"): {"retention.ms": "1000"}, Resource("broker", ""): {"log.cleaner.threads": "2"}},
    quotas={
        (("user", None),): {"producer_byte_rate": 1.0},
        (("client-id", None), ("user", None)): {"producer_byte_rate": 2.0},
        (("client-id", "a b"), ("user", "bob")): {"producer_byte_rate": 3.0},
        (("client-id", "a b"),): {"producer_byte_rate": 4.0},
        (("ip", "::1"),): {"connection_creation_rate": 5.0},
    },
    acls=frozenset({Acl("User:alice", "*", "Allow", "Read", "Topic", "literal", "orders"),
                    Acl("User:alice", "*", "Allow", "Read", "Group", "prefixed", "g")}),
    scram={("alice", "SCRAM-SHA-256"): Scram(4096, Hidden((b"salt", b"stored", b"server")))},
    tokens={"t": Token("User:alice", "User:alice", (), 1, 2, 3)},
    next_producer_id=2000,
)


@pytest.fixture
async def zookeeper(server: ZooKeeperServer, client: KazooClient) -> KazooZooKeeper:
    return KazooZooKeeper(Access(f"{server.address}{client.chroot}"))


def write(client: KazooClient, metadata: ClusterMetadata) -> None:
    client.create("/cluster/id", b'{"version":"1","id":"hereClusterAAAAAAAAAAA"}', makepath=True)
    for path, data in nodes_of(metadata).items():
        if client.exists(path):
            client.set(path, data)
        else:
            client.create(path, data, makepath=True)


async def test_every_kind_is_found_where_it_stands(zookeeper: KazooZooKeeper, client: KazooClient) -> None:
    write(client, SAMPLE)
    client.create("/config/changes/config_change_0000000001", b"{}", makepath=True)
    client.create("/migration", json.dumps({
        "version": 0, "kraft_controller_id": 3000, "kraft_controller_epoch": 1, "kraft_metadata_offset": 77,
        "kraft_metadata_epoch": 1}).encode())
    reading = await zookeeper.metadata(None)
    assert reading.metadata == SAMPLE
    assert reading.offset == 77
    await zookeeper.close()


async def test_an_empty_tree_is_empty_metadata(zookeeper: KazooZooKeeper) -> None:
    reading = await zookeeper.metadata(None)
    assert (reading.offset, reading.metadata) == (-1, ClusterMetadata())
    await zookeeper.close()


async def test_a_node_without_data_is_not_one_with_empty_data(zookeeper: KazooZooKeeper, client: KazooClient) -> None:
    """Kafka begins with the one, and ends at the other."""
    client.create("/latest_producer_id_block", None)
    client.create("/migration", None)
    reading = await zookeeper.metadata(None)
    assert (reading.offset, reading.metadata) == (-1, ClusterMetadata())
    client.set("/latest_producer_id_block", b"")
    client.create("/config/topics/orders", None, makepath=True)
    assert (await zookeeper.metadata(None)).metadata.malformed == {"/latest_producer_id_block": "empty"}
    await zookeeper.close()


async def test_changes_are_seen_and_the_rest_is_not_parsed_again(
    zookeeper: KazooZooKeeper, client: KazooClient, monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(client, SAMPLE)
    assert (await zookeeper.metadata(None)).metadata == SAMPLE
    parsed: list[str] = []
    entries = TreeParser.entries
    monkeypatch.setattr(TreeParser, "entries", lambda self, path, data: [parsed.append(path), entries(self, path, data)][1])
    moved = Topic(ORDERS.id, {0: Assignment((3, 2, 1))})
    client.set("/brokers/topics/orders", topic_node(moved))
    client.delete("/delegation_token/tokens/t")
    client.create("/config/clients/new", config({"producer_byte_rate": "9"}))
    reading = await zookeeper.metadata(None)
    assert reading.metadata == replace(SAMPLE, topics={"orders": moved}, tokens={}, quotas={
        **SAMPLE.quotas, (("client-id", "new"),): {"producer_byte_rate": 9.0}})
    assert sorted(parsed) == ["/brokers/topics/orders", "/config/clients/new"]
    client.delete("/config/users/bob/clients", recursive=True)
    client.delete("/config/clients/new")
    again = await zookeeper.metadata(None)
    assert set(again.metadata.quotas) == SAMPLE.quotas.keys() - {(("client-id", "a b"), ("user", "bob"))}
    assert sorted(parsed) == ["/brokers/topics/orders", "/config/clients/new"], "parsed again without need"
    await zookeeper.close()


async def test_the_versions_of_states_are_read_where_they_are_wanted(
        zookeeper: KazooZooKeeper, client: KazooClient) -> None:
    write(client, SAMPLE)
    client.create(state_path("orders", 0), b"{}", makepath=True)
    client.set(state_path("orders", 0), b"{}")
    assert (await zookeeper.metadata(None)).metadata.epochs is None
    reading = await zookeeper.metadata(None, states=True)
    assert (reading.metadata, reading.metadata.epochs) == (SAMPLE, {("orders", 0): 1})
    await zookeeper.close()


async def test_another_secret_reads_passwords_again(zookeeper: KazooZooKeeper, client: KazooClient) -> None:
    client.create("/config/brokers/1", config({"ssl.key.password": "plain"}), makepath=True)
    plain = {Resource("broker", "1"): {"ssl.key.password": Hidden("plain")}}
    assert (await zookeeper.metadata(None)).metadata.configs == plain
    assert set((await zookeeper.metadata("secret")).metadata.malformed) == {"/config/brokers/1"}
    assert (await zookeeper.metadata(None)).metadata.configs == plain
    await zookeeper.close()


async def test_a_node_that_may_not_be_read_is_named(zookeeper: KazooZooKeeper, client: KazooClient) -> None:
    client.ensure_path("/config/users")
    client.create("/config/users/alice", config({}), acl=[make_digest_acl("kafka", "secret", all=True)])
    with pytest.raises(Refused, match=r"does not let us use /config/users/alice: its ACL must give our credentials READ"):
        await zookeeper.metadata(None)
    await zookeeper.close()


async def test_a_malformed_migration_node_is_refused(zookeeper: KazooZooKeeper, client: KazooClient) -> None:
    client.create("/migration", b"{")
    with pytest.raises(Refused, match="/migration in ZooKeeper is not what Kafka writes: not JSON"):
        await zookeeper.metadata(None)
    await zookeeper.close()


@pytest.mark.parametrize(("read", "found"), [
    (lambda zookeeper: zookeeper.metadata(None), lambda reading: (len(reading.metadata.topics), reading.reads > 2000)),
    (lambda zookeeper: zookeeper.partition_epoch(), lambda epoch: (2000, epoch == 9)),
    (lambda zookeeper: zookeeper.stateless(), lambda found: (len(found) + 1, found["t7", 0] == (1, 2, 3))),
    (lambda zookeeper: zookeeper.topics(),
     lambda found: (len(found.topics), found.topics["t7"].assignment == {0: (1, 2, 3)})),
], ids=["metadata", "epoch", "stateless", "topics"])
async def test_other_questions_are_answered_between_the_slices(
        zookeeper: KazooZooKeeper, client: KazooClient, read: Callable[[KazooZooKeeper], Coroutine[Any, Any, Any]],
        found: Callable[[Any], object]) -> None:
    client.create("/cluster/id", b'{"version":"1","id":"hereClusterAAAAAAAAAAA"}', makepath=True)
    client.ensure_path("/brokers/topics")
    data = topic_node(Topic("AAAAAAAAAAAAAAAAAAAAAg", {0: Assignment((1, 2, 3))}))
    for created in [client.create_async(f"/brokers/topics/t{number}", data) for number in range(2000)]:
        created.get()
    client.create(state_path("t1999", 0), planted_trees.state(1, [1]).replace(b"7", b"9"), makepath=True)
    started = time.monotonic()
    reading = asyncio.create_task(read(zookeeper))
    answered = 0
    longest = 0.0
    while not reading.done():
        before = time.monotonic()
        await zookeeper.state()
        longest = max(longest, time.monotonic() - before)
        answered += 1
    took = time.monotonic() - started
    assert found(reading.result()) == (2000, True)
    assert answered >= 3, f"{answered} answers in {took:.1f} s"
    assert longest < took / 2
    await zookeeper.close()


async def test_a_reading_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    server = ZooKeeperServer(tmp_path / "zookeeper")
    server.start(server.properties())
    client = KazooClient(str(server.address))
    client.start()
    write(client, SAMPLE)
    client.stop()
    zookeeper = KazooZooKeeper(Access(str(server.address)), seconds=20)
    assert (await zookeeper.metadata(None)).metadata == SAMPLE
    server.restart(server.properties())
    assert (await zookeeper.metadata(None)).metadata == SAMPLE
    await zookeeper.close()
    server.kill()
