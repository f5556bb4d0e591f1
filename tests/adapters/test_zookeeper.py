"""The ZooKeeper port against a real ZooKeeper and the tree a real broker writes."""

import asyncio
import contextlib
import json
import shutil
import socket
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl, make_digest_acl

from adapters.admin import create_topic
from adapters.clusters import KafkaCluster
from adapters.eventually import eventually
from adapters.servers import ZooKeeperServer, loopback
from patience import stretched
from switchover.answers.errors import Fenced, NotListening, Refused, Unreachable
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.zookeeper.client.zookeeper import KazooZooKeeper
from switchover.zookeeper.nodes import MigrationNode


@contextlib.asynccontextmanager
async def opened(connect: str, *, seconds: float = 5.0, search: tuple[str, ...] = (),
                 **properties: str) -> AsyncIterator[KazooZooKeeper]:
    zookeeper = KazooZooKeeper(
        Access(connect, {key.replace("_", "."): value for key, value in properties.items()}, search=search), seconds=seconds)
    try:
        yield zookeeper
    finally:
        await zookeeper.close()


@contextlib.contextmanager
def writer(connect: str) -> Iterator[KazooClient]:
    """A client that writes what the test needs."""
    client = KazooClient(connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


@pytest.fixture(scope="module")
def server(zookeeper_cluster: KafkaCluster) -> ZooKeeperServer:
    return zookeeper_cluster.zookeeper


@pytest.fixture
def tree(server: ZooKeeperServer) -> Iterator[tuple[str, KazooClient]]:
    """A chroot of this test alone with a `/cluster/id`, and a client that writes into it."""
    chroot = f"/{uuid.uuid4().hex}"
    with writer(str(server.address)) as client:
        client.create(chroot)
    connect = f"{server.address}{chroot}"
    with writer(connect) as client:
        client.create("/cluster/id", b'{"version":"1","id":"hereClusterAAAAAAAAAAA"}', makepath=True)
        yield connect, client


# --- What a broker writes -------------------------------------------------------------------------------------------


async def test_the_state_of_a_cluster_in_zookeeper_mode(zookeeper_cluster: KafkaCluster) -> None:
    async with opened(zookeeper_cluster.zookeeper_connect) as zookeeper:
        state = await zookeeper.state()
    assert len(state.cluster_id) == 22
    assert state.controller is not None
    assert (state.controller.node_id, state.controller.ephemeral, state.controller.kraft_epoch) == (1, True, -1)
    assert state.controller_epoch >= 1
    assert state.migration is None
    assert state.brokers == {1: {"PLAINTEXT": zookeeper_cluster.brokers[1].address}}
    assert not state.generated_ids


async def test_topics_with_their_ids_and_assignments(zookeeper_cluster: KafkaCluster) -> None:
    name = uuid.uuid4().hex
    create_topic(zookeeper_cluster.bootstrap, name, 3)
    async with opened(zookeeper_cluster.zookeeper_connect) as zookeeper:
        topics = await zookeeper.topics()
    assert topics.topics[name].assignment == {0: (1,), 1: (1,), 2: (1,)}
    assert len(topics.topics[name].topic_id or "") == 22
    assert topics.pending_deletes == ()
    assert not topics.reassigning
    assert topics.malformed == ()


async def test_a_generated_broker_id_shows(tree: tuple[str, KazooClient]) -> None:
    connect, client = tree
    client.create("/brokers/seqid", makepath=True)
    async with opened(connect) as zookeeper:
        assert not (await zookeeper.state()).generated_ids
        client.set("/brokers/seqid", b"")               # how Kafka draws one: the version is the id
        assert (await zookeeper.state()).generated_ids


# --- What may be missing, empty or malformed --------------------------------------------------------------------------


async def test_an_almost_empty_tree(tree: tuple[str, KazooClient]) -> None:
    async with opened(tree[0]) as zookeeper:
        state, topics = await zookeeper.state(), await zookeeper.topics()
    assert state.cluster_id == "hereClusterAAAAAAAAAAA"
    assert (state.controller, state.controller_epoch, state.migration, state.brokers) == (None, 0, None, {})
    assert (topics.topics, topics.pending_deletes, topics.reassigning, topics.malformed) == ({}, (), False, ())


@pytest.mark.parametrize("chroot", ["/nowhere", ""])
async def test_a_wrong_chroot_is_named(server: ZooKeeperServer, chroot: str) -> None:
    async with opened(f"{server.address}{chroot}") as zookeeper:
        with pytest.raises(Refused, match=r"no /cluster/id.*chroot"):
            await zookeeper.state()


@pytest.mark.parametrize("data", [b"", b"null", None])
async def test_a_migration_node_without_data(tree: tuple[str, KazooClient], data: bytes | None) -> None:
    tree[1].create("/migration", data)
    async with opened(tree[0]) as zookeeper:
        migration = (await zookeeper.state()).migration
    assert migration is not None
    assert migration.empty
    assert (migration.controller_id, migration.offset, migration.epoch, migration.version) == (-1, -1, -1, 0)


async def test_a_claimed_tree_with_the_time_of_its_heartbeat(tree: tuple[str, KazooClient]) -> None:
    connect, client = tree
    client.create("/controller", b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":4}')
    client.create("/controller_epoch", b"7")
    client.create("/migration", b"{}")
    stat = client.set("/migration", json.dumps({
        "version": 0, "kraft_metadata_offset": 289, "kraft_controller_id": 3000, "kraft_metadata_epoch": 4,
        "kraft_controller_epoch": 4,
    }).encode())
    async with opened(connect) as zookeeper:
        state = await zookeeper.state()
    assert state.controller is not None
    assert (state.controller.node_id, state.controller.ephemeral, state.controller.kraft_epoch) == (3000, False, 4)
    assert state.controller_epoch == 7
    assert state.migration == MigrationNode(
        empty=False, controller_id=3000, offset=289, epoch=4, version=1, mtime=stat.mtime / 1000)
    assert abs(state.migration.mtime - time.time()) < stretched(10)


@pytest.mark.parametrize(("path", "data", "why"), [
    ("/controller", b"\xff\xfe", "not JSON"),
    ("/controller", b"[1]", "not a JSON object"),
    ("/controller", None, "empty"),
    ("/controller", b'{"brokerid":"one"}', "brokerid is not a whole number"),
    ("/controller_epoch", b"seven", "invalid literal"),
    ("/migration", b'{"kraft_metadata_offset":1}', "kraft_controller_id is missing"),
    ("/brokers/ids/1", b'{"endpoints":["PLAINTEXT//nowhere"]}', "is not LISTENER://host:port"),
    ("/brokers/ids/1", b'{"endpoints":["PLAINTEXT://host:port"]}', "is not LISTENER://host:port"),
    ("/brokers/ids/1", b'{"endpoints":["PLAINTEXT://$(id):9092"]}', "is no name or address of a host"),
    ("/cluster/id", b'{"version":"1","id":"abcdefghijklmnopqrstuv 3.9 /d\\nset super.users=User:ANONYMOUS"}',
     r"'abcdefghijklmnopqrstuv 3.9 /d\\nset super.+' is no cluster id of Kafka's"),
    ("/brokers/ids/one", b"{}", "invalid literal"),
])
async def test_a_malformed_small_node_is_refused_by_name(
    tree: tuple[str, KazooClient], path: str, data: bytes | None, why: str
) -> None:
    tree[1].ensure_path(path)
    tree[1].set(path, data)
    async with opened(tree[0]) as zookeeper:
        with pytest.raises(Refused, match=rf"^{path} in ZooKeeper is not what Kafka writes: .*{why}"):
            await zookeeper.state()


async def test_malformed_topics_are_named_and_the_others_read(tree: tuple[str, KazooClient]) -> None:
    connect, client = tree
    for name, data in {
        "good": b'{"version":3,"topic_id":"x","partitions":{"0":[1,2]}}',
        "noid": b'{"version":2,"partitions":{"0":[1]}}',
        "empty": b"",
        "text": b"hello",
        "list": b"[]",
        "partition": b'{"partitions":{"zero":[1]}}',
        "replicas": b'{"partitions":{"0":"1,2"}}',
        "deep": b"[" * 100_000,
    }.items():
        client.create(f"/brokers/topics/{name}", data, makepath=True)
    async with opened(connect) as zookeeper:
        topics = await zookeeper.topics()
    assert topics.topics["good"].assignment == {0: (1, 2)}
    assert topics.topics["noid"].topic_id is None
    assert set(topics.topics) == {"good", "noid"}
    assert topics.malformed == (
        "/brokers/topics/deep: not JSON",
        "/brokers/topics/empty: empty",
        "/brokers/topics/list: not a JSON object",
        "/brokers/topics/partition: invalid literal for int() with base 10: 'zero'",
        "/brokers/topics/replicas: replicas are not a list of broker ids",
        "/brokers/topics/text: not JSON",
    )


async def test_pending_work(tree: tuple[str, KazooClient]) -> None:
    connect, client = tree
    client.create("/admin/delete_topics/b", makepath=True)
    client.create("/admin/delete_topics/a")
    client.create("/brokers/topics/t", b'{"topic_id":"x","partitions":{"0":[1,2]}}', makepath=True)
    client.create("/admin/reassign_partitions", b'{"version":1,"partitions":[]}')
    async with opened(connect) as zookeeper:
        before = await zookeeper.topics()
        client.set("/brokers/topics/t", b'{"topic_id":"x","partitions":{"0":[1,2]},"adding_replicas":{"0":[2]}}')
        moving = await zookeeper.topics()
        client.set("/brokers/topics/t", b'{"topic_id":"x","partitions":{"0":[1,2]},"adding_replicas":{}}')
        client.set("/admin/reassign_partitions", b'{"version":1,"partitions":[{"topic":"t","partition":0}]}')
        asked = await zookeeper.topics()
        client.set("/admin/reassign_partitions", b"?")
        malformed = await zookeeper.topics()
    assert before.pending_deletes == ("a", "b")
    assert [t.reassigning for t in (before, moving, asked)] == [False, True, True]
    assert malformed.malformed == ("/admin/reassign_partitions: not JSON",)


async def test_two_thousand_topics_in_one_pass(tree: tuple[str, KazooClient]) -> None:
    connect, client = tree
    client.ensure_path("/brokers/topics")
    names = [f"t{i}" for i in range(2000)]
    for result in [
        client.create_async(f"/brokers/topics/{name}", b'{"topic_id":"x","partitions":{"0":[1]}}') for name in names
    ]:
        result.get(timeout=stretched(20))
    async with opened(connect) as zookeeper:
        assert set((await zookeeper.topics()).topics) == set(names)


# --- Deleting, rights, credentials ------------------------------------------------------------------------------------


async def test_delete(tree: tuple[str, KazooClient]) -> None:
    connect, client = tree
    client.create("/migration", b"{}")
    epoch = epoch_of(client)
    async with opened(connect) as zookeeper:
        await zookeeper.delete("/migration", 0, epoch)
        assert client.exists("/migration") is None
        await zookeeper.delete("/migration", 0, epoch)            # again, as after a crash: done
        with pytest.raises(Refused, match=r"^/cluster in ZooKeeper has children"):
            await zookeeper.delete("/cluster", 0, epoch)
    assert client.exists("/cluster/id")


def epoch_of(client: KazooClient) -> int:
    """`/controller_epoch`, made where the tree has none."""
    client.ensure_path("/controller_epoch")
    data, _ = client.get("/controller_epoch")
    if not data:
        client.set("/controller_epoch", b"4")
    return int(data or b"4")


async def test_nothing_is_deleted_that_is_not_what_was_read(tree: tuple[str, KazooClient]) -> None:
    connect, client = tree
    client.create("/migration", b"{}")
    client.set("/migration", b"{} ")
    epoch = epoch_of(client)
    async with opened(connect) as zookeeper:
        with pytest.raises(Fenced, match=r"^/migration in ZooKeeper is not what was read"):
            await zookeeper.delete("/migration", 0, epoch)
        with pytest.raises(Fenced, match="/controller_epoch in ZooKeeper is not 3 any more"):
            await zookeeper.delete("/migration", 1, 3)
        assert client.exists("/migration")
        await zookeeper.delete("/migration", 1, epoch)
    assert client.exists("/migration") is None


async def test_the_epoch_is_raised_over_what_was_read_only(tree: tuple[str, KazooClient]) -> None:
    connect, client = tree
    epoch = epoch_of(client)
    async with opened(connect) as zookeeper:
        await zookeeper.raise_epoch(epoch + 5, epoch)
        assert client.get("/controller_epoch")[0] == str(epoch + 5).encode()
        with pytest.raises(Fenced):
            await zookeeper.raise_epoch(epoch + 9, epoch)
    assert client.get("/controller_epoch")[0] == str(epoch + 5).encode()


async def test_states_are_written_again_until_their_versions_are_what_is_wanted(tree: tuple[str, KazooClient]) -> None:
    connect, client = tree
    epoch = epoch_of(client)
    paths = [f"/brokers/topics/t/partitions/{index}/state" for index in range(3)]
    for path in paths:
        client.create(path, b'{"leader": 1}', makepath=True)
    client.set(paths[1], b'{"leader": 2}')
    async with opened(connect) as zookeeper:
        await zookeeper.raise_versions({("t", 0): 250, ("t", 1): 1, ("t", 2): 3, ("gone", 0): 4}, epoch)
        await zookeeper.raise_versions({("t", 0): 249}, epoch)
        found = [client.get(path) for path in paths]
        assert [(data, stat.version) for data, stat in found] == [
            (b'{"leader": 1}', 250), (b'{"leader": 2}', 1), (b'{"leader": 1}', 3)]
        client.set("/controller_epoch", b"99")
        with pytest.raises(Fenced):
            await zookeeper.raise_versions({("t", 2): 9}, epoch)
    assert client.get(paths[2])[1].version == 3


async def test_states_that_are_missing_are_created_and_no_other_one_is_touched(tree: tuple[str, KazooClient]) -> None:
    connect, client = tree
    epoch = epoch_of(client)
    ours = [make_acl("world", "anyone", read=True), make_digest_acl("kafka", "secret", all=True)]
    client.create("/brokers/topics/t", json.dumps({"version": 2, "partitions": {"0": [1], "1": [2, 1], "2": [1]}}).encode(),
                  makepath=True)
    client.create("/brokers/topics/t/partitions/0/state", b'{"leader": 1}', makepath=True)
    client.create("/brokers/topics/t/partitions/2")
    client.set_acls("/brokers/topics/t", [*ours, make_acl("world", "anyone", all=True)])
    async with opened(connect) as zookeeper:
        missing = await zookeeper.stateless()
        assert missing == {("t", 1): (2, 1), ("t", 2): (1,)}
        await zookeeper.create_states({**missing, ("t", 0): (3,), ("gone", 0): (1,)}, epoch)
        assert await zookeeper.stateless() == {}
        client.set("/controller_epoch", b"99")
        client.delete("/brokers/topics/t/partitions/2/state")
        with pytest.raises(Fenced):
            await zookeeper.create_states({("t", 2): (1,)}, epoch)
    assert client.get("/brokers/topics/t/partitions/0/state")[0] == b'{"leader": 1}'
    assert json.loads(client.get("/brokers/topics/t/partitions/1/state")[0]) == {
        "controller_epoch": epoch, "leader": 2, "version": 1, "leader_epoch": 0, "isr": [2, 1]}
    for path in ("/brokers/topics/t/partitions/1", "/brokers/topics/t/partitions/1/state"):
        assert client.get_acls(path)[0] == client.get_acls("/brokers/topics/t")[0]
    assert client.exists("/brokers/topics/gone") is None


async def test_the_largest_epoch_of_all_partitions(tree: tuple[str, KazooClient]) -> None:
    connect, client = tree
    for topic, epochs in {"a": (3, 9), "b": (7,)}.items():
        assignment = {str(index): [1] for index in range(len(epochs))}
        document = json.dumps({"version": 2, "partitions": assignment}).encode()
        client.create(f"/brokers/topics/{topic}", document, makepath=True)
        for index, epoch in enumerate(epochs):
            state = {"controller_epoch": epoch, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1]}
            client.create(f"/brokers/topics/{topic}/partitions/{index}/state", json.dumps(state).encode(), makepath=True)
    client.create("/brokers/topics/young", json.dumps({"version": 2, "partitions": {"0": [1]}}).encode())
    async with opened(connect) as zookeeper:
        assert await zookeeper.partition_epoch() == 9
        client.set("/brokers/topics/b/partitions/0/state", b"{}")
        with pytest.raises(Refused, match="/brokers/topics/b/partitions/0/state in ZooKeeper is not what Kafka writes"):
            await zookeeper.partition_epoch()


async def test_missing_rights_name_the_path_and_the_right(tree: tuple[str, KazooClient]) -> None:
    connect, client = tree
    ours = make_digest_acl("switchover", "secret", all=True)
    client.create("/migration", b"", acl=[ours])
    client.create("/admin/delete_topics", b"", makepath=True)
    client.create("/admin/delete_topics/t", b"")
    epoch = epoch_of(client)
    client.set_acls("/admin/delete_topics", [make_acl("world", "anyone", read=True), ours])
    async with opened(connect) as zookeeper:
        with pytest.raises(Refused, match=r"does not let us use /migration: its ACL must give our credentials READ"):
            await zookeeper.state()
        with pytest.raises(Refused, match=r"/admin/delete_topics/t: .* DELETE on its parent"):
            await zookeeper.delete("/admin/delete_topics/t", 0, epoch)
    async with opened(connect, zookeeper_digest="switchover:secret") as zookeeper:
        assert (await zookeeper.state()).migration is not None
        await zookeeper.delete("/admin/delete_topics/t", 0, epoch)
    assert client.exists("/admin/delete_topics/t") is None


@pytest.mark.parametrize(("connect", "properties", "words"), [
    ("", {}, "is not host:port"),
    ("zk:port", {}, "is not host:port"),
    ("zk:2181", {"zookeeper.digest": "alice"}, "zookeeper.digest .* is not user:password"),
    ("zk:2181", {"zookeeper.clientCnxnSocket": "x"}, "have zookeeper.clientCnxnSocket, which Switchover does not support"),
    ("zk:2181", {"zookeeper.ssl.truststore.certificates": "s3cret"}, "but zookeeper.ssl.client.enable is not true"),
    ("zk:2181", {"zookeeper.ssl.client.enable": "yes"}, "zookeeper.ssl.client.enable is neither true nor false"),
    ("zk:2181", {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.truststore.location": "/x.jks"},
     "zookeeper.ssl.truststore.location names a file"),
    ("zk:2181", {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.truststore.certificates": "s3cret"},
     "zookeeper.ssl.truststore.certificates is not a PEM certificate"),
    ("zk:2181", {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.keystore.key": "s3cret"},
     "zookeeper.ssl.keystore.certificate.chain and zookeeper.ssl.keystore.key belong together"),
    ("zk:2181", {"zookeeper.sasl.jaas.config": "Krb5LoginModule required useTicketCache=true;"}, "DigestLoginModule"),
    ("zk:2181", {"zookeeper.sasl.jaas.config": 'x required password="s3cret'}, "^zookeeper.sasl.jaas.config is not of"),
])
def test_what_cannot_be_used_is_refused_at_once(connect: str, properties: dict[str, str], words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        KazooZooKeeper(Access(connect, properties))
    assert "s3cret" not in str(refused.value)


# --- Connections ------------------------------------------------------------------------------------------------------
# A server counts a connection that has just ended for a moment more: whoever rests on the count asks several times.


async def test_connections_do_not_count_ourselves(tmp_path: Path) -> None:
    server = ZooKeeperServer(tmp_path)
    try:
        server.start(server.properties())
        with writer(str(server.address)) as client:
            client.create("/cluster/id", b'{"id":"hereClusterAAAAAAAAAAA"}', makepath=True)
            async with opened(str(server.address)) as zookeeper:
                await zookeeper.state()                             # our session is on this server now
                await eventually(lambda: zookeeper.connections(server.address), lambda found: found == 1, 10)
                with socket.create_connection((server.address.host, server.address.port)):
                    await eventually(lambda: zookeeper.connections(server.address), lambda found: found == 2, 10)
                client.stop()
                await eventually(lambda: zookeeper.connections(server.address), lambda found: found == 0, 10)
                assert (await zookeeper.state()).cluster_id == "hereClusterAAAAAAAAAAA"      # and we come back
    finally:
        server.kill()


async def test_a_name_that_stands_for_several_servers_counts_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = Address("zookeeper.test", 2181)
    servers = [ZooKeeperServer(tmp_path / name) for name in ("one", "two")]
    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest, **more: [
        found for name in ([server.address.host for server in servers] if host == "zookeeper.test" else [host])
        for found in resolve(name, *rest, **more)])
    try:
        for server in servers:
            server.start(server.properties())
        with contextlib.ExitStack() as stack:
            for server in servers:
                stack.enter_context(writer(str(server.address)))
            async with opened("zookeeper.test:2181") as zookeeper:
                await eventually(lambda: zookeeper.connections(named), lambda found: found == 2, 10)
                servers[0].kill()
                with pytest.raises(Unreachable, match="refused") as one_runs:
                    await zookeeper.connections(named)
                assert not isinstance(one_runs.value, NotListening)
                servers[1].kill()
                with pytest.raises(NotListening, match="refused"):
                    await zookeeper.connections(named)
    finally:
        for server in servers:
            server.kill()


async def test_no_whitelist_forbids_srvr(tmp_path: Path) -> None:
    """Its own script asks by it (FourLetterCommands.isEnabled); other words are refused."""
    server = ZooKeeperServer(tmp_path / "zookeeper")
    try:
        server.start(f"{server.properties()}4lw.commands.whitelist=ruok, conf\n")
        async with opened(str(server.address)) as zookeeper:
            assert await zookeeper.connections(server.address) == 0
            assert await zookeeper.server_mode(server.address) == "standalone"
        with socket.create_connection((server.address.host, server.address.port), timeout=stretched(10)) as connection:
            connection.sendall(b"cons")
            assert connection.recv(100) == b"cons is not executed because it is not in the whitelist.\n"
    finally:
        server.kill()


@pytest.mark.parametrize(("answer", "error", "words"), [
    (b"srvr is not executed because it is not in the whitelist.\n", Refused,
     'does not report its connections: asked for srvr, it says "srvr is not executed because it is not in the whitelist."'),
    (b"", Refused, "does not report its connections: asked for srvr, it gives no answer, as a TLS port does"),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", Refused, "asked for srvr, what answers there is not ZooKeeper$"),
    (b"This ZooKeeper instance is not currently serving requests\n", Unreachable, "not serving requests now"),
])
async def test_other_answers_to_srvr(answer: bytes, error: type[Exception], words: str) -> None:
    """What stands before a ZooKeeper may forbid what the server never does."""
    async def reply(reader: asyncio.StreamReader, stream: asyncio.StreamWriter) -> None:
        assert await reader.read(4) == b"srvr"
        stream.write(answer)
        stream.close()

    address = loopback(2181)
    async with await asyncio.start_server(reply, address.host, address.port), opened(str(address)) as zookeeper:
        with pytest.raises(error, match=words):
            await zookeeper.connections(address)


async def test_connections_of_a_server_that_is_gone() -> None:
    gone = loopback(2181)
    async with opened(str(gone), seconds=1) as zookeeper:
        with pytest.raises(NotListening, match=f"ZooKeeper server {gone}: .*refused"):
            await zookeeper.connections(gone)


@pytest.mark.parametrize(("number", "gone"), [
    (socket.EAI_NONAME, True), (socket.EAI_NODATA, True), (socket.EAI_AGAIN, False), (socket.EAI_FAIL, False)])
async def test_connections_of_a_name_that_is_gone_and_of_one_that_nobody_can_tell(
        number: int, gone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> None:
        raise socket.gaierror(number, "no address")

    async with opened("zookeeper.test:2181", seconds=1) as zookeeper:
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        with pytest.raises(Unreachable, match=r"zookeeper.test:2181: .*no address") as told:
            await zookeeper.connections(Address("zookeeper.test", 2181))
    assert isinstance(told.value, NotListening) == gone


# --- Faults -----------------------------------------------------------------------------------------------------------


async def test_a_stopped_zookeeper_is_unreachable_in_time_and_comes_back(tmp_path: Path) -> None:
    server = ZooKeeperServer(tmp_path)
    other = loopback(2181)
    try:
        server.start(server.properties())
        with writer(str(server.address)) as client:
            client.create("/cluster/id", b'{"id":"hereClusterAAAAAAAAAAA"}', makepath=True)
        # The other server of the list never answers: the one that does is found.
        async with opened(f"{other},{server.address}", seconds=2) as zookeeper:
            assert zookeeper.servers() == (other, server.address)
            assert (await zookeeper.state()).cluster_id == "hereClusterAAAAAAAAAAA"
            server.stop()
            for call in (zookeeper.state, zookeeper.topics):
                started = time.monotonic()
                with pytest.raises(Unreachable, match=f"{server.address} did not answer within 2 s"):
                    await call()
                assert time.monotonic() - started < stretched(3)
            server.start(server.properties())
            assert (await zookeeper.state()).cluster_id == "hereClusterAAAAAAAAAAA"
            with server.frozen():                       # accepts connections and says nothing
                started = time.monotonic()
                for result in await asyncio.gather(zookeeper.state(), zookeeper.topics(), return_exceptions=True):
                    assert isinstance(result, Unreachable)
                assert time.monotonic() - started < stretched(3)
                with pytest.raises(Unreachable) as silent:
                    await zookeeper.connections(server.address)
                assert not isinstance(silent.value, NotListening), "no answer does not tell that it is stopped"
            assert await eventually_cluster_id(zookeeper) == "hereClusterAAAAAAAAAAA"
    finally:
        server.kill()


async def eventually_cluster_id(zookeeper: KazooZooKeeper) -> str:
    for _ in range(5):
        with contextlib.suppress(Unreachable):
            return (await zookeeper.state()).cluster_id
    return (await zookeeper.state()).cluster_id


async def test_a_server_that_moved_is_found_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind a headless Service: the name stays, the address and with it the old server are gone."""
    addresses = {"zookeeper.test": "127.0.0.1"}
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *rest, **more: resolve(addresses.get(host, host), *rest, **more))
    before, after = ZooKeeperServer(tmp_path), ZooKeeperServer(tmp_path)
    try:
        before.start(before.properties())
        with writer(str(before.address)) as client:
            client.create("/cluster/id", b'{"id":"hereClusterAAAAAAAAAAA"}', makepath=True)
        addresses["zookeeper.test"] = before.address.host
        async with opened("zookeeper.test:2181") as zookeeper:
            await zookeeper.state()
            before.stop()
            after.start(after.properties())
            addresses["zookeeper.test"] = after.address.host
            assert (await zookeeper.state()).cluster_id == "hereClusterAAAAAAAAAAA"
    finally:
        before.kill()
        after.kill()


async def test_a_name_of_another_namespace_is_sought_as_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace that is called as its Service, read from another one, where a pod and a Service are called so, too."""
    meant, other = ZooKeeperServer(tmp_path / "meant"), ZooKeeperServer(tmp_path / "other")
    names = {"zookeeper.zookeeper.svc.cluster.local.": meant, "zookeeper.zookeeper.switchover.svc.cluster.local.": other,
             "zookeeper.zookeeper": other}
    resolve = socket.getaddrinfo

    def resolved(host: str, *rest: Any, **more: Any) -> Any:
        if host.startswith("zookeeper") and host not in names:
            raise socket.gaierror(socket.EAI_NONAME, "not there")
        return resolve(names[host].address.host if host in names else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    there = ("zookeeper.svc.cluster.local", "svc.cluster.local", "cluster.local")
    try:
        for server in (meant, other):
            server.start(server.properties())
            with writer(str(server.address)) as client:
                client.create("/cluster/id", b'{"id":"%s-meant-or-others"}' % (b"meant1" if server is meant else b"other1"),
                              makepath=True)
        async with opened("zookeeper.zookeeper:2181", search=there) as zookeeper:
            assert (await zookeeper.state()).cluster_id == "meant1-meant-or-others"
            assert await zookeeper.server_mode(Address("zookeeper.zookeeper", 2181)) == "standalone"
            meant.stop()
            with pytest.raises(Unreachable):
                await zookeeper.server_mode(Address("zookeeper.zookeeper", 2181))
    finally:
        meant.kill()
        other.kill()


async def test_a_server_that_lost_its_history_is_read_again(tmp_path: Path) -> None:
    """It refuses every client that saw more than it has; ours must not insist on what it saw."""
    server = ZooKeeperServer(tmp_path)
    try:
        server.start(server.properties())
        async with opened(str(server.address), seconds=1) as zookeeper:
            with writer(str(server.address)) as client:
                client.create("/cluster/id", b'{"id":"beforeClusterAAAAAAAAA"}', makepath=True)
                for _ in range(20):
                    client.set("/cluster/id", b'{"id":"beforeClusterAAAAAAAAA"}')
            assert (await zookeeper.state()).cluster_id == "beforeClusterAAAAAAAAA"
            server.kill()
            shutil.rmtree(tmp_path / "data")
            server.start(server.properties())
            with writer(str(server.address)) as client:
                client.create("/cluster/id", b'{"id":"afterClusterAAAAAAAAAA"}', makepath=True)
            assert await eventually_cluster_id(zookeeper) == "afterClusterAAAAAAAAAA"
    finally:
        server.kill()


async def test_close_is_prompt_while_nobody_answers() -> None:
    zookeeper = KazooZooKeeper(Access(str(loopback(2181))), seconds=1)
    with pytest.raises(Unreachable):
        await zookeeper.state()
    started = time.monotonic()
    await zookeeper.close()
    assert time.monotonic() - started < stretched(3)
