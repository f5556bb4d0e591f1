"""The capture's part of ZooKeeper on a real 3.8: its transaction logs as TxnLogToolkit reads them, and the tree."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError, RolledBackError
from kazoo.security import make_acl

from adapters.clusters import KafkaCluster
from adapters.old_members import old_group, old_java
from adapters.servers import ZooKeeperServer, libraries
from patience import stretched, until
from switchover.pipeline.capture.transactions import Log
from switchover.pipeline.capture.zookeeper import capture_zookeeper
from switchover.pipeline.config import Config
from switchover.pipeline.outcome import JobFailed, Progress
from switchover.pipeline.store import File

Brief = tuple[int, int, str, str | None]
"""zxid, session, operation, path."""


class Captures:
    """Captures one after the other, without a store; `rows` are those of the newest."""

    def __init__(self, connect: str, *logs: Path, command_config: Path | None = None) -> None:
        self.config = Config.model_validate({"cluster": "c", "store": "/nowhere", "zookeeper": {
            "connect": connect, "commandConfig": command_config, "transactionLogs": logs}})
        self.inputs: dict[str, Any] = {}
        self.notes: list[str] = []
        self.counts: dict[str, int] = {}
        self.rows: dict[str, list[dict[str, Any]]] = {}

    def once(self) -> list[dict[str, Any]]:
        """The transactions of one more capture."""
        self.rows = {"znodes": [], "transactions": []}

        def write(table: str, rows: pa.Table) -> File:
            self.rows[table] += rows.to_pylist()
            return File(table, "", rows.num_rows, 0, "")

        self.inputs, self.counts, self.notes = capture_zookeeper(self.config, self.inputs, write, Progress())
        return self.rows["transactions"]

    def paths(self) -> list[str | None]:
        """Of the newest capture's operations on nodes, in order."""
        return [f"{row['op']} {row['path']}" for row in self.rows["transactions"] if row["path"] is not None]


def logs(server: ZooKeeperServer) -> Path:
    return server.directory / "data" / "version-2"


def started(connect: str, **options: Any) -> KazooClient:
    client = KazooClient(connect, **options)
    client.start()
    return client


def ended(client: KazooClient) -> None:
    client.stop()
    client.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """As in conftest.py, with nodes that have a time to live."""
    server = ZooKeeperServer(tmp_path_factory.mktemp("pipeline-zookeeper"))
    server.java_options += " -Dzookeeper.extendedTypesEnabled=true -Dznode.container.checkIntervalMs=1000"
    server.start(server.properties())
    yield server
    server.kill()


def by_toolkit(file: Path) -> tuple[list[int], list[Brief]]:
    """Every zxid, and the operations that have a row, as ZooKeeper's own tool tells them."""
    done = subprocess.run(
        ["java", "-Dfile.encoding=UTF-8", "-Duser.language=en", "-cp", f"{libraries()}/*",
         "org.apache.zookeeper.server.persistence.TxnLogToolkit", "-d", str(file)],
        capture_output=True, encoding="utf-8", timeout=stretched(60), check=True)
    zxids, found = [], []
    lines = re.split(r"^(?=\S+, \S+ [AP]M \S+ session 0x)", done.stdout, flags=re.MULTILINE)[1:]
    for line in lines:
        parts = re.search(r"session 0x(\w+) cxid 0x\w+ zxid 0x(\w+) (\w+) ?(.*)", line, re.DOTALL)
        assert parts is not None, line
        session, zxid, kind, rest = int(parts[1], 16), int(parts[2], 16), parts[3], parts[4]
        zxids.append(zxid)
        found += [(zxid, session, op, path) for op, path in _operations(kind, rest)]
    return zxids, found


def _operations(kind: str, rest: str) -> Iterator[tuple[str, str | None]]:
    if kind == "multi":
        parts = [part.partition(":") for part in rest.split(";")]
        if not any(name == "error" for name, _, _ in parts):
            for name, _, fields in parts:
                path = re.search(r"/[!-~]+", fields)              # it writes a part's bytes as they are
                assert path is not None
                yield from _operations(name, path[0])
    elif kind == "createSession":
        yield kind, None
    elif kind == "closeSession":
        paths = re.findall(r"'([^,}]+)", rest)
        yield from ((kind, path) for path in paths or [None])
    elif kind.startswith("create"):
        yield "create", rest.partition(",")[0].strip()
    elif kind.startswith("delete"):
        yield "delete", rest.strip().splitlines()[0].strip("' ")
    elif kind == "setData":
        yield kind, rest.partition(",")[0].strip()


