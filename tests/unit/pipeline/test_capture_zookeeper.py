"""Which transactions a capture files when several servers' logs, with gaps, damage and new epochs, are there."""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from switchover.pipeline.capture import zookeeper
from switchover.pipeline.config import Config
from switchover.pipeline.outcome import Progress
from switchover.pipeline.store import File
from switchover.pipeline.tables import ZNODES
from unit.pipeline.test_transactions import close, create

EPOCH = 1 << 32


def log(directory: Path, *zxids: int, transaction: tuple[int, bytes] | None = None) -> Path:
    """A file with these zxids, each the creation of a node of its name unless told otherwise."""
    directory.mkdir(exist_ok=True)
    content = b"ZKLG" + struct.pack(">iq", 2, 0)
    for zxid in zxids:
        kind, body = transaction or create(f"/consumers/{zxid:x}")
        whole = struct.pack(">qiqqi", 7, 0, zxid, 0, kind) + body
        content += struct.pack(">qi", zlib.adler32(whole), len(whole)) + whole + b"B"
    file = directory / f"log.{zxids[0]:x}"
    file.write_bytes(content)
    return file


class Captured:
    """One capture of these directories, after the zxid `last`."""

    def __init__(self, last: int | None, *directories: Path) -> None:
        config = Config.model_validate({"cluster": "c", "store": "/nowhere", "zookeeper": {
            "connect": "nowhere:1", "transactionLogs": directories}})
        self.rows: list[dict[str, Any]] = []
        self.tables: list[str] = []
        inputs, self.counts, self.notes = zookeeper.capture_zookeeper(config, {"zxid": last}, self._write, Progress())
        self.newest = inputs["zxid"]
        self.holes: Sequence[dict[str, Any]] = inputs.get("holes", [])

    def _write(self, table: str, rows: pa.Table) -> File:
        self.tables.append(table)
        if table == "transactions":
            self.rows += rows.to_pylist()
        return File(table, "", rows.num_rows, 0, "")

    @property
    def zxids(self) -> list[int]:
        return [row["zxid"] for row in self.rows]


@pytest.fixture(autouse=True)
def no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper, "_tree", lambda _: ZNODES.empty_table())


def test_what_one_server_lacks_is_taken_from_another_once(tmp_path: Path) -> None:
    log(tmp_path / "a", 1, 2, 3, 7, 8)
    log(tmp_path / "b", 2, 3, 4, 5, 6, 7)
    captured = Captured(None, tmp_path / "a", tmp_path / "b")
    assert (captured.zxids, captured.holes, captured.newest) == ([1, 2, 3, 4, 5, 6, 7, 8], [], 8)
    assert Captured(5, tmp_path / "a", tmp_path / "b").zxids == [6, 7, 8]


def test_logs_that_were_read_and_hold_nothing_new_are_filed_as_read(tmp_path: Path) -> None:
    log(tmp_path, 1, 2, 3)
    captured = Captured(3, tmp_path)
    assert (captured.tables, captured.rows) == (["znodes", "transactions"], [])


def test_a_gap_in_the_middle_is_a_hole_though_an_old_file_is_there(tmp_path: Path) -> None:
    log(tmp_path / "a", 1, 2, 3)
    log(tmp_path / "a", 8, 9)
    captured = Captured(3, tmp_path / "a")
    assert (captured.zxids, captured.holes) == ([8, 9], [{"zxid": True, "from": 4, "to": 8}])


def test_a_new_file_that_begins_with_an_error_is_no_hole(tmp_path: Path) -> None:
    log(tmp_path / "a", 4, transaction=(-1, struct.pack(">i", -101)))
    log(tmp_path / "a", 5)
    captured = Captured(3, tmp_path / "a")
    assert (captured.zxids, captured.holes, captured.counts) == ([5], [], {"error": 1})


def test_a_new_epoch_is_no_hole_and_one_that_begins_later_is(tmp_path: Path) -> None:
    log(tmp_path / "a", 1, 2)
    log(tmp_path / "a", EPOCH + 1, EPOCH + 2)
    assert Captured(None, tmp_path / "a").holes == []
    log(tmp_path / "b", 1, 2)
    log(tmp_path / "b", EPOCH + 3)
    assert Captured(None, tmp_path / "b").holes == [{"zxid": True, "from": 3, "to": EPOCH + 3}]


def test_damage_is_a_hole_unless_another_server_has_what_follows(tmp_path: Path) -> None:
    damaged = log(tmp_path / "a", 1, 2, 3)
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    alone = Captured(None, tmp_path / "a")
    assert (alone.zxids, alone.holes) == ([1], [{"file": "log.1", "from": 2, "to": None}])
    log(tmp_path / "b", 1, 2, 3)
    both = Captured(None, tmp_path / "a", tmp_path / "b")
    assert (both.zxids, both.holes) == ([1, 2, 3], [])
    assert "is damaged" in both.notes[0]


def test_logs_that_end_before_what_was_captured_are_told(tmp_path: Path) -> None:
    log(tmp_path / "a", 1, 2)
    captured = Captured(9, tmp_path / "a")
    assert (captured.zxids, captured.newest, captured.holes) == ([], 9, [{"zxid": True, "from": 10, "to": None}])
    assert "another ZooKeeper" in captured.notes[0]


def test_a_session_that_listed_no_path_of_ours_has_one_row(tmp_path: Path) -> None:
    log(tmp_path / "a", 1, transaction=close("/x", "/y"))
    log(tmp_path / "a", 2, transaction=close("/x", "/consumers/g/ids/a"))
    assert [(row["zxid"], row["index"], row["path"]) for row in Captured(None, tmp_path / "a").rows] == [
        (1, 0, None), (2, 1, "/consumers/g/ids/a")]


def test_many_rows_are_written_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper, "ROWS", 2)
    log(tmp_path / "a", *range(1, 6))
    assert Captured(None, tmp_path / "a").zxids == [1, 2, 3, 4, 5]
