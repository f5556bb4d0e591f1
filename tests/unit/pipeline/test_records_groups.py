"""The decoder of group and member records: Kafka's own bytes, Connect's, and whatever else may lie in the topic.

golden/records.txt was printed by tests/adapters/java/RecordsVectors.java on the classes of Kafka 4.4.
"""

import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from switchover.pipeline.records.groups import decode
from unit.pipeline.record_bytes import array, blob, group_key, text, varint

VECTORS = [line.split() for line in (Path(__file__).parents[1] / "golden" / "records.txt").read_text().splitlines()]
GROUP_VECTORS = [vector for vector in VECTORS if vector[0] != "commit"]
KEYS = {
    "ClassicGroup": group_key(2, "g"), "Epoch": group_key(3, "g"), "Member": group_key(5, "g", "m"),
    "TargetEpoch": group_key(6, "g"), "Target": group_key(7, "g", "m"), "Current": group_key(8, "g", "m"),
}
ID, OTHER_ID = "00000000000000010000000000000002", "00000000000000030000000000000004"
Row = dict[str, Any]


def read(*records: tuple[bytes, bytes | None]) -> tuple[list[Row], Counter[str]]:
    """Rows without what is null; record i has offset i and time 1000 + i, and lies in partition 7 of the log."""
    size = len(records)
    table, counts = decode([key for key, _ in records], [value for _, value in records], range(1000, 1000 + size),
                           range(size), 7)
    table.validate(full=True)
    return [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()], counts


def row(record: str, **rest: Any) -> Row:
    return {"group": "g", "record": record, "tombstone": False, "time": 1000, "log_partition": 7, "log_offset": 0} | rest


def partition(number: int, *, topic: str | None = None, topic_id: str | None = None) -> Row:
    return {"topic": topic, "topic_id": topic_id, "partition": number}


def vector(name: str, about: str) -> list[Row]:
    (value,) = [bytes.fromhex(value) for *of, value in GROUP_VECTORS if (of[0], of[2]) == (name, about)]
    rows, counts = read((KEYS[name], value))
    assert not counts
    return rows


@pytest.mark.parametrize("version", range(5))
def test_a_classic_group(version: int) -> None:
    (value,) = [value for name, of, _, value in GROUP_VECTORS if (name, of) == ("ClassicGroup", str(version))]
    rows, counts = read((KEYS["ClassicGroup"], bytes.fromhex(value)))
    assert not counts
    group = row("ClassicGroup", protocol_type="consumer", protocol="range", epoch=9,
                time=1_700_000_000_000 if version >= 2 else 1000)
    member = group | {"member": "m-1", "client_id": "c", "client_host": "/127.0.0.1", "topics": ["t"],
                      "assigned": [partition(0, topic="t"), partition(3, topic="t")]}
    assert rows == [group | {"leader": "m-1"}, member | ({"instance": "i-1"} if version >= 3 else {})]


@pytest.mark.parametrize("about", ["without-hash", "with-hash"])
def test_the_epoch_of_a_consumer_group(about: str) -> None:
    assert vector("Epoch", about) == [row("Epoch", epoch=3)]


@pytest.mark.parametrize("about", ["without-time", "with-time"])
def test_the_epoch_of_an_assignment(about: str) -> None:
    assert vector("TargetEpoch", about) == [row("TargetEpoch", epoch=4)]


def test_a_member() -> None:
    member = row("Member", member="m", client_id="c", client_host="/127.0.0.1", topics=["t", "u"])
    assert vector("Member", "topics") == [member]
    assert vector("Member", "all") == [member | {"regex": "t.*", "instance": "i-1", "protocol": "uniform"}]


def test_what_a_member_is_to_own() -> None:
    assert vector("Target", "two-topics") == [row("Target", member="m", assigned=[
        partition(0, topic_id=ID), partition(3, topic_id=ID), partition(1, topic_id=OTHER_ID)])]


def test_what_a_member_owns_and_is_to_give_back() -> None:
    assert vector("Current", "pending") == [row(
        "Current", member="m", epoch=6, previous_epoch=5, state=1,
        assigned=[partition(0, topic_id=ID)], pending=[partition(3, topic_id=ID)])]


def test_tombstones() -> None:
    rows, counts = read(*[(key, None) for key in KEYS.values()])
    assert counts == {"tombstone": 6}
    assert [(each["record"], each["tombstone"], each.get("member")) for each in rows] == [
        (name, True, "m" if name in ("Member", "Target", "Current") else None) for name in KEYS]
    assert [each["time"] for each in rows] == list(range(1000, 1006))


def classic(protocol_type: str, *members: tuple[str, bytes, bytes], since: int = -1) -> bytes:
    return (struct.pack(">h", 3) + text(protocol_type) + struct.pack(">i", 1) + text("p") + text(None)
            + struct.pack(">q", since) + array(*[
                text(name) + text(None) + text("c") + text("h") + struct.pack(">ii", 1, 1) + blob(wants) + blob(has)
                for name, wants, has in members]))


