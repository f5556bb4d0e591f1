"""Consumer groups below `/consumers` in a real ZooKeeper, as old consumers write them
(docs/facts/coordination.md#znodes)."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from adapters.servers import ZooKeeperServer
from switchover.answers.errors import Refused, Unreachable
from switchover.coordination.mode import Mode
from switchover.network.credentials import Access
from switchover.zookeeper.client import legacy_groups
from switchover.zookeeper.client.zookeeper import KazooZooKeeper
from switchover.zookeeper.nodes import ZooKeeperGroup

REGISTRATION = json.dumps(
    {"version": 1, "subscription": {"orders": 2}, "pattern": "static", "timestamp": "1795240855786"}).encode()


@pytest.fixture
async def zookeeper(server: ZooKeeperServer, client: KazooClient) -> AsyncIterator[KazooZooKeeper]:
    zookeeper = KazooZooKeeper(Access(f"{server.address}{client.chroot}"))
    yield zookeeper
    await zookeeper.close()


def join(client: KazooClient, group: str, member: str, enabled: bool = False) -> None:
    """Register as consumers do, for the client's session."""
    if enabled:
        client.create(f"/consumers/{group}/migration/ids/{member}", REGISTRATION, ephemeral=True, makepath=True)
    client.create(f"/consumers/{group}/ids/{member}", REGISTRATION, ephemeral=True, makepath=True)


def commit(client: KazooClient, group: str, topic: str, partitions: Sequence[int]) -> float:
    """Commit to these partitions, one after the other; when the last was, in seconds of ZooKeeper's clock."""
    mtime = 0.0
    for partition in partitions:
        path = f"/consumers/{group}/offsets/{topic}/{partition}"
        client.ensure_path(path)
        mtime = client.set(path, b"10").mtime / 1000
    return mtime


async def test_where_nobody_ever_consumed_there_is_no_group(zookeeper: KazooZooKeeper, client: KazooClient) -> None:
    assert await zookeeper.groups() == {}                         # brokers make /consumers, others may not
    client.create("/consumers")
    assert await zookeeper.groups() == {}
    assert (await zookeeper.idle_groups()).commits == {}


async def test_groups_with_members_and_those_of_them_that_are_migration_enabled(
    zookeeper: KazooZooKeeper, client: KazooClient
) -> None:
    join(client, "old", "old_a")
    join(client, "old", "old_b")
    join(client, "mixed", "mixed_a")
    join(client, "mixed", "mixed_m", enabled=True)
    join(client, "moved", "moved_m", enabled=True)
    client.create("/consumers/moved/migration/mode", b"kafka")
    join(client, "nearly", "nearly_m", enabled=True)
    client.create("/consumers/nearly/migration/mode", b"kafka\n")
    client.create("/consumers/dead/ids", makepath=True)
    commit(client, "dead", "orders", [0])
    found = await zookeeper.groups()
    assert found == {
        "old": ZooKeeperGroup(frozenset({"old_a", "old_b"})),
        "mixed": ZooKeeperGroup(frozenset({"mixed_a", "mixed_m"}), frozenset({"mixed_m"})),
        "moved": ZooKeeperGroup(frozenset({"moved_m"}), frozenset({"moved_m"}), Mode.KAFKA),
        "nearly": ZooKeeperGroup(frozenset({"nearly_m"}), frozenset({"nearly_m"})),
    }
    assert [name for name, group in found.items() if group.is_assigned_by_kafka] == ["moved"]


async def test_a_member_is_gone_with_its_session(
    zookeeper: KazooZooKeeper, client: KazooClient, server: ZooKeeperServer
) -> None:
    consumer = KazooClient(f"{server.address}{client.chroot}")
    consumer.start()
    join(consumer, "orders", "orders_a")
    assert list(await zookeeper.groups()) == ["orders"]
    consumer.stop()
    assert await zookeeper.groups() == {}


async def test_the_newest_commit_of_groups_without_members(zookeeper: KazooZooKeeper, client: KazooClient) -> None:
    commit(client, "nightly", "orders", [0, 1, 2])
    last = commit(client, "nightly", "pay", [0])
    commit(client, "live", "orders", [0])
    join(client, "live", "live_a")
    client.create("/consumers/never/ids", makepath=True)
    client.create("/consumers/empty/offsets/orders", makepath=True)
    idle = await zookeeper.idle_groups()
    assert idle.commits == {"nightly": last}
    assert idle.unread == 0
    assert abs(last - time.time()) < 30
    await asyncio.sleep(0.05)
    again = commit(client, "nightly", "orders", [1])               # an older topic moves: the directory's own time does not
    assert (await zookeeper.idle_groups()).commits == {"nightly": again}
    assert again > last


async def test_a_sweep_is_bounded_and_says_how_many_groups_it_left(
    zookeeper: KazooZooKeeper, client: KazooClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(35):
        commit(client, f"g{number:02}", "orders", [0, 1, 2])
    monkeypatch.setattr(legacy_groups, "READS", 60)             # ten groups are 50: their offsets, topics and partitions
    idle = await zookeeper.idle_groups()
    assert sorted(idle.commits) == [f"g{number:02}" for number in range(20)]
    assert idle.unread == 15


@pytest.mark.long
async def test_other_questions_are_answered_during_a_sweep_over_many_dead_groups(
    zookeeper: KazooZooKeeper, client: KazooClient, capsys: pytest.CaptureFixture[str]
) -> None:
    client.create("/cluster/id", b'{"version":"1","id":"hereClusterAAAAAAAAAAA"}', makepath=True)
    for start in range(0, 2000, 200):
        paths = [f"/consumers/g{number}/{below}" for number in range(start, start + 200) for below in ("ids", "offsets/t/0")]
        for path in paths:
            client.ensure_path_async(path)
    client.sync("/")
    client.create("/consumers/live/ids/live_a", b"{}", makepath=True)
    began = time.monotonic()
    sweep = asyncio.create_task(zookeeper.idle_groups())
    await asyncio.sleep(0)
    assert list(await zookeeper.groups()) == ["live"]
    live = time.monotonic() - began
    assert (await zookeeper.state()).cluster_id == "hereClusterAAAAAAAAAAA"
    assert not sweep.done(), "everything was answered after the sweep, not during it"
    assert len((await sweep).commits) == 2000
    with capsys.disabled():
        print(f"\n2000 dead groups: live ones known after {live:.1f} s, all read after {time.monotonic() - began:.1f} s")


@pytest.mark.parametrize("hidden", ["ids", "offsets", "migration/mode"])
async def test_a_node_that_may_not_be_read_is_named_and_the_group_not_taken_for_none(
    zookeeper: KazooZooKeeper, client: KazooClient, hidden: str
) -> None:
    ours = [make_digest_acl("consumer", "secret", all=True)]
    if hidden != "offsets":
        join(client, "orders", "orders_a", enabled=True)
    client.ensure_path(f"/consumers/orders/{hidden}")
    client.set_acls(f"/consumers/orders/{hidden}", ours)
    asked = zookeeper.idle_groups if hidden == "offsets" else zookeeper.groups
    with pytest.raises(Refused, match=f"does not let us use /consumers/orders/{hidden}: its ACL must give .* READ"):
        await asked()


async def test_a_zookeeper_that_is_away_tells_nothing(tmp_path: Path) -> None:
    server = ZooKeeperServer(tmp_path)
    zookeeper = KazooZooKeeper(Access(str(server.address)), seconds=1.0)
    with pytest.raises(Unreachable):
        await zookeeper.groups()
    await zookeeper.close()