def test_every_operation_is_what_zookeepers_own_tool_tells(server: ZooKeeperServer) -> None:
    client = started(str(server.address))
    client.create("/consumers/g/offsets/t/0", b"1", makepath=True)
    client.set("/consumers/g/offsets/t/0", "2;,\nz\u00fcrich".encode())
    client.create("/consumers/g/ids/h\u00e4-1", b"{}", ephemeral=True, makepath=True)
    client.create("/elsewhere-", b"", ephemeral=True, sequence=True)
    client.set_acls("/consumers/g", [make_acl("world", "anyone", all=True)])
    done = client.transaction()
    done.create("/consumers/g/m", b"1")
    done.check("/consumers/g/m", 0)
    done.set_data("/consumers/g/m", b"2")
    done.delete("/consumers/g/m")
    assert not any(isinstance(each, Exception) for each in done.commit())
    failed = client.transaction()
    failed.create("/consumers/g/never", b"1")
    failed.check("/consumers/g/never", 7)
    assert isinstance(failed.commit()[0], RolledBackError)
    told = subprocess.run(
        ["java", "-cp", f"{libraries()}/*", "org.apache.zookeeper.ZooKeeperMain", "-server", str(server.address)],
        input="create -c /consumers/box\ncreate /consumers/box/in\ndelete /consumers/box/in\n"
              "create -t 500 /consumers/brief\nquit\n", capture_output=True, text=True, timeout=stretched(60), check=False)
    assert "Created /consumers/brief" in told.stdout + told.stderr
    until(lambda: not client.exists("/consumers/box") and not client.exists("/consumers/brief"), "their time is over")
    client.delete("/consumers/g/offsets/t/0")
    ended(client)

    (file,) = logs(server).glob("log.*")
    zxids, expected = by_toolkit(file)
    read = list(Log(file.read_bytes()).transactions())
    assert [zxid for zxid, _ in read] == zxids
    found = [(row.zxid, row.session, row.op, row.path) for _, rows in read for row in rows]
    assert found == expected
    assert {op for _, _, op, _ in found} == {"create", "delete", "setData", "createSession", "closeSession"}
    assert [op for _, _, op, path in found if path in ("/consumers/box", "/consumers/brief")] == [
        "create", "create", "delete", "delete"]
    assert "/consumers/g/never" not in {path for *_, path in found}

    captures = Captures(str(server.address), logs(server))
    rows = captures.once()
    assert captures.notes == []
    assert {row["data"] for row in rows if row["op"] == "setData"} == {"2;,\nz\u00fcrich".encode(), b"2"}
    assert [row["ephemeral"] for row in rows if row["path"] == "/consumers/g/ids/h\u00e4-1"] == [True, False]
    assert "/consumers/g" in {row["path"] for row in captures.rows["znodes"]}
    assert captures.counts["multi that failed"] == 1


def test_captures_go_on_exactly_over_a_restart_and_after_errors(
    server: ZooKeeperServer, client: KazooClient,
) -> None:
    captures = Captures(f"{server.address}{client.chroot}", logs(server))
    captures.once()
    client.create("/consumers/g", b"1", makepath=True)
    captures.once()
    assert captures.paths() == ["create /consumers/g"], "the chroot is taken off, and nobody else's is there"
    assert [(row["path"], row["data"]) for row in captures.rows["znodes"]] == [("/consumers/g", b"1")]
    reached = captures.inputs["zxid"]

    client.set("/consumers/g", b"2")
    server.restart(server.properties())
    until(lambda: bool(client.connected), "the client is back")
    with pytest.raises(NoNodeError):
        client.delete("/nowhere")
    client.delete("/consumers/g")
    rows = captures.once()
    assert captures.paths() == ["setData /consumers/g", "delete /consumers/g"]
    assert min(row["zxid"] for row in rows) > reached
    assert (captures.notes, "holes" in captures.inputs) == ([], False)
    assert len(list(logs(server).glob("log.*"))) >= 2
    assert len({(row["zxid"], row["index"]) for row in rows}) == len(rows)

    again = Captures(f"{server.address}{client.chroot}", logs(server))
    again.once()
    assert again.paths() == ["create /consumers/g", "setData /consumers/g", "delete /consumers/g"]