def test_another_protocols_members_keep_everything_but_topics() -> None:
    rows, counts = read((KEYS["ClassicGroup"], classic("connect", ("w-1", b"\0\1whatever", b"\1"))))
    assert not counts
    group = row("ClassicGroup", protocol_type="connect", protocol="p", epoch=1)
    assert rows == [group, group | {"member": "w-1", "client_id": "c", "client_host": "h"}]


def test_blobs_that_cannot_be_read_leave_the_member() -> None:
    rows, counts = read((KEYS["ClassicGroup"], classic("consumer", ("m", b"\0", b"\0\0\0\0\0\1"), ("n", b"", b""))))
    assert counts == {"bad subscription": 2, "bad assignment": 1}
    told = [(each["member"], each.get("topics"), each.get("assigned")) for each in rows[1:]]
    assert told == [("m", None, None), ("n", None, [])]


def test_an_empty_group() -> None:
    rows, _ = read((KEYS["ClassicGroup"], classic("consumer", since=1_700_000_000_000)))
    assert rows == [row("ClassicGroup", protocol_type="consumer", protocol="p", epoch=1, time=1_700_000_000_000)]


@pytest.mark.parametrize("golden", GROUP_VECTORS, ids=lambda golden: "-".join(golden[:3]))
def test_a_record_that_ends_early_is_bad(golden: list[str]) -> None:
    name, *_, value = golden
    whole, key = bytes.fromhex(value), KEYS[name]
    rows, counts = read(*[(key, whole[:length]) for length in range(len(whole))],
                        *[(key[:length], whole) for length in range(len(key))])
    assert (rows, counts) == ([], {"bad value": len(whole), "bad key": len(key)})


@pytest.mark.parametrize("name", KEYS)
def test_versions_that_nobody_knows_are_counted_by_name(name: str) -> None:
    rows, counts = read((KEYS[name], b"\0\5whatever"), (KEYS[name], b"\xff\xff"))
    assert (rows, counts) == ([], {f"unknown {name} version 5": 1, f"unknown {name} version -1": 1})


def test_a_type_that_is_not_a_groups_is_a_bad_key() -> None:
    assert read((group_key(1, "g"), None), (group_key(4, "g"), None)) == ([], {"bad key": 2})


@pytest.mark.parametrize("value", [
    b"\0\0" + struct.pack(">i", 3) + varint(2**32 - 1), b"\0\0" + struct.pack(">i", 3) + b"\xff" * 9,
    b"\0\0" + struct.pack(">i", 3) + varint(1) + varint(0) + varint(2**31 - 1),
], ids=["many tags", "endless number", "a huge tag"])
def test_hostile_tags_are_bad(value: bytes) -> None:
    assert read((KEYS["Epoch"], value)) == ([], {"bad value": 1})


def test_a_string_longer_than_kafka_reads_is_bad() -> None:
    """In the compact encoding its length would fit."""
    long = b"\0\0" + varint(0) + varint(0) + varint(32_769) + b"x" * 32_768
    rest = varint(1) + varint(1) + varint(0) + bytes(4) + varint(0) + varint(0)
    assert read((KEYS["Member"], long + rest)) == ([], {"bad value": 1})


def test_hostile_counts_are_bad() -> None:
    many = classic("consumer")[:-4] + struct.pack(">i", 2**31 - 1)
    none = classic("consumer")[:-4] + struct.pack(">i", -1)
    assert read((KEYS["ClassicGroup"], many), (KEYS["ClassicGroup"], none)) == ([], {"bad value": 2})


@pytest.mark.parametrize("name", ["a\nb", "\0", "\u202egnp.exe", "x" * 32767, "", "日本-ü"],
                         ids=["newline", "NUL", "bidi", "longest", "empty", "not ASCII"])
def test_names_come_out_as_they_are(name: str) -> None:
    rows, _ = read((group_key(8, name, name), None))
    assert (rows[0]["group"], rows[0]["member"]) == (name, name)


def test_names_that_are_not_utf8_are_readable() -> None:
    rows, _ = read((group_key(8, b"a\xffb", b"\xed\xa0\x80"), None))
    assert (rows[0]["group"], rows[0]["member"]) == ("a\ufffdb", "\ufffd\ufffd\ufffd")


KEY = some.one_of(some.binary(max_size=20), some.sampled_from(list(KEYS.values())))
VALUE = some.one_of(
    some.none(), some.binary(max_size=60), some.sampled_from([bytes.fromhex(golden[3]) for golden in GROUP_VECTORS]),
    some.tuples(some.integers(0, 4), some.binary(max_size=60)).map(lambda of: struct.pack(">h", of[0]) + of[1]))


@given(some.lists(some.tuples(KEY, VALUE)))
def test_every_record_has_rows_or_is_counted(records: list[tuple[bytes, bytes | None]]) -> None:
    rows, counts = read(*records)
    uncounted = {"tombstone", "bad subscription", "bad assignment"}
    assert len({each["log_offset"] for each in rows}) + sum(
        times for name, times in counts.items() if name not in uncounted) == len(records)
