"""Captures of a real ZooKeeper: its transaction logs as its own tool reads them, and its tree, capture after capture."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kazoo.client import KazooClient

from adapters.servers import ZooKeeperServer, libraries
from switchover.pipeline.capture.transactions import Log, Operation
from switchover.pipeline.capture.zookeeper import capture_zookeeper
from switchover.pipeline.config import Config
from switchover.pipeline.job import JobFailed
from switchover.pipeline.progress import Progress
from switchover.pipeline.store import File

OWNER = "/consumers/g/owners/t/0"


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """Of one test alone."""
    server = ZooKeeperServer(tmp_path / "zookeeper")
    server.start(server.properties())
    yield server
    server.kill()


def logs(server: ZooKeeperServer) -> Path:
    return server.directory / "data" / "version-2"


def connected(server: ZooKeeperServer, chroot: str = "") -> KazooClient:
    client = KazooClient(f"{server.address}{chroot}")
    client.start()
    return client


def written(server: ZooKeeperServer) -> None:
    """What old consumers do, and more: every kind of transaction that has a row, and one that has none."""
    client = connected(server)
    client.ensure_path("/consumers/g/owners/t")
    client.ensure_path("/consumers/g/offsets/t")
    client.ensure_path("/brokers")
    client.create(OWNER, b"g_host-0", ephemeral=True)
    client.create("/consumers/g/offsets/t/0", b"1")
    for offset in (b"2", "3é\n\x00".encode()):
        client.set("/consumers/g/offsets/t/0", offset)
    transaction = client.transaction()
    transaction.check("/consumers/g/offsets/t/0", 2)
    transaction.create("/consumers/g/migration", b"m")
    transaction.set_data("/consumers/g/migration", b"n")
    transaction.delete("/consumers/g/migration")
    assert not [each for each in transaction.commit() if isinstance(each, Exception)]
    client.set("/brokers", b"not ours")
    client.stop()
    client.close()


def told(file: Path) -> list[tuple[int, str, str]]:
    """(zxid, operation, path) as TxnLogToolkit prints a log; a line of a multi gives one for each part."""
    command = ["java", "-cp", f"{libraries()}/*", "org.apache.zookeeper.server.persistence.TxnLogToolkit", "-d", str(file)]
    text = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    found = []
    for line in re.split(r"\n(?=\d\d/\d\d/\d\d, )", text)[1:]:
        head = re.match(r".*? session 0x\w+ cxid 0x\w+ zxid 0x(\w+) (\w+) ?(.*)", line, re.DOTALL)
        assert head is not None, line
        zxid, kind, rest = int(head[1], 16), head[2], head[3]
        if kind == "multi":
            parts = re.findall(r"(check|create|setData|delete):\0\0\0.(/[^\0\n]+)", rest, re.DOTALL)
            found += [(zxid, op, path) for op, path in parts if op != "check"]
        elif kind == "closeSession":
            found += [(zxid, kind, path) for path in re.findall(r"'([^,}]+)", rest)] or [(zxid, kind, "")]
        elif kind == "createSession":
            found.append((zxid, kind, ""))
        elif kind in ("create", "setData", "delete"):
            found.append((zxid, kind, rest.lstrip("'").split(",")[0].strip()))
    return found


def read(file: Path) -> list[Operation]:
    return list(Log(file.read_bytes()).operations())


class Captures:
    """One capture after the other, in memory."""

    def __init__(self, server: ZooKeeperServer, chroot: str = "", directory: Path | None = None) -> None:
        self._config = Config.model_validate({"cluster": "test", "store": "/nowhere", "zookeeper": {
            "connect": f"{server.address}{chroot}", "transactionLogs": [str(directory or logs(server))]}})
        self.inputs: dict[str, Any] = {}
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.notes: list[str] = []

    def next(self) -> "Captures":
        self.rows = {"znodes": [], "transactions": []}

        def write(table: str, rows: pa.Table) -> File:
            self.rows[table] += rows.to_pylist()
            return File(table, "", rows.num_rows, 0, "")

        self.inputs, _, self.notes = capture_zookeeper(self._config, self.inputs, write, Progress())
        return self

    @property
    def transactions(self) -> list[tuple[str, str]]:
        """Those with a path: every reading of the tree is a session too."""
        return [(row["op"], row["path"]) for row in self.rows["transactions"] if row["path"] is not None]


def test_every_transaction_is_what_zookeepers_own_tool_prints(zookeeper: ZooKeeperServer) -> None:
    written(zookeeper)
    (file,) = logs(zookeeper).glob("log.*")
    expected = told(file)
    assert Counter(op for _, op, _ in expected) == {
        "createSession": 1, "create": 10, "setData": 4, "delete": 1, "closeSession": 1}
    assert [(each.zxid, each.op, each.path or "") for each in read(file)] == expected
    (owner,) = [each for each in read(file) if each.op == "create" and each.path == OWNER]
    assert (owner.data, owner.ephemeral) == (b"g_host-0", True)
    offsets = [each.data for each in read(file) if each.op == "setData" and each.path == "/consumers/g/offsets/t/0"]
    assert offsets == [b"2", "3é\n\x00".encode()]


def test_a_capture_goes_on_where_the_last_ended_through_a_restart(zookeeper: ZooKeeperServer) -> None:
    captures = Captures(zookeeper)
    written(zookeeper)
    first = captures.next().rows["transactions"]
    assert captures.notes == []
    assert ("closeSession", OWNER) in captures.transactions
    assert ("setData", "/brokers") not in captures.transactions
    assert captures.next().transactions == []
    zookeeper.stop()
    zookeeper.start(zookeeper.properties())
    client = connected(zookeeper)
    client.set("/consumers/g/offsets/t/0", b"9")
    client_id = client.client_id[0]
    assert captures.next().transactions == [("setData", "/consumers/g/offsets/t/0")]
    assert captures.notes == []
    assert min(row["zxid"] for row in captures.rows["transactions"]) > max(row["zxid"] for row in first)
    client.stop()
    ended = [row for row in captures.next().rows["transactions"] if row["session"] == client_id]
    assert [(row["op"], row["path"], row["index"]) for row in ended] == [("closeSession", None, 0)]


def test_the_tree_is_what_stands_below_consumers(zookeeper: ZooKeeperServer) -> None:
    written(zookeeper)
    client = connected(zookeeper)
    client.create(OWNER, b"again", ephemeral=True)
    rows = {row["path"]: row for row in Captures(zookeeper).next().rows["znodes"]}
    assert rows.keys() == {"/consumers/g", "/consumers/g/owners", "/consumers/g/owners/t", OWNER, "/consumers/g/offsets",
                           "/consumers/g/offsets/t", "/consumers/g/offsets/t/0"}
    data, stat = client.get(OWNER)
    assert (rows[OWNER]["data"], rows[OWNER]["session"], rows[OWNER]["mzxid"]) == (data, client.client_id[0], stat.mzxid)
    assert rows["/consumers/g/offsets/t/0"]["version"] == 2
    client.stop()


def test_a_chroot_is_taken_off_and_its_neighbours_are_left_out(zookeeper: ZooKeeperServer) -> None:
    written(zookeeper)
    root = connected(zookeeper)
    root.create("/kafka")
    root.stop()
    client = connected(zookeeper, "/kafka")
    client.ensure_path("/consumers/h/ids")
    client.stop()
    captures = Captures(zookeeper, "/kafka").next()
    assert {path for op, path in captures.transactions if op == "create"} == {"/consumers/h", "/consumers/h/ids"}
    assert {row["path"] for row in captures.rows["znodes"]} == {"/consumers/h", "/consumers/h/ids"}


def test_logs_that_were_purged_before_they_were_read_are_a_hole(zookeeper: ZooKeeperServer) -> None:
    captures = Captures(zookeeper)
    written(zookeeper)
    captures.next()
    last = captures.inputs["zxid"]
    for _ in range(2):                                     # each start begins another log
        zookeeper.stop()
        known = set(logs(zookeeper).glob("log.*"))
        zookeeper.start(zookeeper.properties())
        client = connected(zookeeper)
        client.set("/consumers/g/offsets/t/0", b"7")
        client.stop()
        (newest,) = set(logs(zookeeper).glob("log.*")) - known
    for file in known:
        file.unlink()
    captures.next()
    (note,) = captures.notes
    assert "were purged before they were read" in note
    assert captures.inputs["holes"] == [{"zxid": True, "from": last + 1, "to": int(newest.name[4:], 16)}]


def test_a_damaged_log_is_read_up_to_the_damage_and_named(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    written(zookeeper)
    archive = tmp_path / "archive"
    shutil.copytree(logs(zookeeper), archive)
    (file,) = archive.glob("log.*")
    content = bytearray(file.read_bytes())
    content[content.index(b"g_host-0")] ^= 1
    file.write_bytes(content)
    captures = Captures(zookeeper, directory=archive).next()
    assert ("create", "/consumers/g/owners") in captures.transactions
    assert ("create", OWNER) not in captures.transactions
    assert f"{file} is damaged at byte" in captures.notes[0]
    assert captures.inputs["holes"]


def test_a_zookeeper_that_is_away_is_named(zookeeper: ZooKeeperServer) -> None:
    captures = Captures(zookeeper)
    zookeeper.stop()
    with pytest.raises(JobFailed, match=str(zookeeper.address.port)):
        captures.next()