def test_a_log_that_was_purged_between_captures_is_a_hole(server: ZooKeeperServer, client: KazooClient) -> None:
    captures = Captures(f"{server.address}{client.chroot}", logs(server))
    captures.once()
    reached = captures.inputs["zxid"]
    client.create("/consumers/lost", b"", makepath=True)
    old = set(logs(server).glob("log.*"))
    server.restart(server.properties())            # it begins with a snapshot, and a new log with the first transaction
    until(lambda: bool(client.connected), "the client is back")
    for file in old:
        file.unlink()
    client.create("/after", b"")
    rows = captures.once()
    (hole,) = captures.inputs["holes"]
    assert hole["from"] == reached + 1 < hole["to"]
    assert "purged" in captures.notes[0]
    assert all(row["zxid"] >= hole["to"] for row in rows)
    captures.once()
    assert (captures.notes, "holes" in captures.inputs) == ([], False), "told once"


def test_what_needs_credentials_is_read_with_those_of_the_properties(tmp_path: Path) -> None:
    server = ZooKeeperServer(tmp_path / "zookeeper")
    (tmp_path / "jaas.conf").write_text(
        'Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_kafka="secret"; };')
    server.java_options += f" -Djava.security.auth.login.config={tmp_path / 'jaas.conf'}"
    server.start(server.properties() + "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n")
    properties = tmp_path / "client.properties"
    properties.write_text("zookeeper.sasl.jaas.config=org.apache.zookeeper.server.auth.DigestLoginModule required "
                          'username="kafka" password="secret";\n')
    try:
        client = started(str(server.address))
        client.create("/consumers")
        client.create("/consumers/g", b"1", acl=[make_acl("sasl", "kafka", all=True)])
        ended(client)
        captures = Captures(str(server.address), command_config=properties)
        captures.once()
        assert [(row["path"], row["data"]) for row in captures.rows["znodes"]] == [("/consumers/g", b"1")]
        with pytest.raises(JobFailed, match="does not let us use /consumers"):
            Captures(str(server.address)).once()
    finally:
        server.kill()
    with pytest.raises(JobFailed, match="did not answer within"):
        Captures(str(server.address), command_config=properties).once()


def test_an_old_consumer_that_is_killed_takes_its_nodes_with_its_session(
    zookeeper_cluster: KafkaCluster, tmp_path: Path,
) -> None:
    captures = Captures(zookeeper_cluster.zookeeper_connect, logs(zookeeper_cluster.zookeeper))
    with old_group(zookeeper_cluster, tmp_path, 2) as all_:
        member = all_.members.member("a", old_java(), CONSUMER_ID="a")
        until(lambda: len(all_.committed()) == 2, "it commits")
        rows = captures.once()
        ours = f"{all_.znodes.root}/"
        tree = {row["path"]: row for row in captures.rows["znodes"] if row["path"].startswith(ours)}
        ephemerals = {path for path, row in tree.items() if row["session"]}
        (session,) = {tree[path]["session"] for path in ephemerals}
        assert {path.removeprefix(ours).partition("/")[0] for path in ephemerals} == {"ids", "owners"}
        assert len(ephemerals) == 3
        created = {row["path"] for row in rows if row["op"] == "create" and row["ephemeral"] and row["session"] == session}
        assert created == ephemerals
        offsets = {path for path in tree if path.startswith(f"{ours}offsets/") and tree[path]["data"]}
        assert offsets <= {row["path"] for row in rows if row["op"] in ("create", "setData")}
        assert len(offsets) == 2

        member.kill()
        until(lambda: all_.owners() == ["", ""], "its session has ended")
        rows = captures.once()
        assert {row["path"] for row in rows if row["op"] == "closeSession" and row["session"] == session} == ephemerals
        assert captures.notes == []
