"""The port ZooKeeperGroups against a real ZooKeeper, with the znodes of docs/facts/coordination.md#znodes."""

import contextlib
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl, make_digest_acl

from adapters.servers import ZooKeeperServer
from switchover.answers.errors import Fenced, Malformed, Refused, Unreachable
from switchover.coordination.acknowledgement import Acknowledgement
from switchover.coordination.layout import Layout
from switchover.coordination.mode import Mode
from switchover.coordination.registration import Registration
from switchover.coordination.world import Owner
from switchover.network.credentials import Access
from switchover.shared.partition import TopicPartition
from switchover.zookeeper.client.coordination import KazooZooKeeperGroups

OLD, ENABLED = "g_orders-0-1795240855786-0a1b2c3d", "g_orders-1-1795240855999-4e5f6a7b"
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
LAYOUT = Layout("g")


@dataclass
class Tree:
    """A chroot of a test alone, and the session of a member in it."""

    connect: str
    member: KazooClient

    def create(self, path: str, data: bytes | None = b"", *, ephemeral: bool = False) -> None:
        self.member.ensure_path(path.rpartition("/")[0] or "/")
        self.member.create(path, data, ephemeral=ephemeral)


@contextlib.contextmanager
def session(connect: str, **options: object) -> Iterator[KazooClient]:
    client = KazooClient(connect, **options)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


@pytest.fixture
def tree(server: ZooKeeperServer) -> Iterator[Tree]:
    chroot = f"/{uuid.uuid4().hex}"
    with session(str(server.address)) as root:
        root.create(chroot)
    with session(f"{server.address}{chroot}") as member:
        yield Tree(f"{server.address}{chroot}", member)


@pytest.fixture
def group(tree: Tree) -> Tree:
    """An old and a migration-enabled member on two partitions, and a guard on a third."""
    registered = Registration({"orders": 1}, timestamp=1795240855786).encoded()
    tree.create("/brokers/topics/orders", b'{"version":3,"partitions":{"1":[1],"0":[1]},"topic_id":"ZuUQ"}')
    tree.create(LAYOUT.registration(OLD), registered, ephemeral=True)
    tree.create(LAYOUT.registration(ENABLED), registered, ephemeral=True)
    tree.create(LAYOUT.acknowledgement(ENABLED), Acknowledgement(owned=frozenset({P1})).encoded(), ephemeral=True)
    tree.create(LAYOUT.owner(P0), f"{OLD}-0".encode(), ephemeral=True)
    tree.create(LAYOUT.owner(P1), f"{ENABLED}-0".encode(), ephemeral=True)
    tree.create(LAYOUT.owner(TopicPartition("orders", 2)), b"guard of g_orders-1")
    return tree


@contextlib.asynccontextmanager
async def opened(connect: str, *, seconds: float = 5.0, **properties: str) -> AsyncIterator[KazooZooKeeperGroups]:
    given = {key.replace("_", "."): value for key, value in properties.items()}
    groups = KazooZooKeeperGroups(Access(connect, given), seconds=seconds)
    try:
        yield groups
    finally:
        await groups.close()


async def test_a_group_is_read_at_once(group: Tree) -> None:
    async with opened(group.connect) as groups:
        world = await groups.world("g")
    session_id = group.member.client_id[0]
    assert {*world.registrations} == {OLD, ENABLED}
    assert world.old == (OLD,)
    assert world.acknowledgements[ENABLED] == Acknowledgement(owned=frozenset({P1}))
    assert world.topics == {"orders": [0, 1]}
    assert world.owners == {P0: Owner(f"{OLD}-0", session_id), P1: Owner(f"{ENABLED}-0", session_id),
                            TopicPartition("orders", 2): Owner("guard of g_orders-1", 0)}
    assert (world.mode, world.mode_version) == (None, -1)


async def test_a_group_that_does_not_exist_has_nobody(tree: Tree) -> None:
    async with opened(tree.connect) as groups:
        world = await groups.world("g")
        assert (world.registrations, world.owners, world.mode_version) == ({}, {}, -1)
        assert (await groups.offsets("g"), await groups.missing_rights("g")) == ({}, ())


async def test_offsets_that_are_no_number_are_none(tree: Tree) -> None:
    for number, data in enumerate((b"10", b"-1", b"ten", None)):
        tree.create(LAYOUT.offset(TopicPartition("orders", number)), data)
    async with opened(tree.connect) as groups:
        assert await groups.offsets("g") == {P0: 10}


async def test_the_mode_is_written_only_over_the_version_that_was_read(group: Tree) -> None:
    async with opened(group.connect) as groups:
        await groups.set_mode("g", Mode.KAFKA, -1)
        assert group.member.get(LAYOUT.mode)[0] == b"kafka"
        first = (await groups.world("g")).mode_version
        await groups.set_mode("g", Mode.ZOOKEEPER, first)
        world = await groups.world("g")
        assert (world.mode, world.mode_version > first) == (Mode.ZOOKEEPER, True)
        for stale in (first, -1):
            with pytest.raises(Fenced, match=rf"holds b'zookeeper' since transaction \d+, where {stale} was read"):
                await groups.set_mode("g", Mode.KAFKA, stale)
        await groups.set_mode("g", Mode.ZOOKEEPER, first)
        assert (await groups.world("g")).mode_version == world.mode_version, "what says so already is not written again"
        group.member.delete(LAYOUT.mode)
        with pytest.raises(Fenced, match="is not there, where"):
            await groups.set_mode("g", Mode.KAFKA, world.mode_version)
        group.member.create(LAYOUT.mode, b"zookeeper")
        with pytest.raises(Fenced, match="holds b'zookeeper'"):
            await groups.set_mode("g", Mode.KAFKA, world.mode_version)


async def test_guards_are_removed_and_owner_nodes_of_the_living_are_not(group: Tree) -> None:
    async with opened(group.connect) as groups:
        await groups.remove_guards("g", [P0, P1, TopicPartition("orders", 2), TopicPartition("orders", 3)])
        assert {*(await groups.world("g")).owners} == {P0, P1}


async def test_the_rights_that_are_missing_are_named_with_their_node(group: Tree) -> None:
    reader = [make_acl("world", "anyone", read=True)]
    async with opened(group.connect) as groups:
        assert await groups.missing_rights("g") == ()
        group.member.set_acls(f"{LAYOUT.owners}/orders", reader)
        group.member.set_acls("/consumers/g/migration", reader)
        assert await groups.missing_rights("g") == (
            "CREATE on /consumers/g/migration", "DELETE on /consumers/g/owners/orders")
        with pytest.raises(Refused, match=r"does not let us use /consumers/g/migration/mode"):
            await groups.set_mode("g", Mode.KAFKA, -1)


async def test_the_mode_of_somebody_else_cannot_be_written_and_ours_can(group: Tree) -> None:
    owned = [make_digest_acl("switchover", "secret", all=True), make_acl("world", "anyone", read=True)]
    group.member.create(LAYOUT.mode, b"zookeeper", acl=owned)
    async with opened(group.connect) as groups:
        assert await groups.missing_rights("g") == ("WRITE on /consumers/g/migration/mode",)
    async with opened(group.connect, zookeeper_digest="switchover:secret") as groups:
        assert await groups.missing_rights("g") == ()
        await groups.set_mode("g", Mode.KAFKA, (await groups.world("g")).mode_version)
        assert (await groups.world("g")).mode is Mode.KAFKA


async def test_what_may_not_be_read_or_is_not_kafkas_is_refused_in_words(group: Tree) -> None:
    async with opened(group.connect) as groups:
        group.member.set("/brokers/topics/orders", b"no topic")
        with pytest.raises(Malformed, match="a topic of group g"):
            await groups.world("g")
        group.member.set_acls(LAYOUT.registration(OLD), [make_digest_acl("other", "secret", all=True)])
        with pytest.raises(Refused, match=r"does not let us read /consumers/g"):
            await groups.world("g")


async def test_a_zookeeper_that_is_gone_is_unreachable_in_time(tmp_path: Path) -> None:
    server = ZooKeeperServer(tmp_path)
    async with opened(str(server.address), seconds=0.5) as groups:
        with pytest.raises(Unreachable, match="did not answer"):
            await groups.world("g")
