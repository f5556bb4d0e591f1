"""The decoder of offset commits: Kafka's own bytes, an encoder's, and whatever else may lie in the topic.

golden/records.txt was printed by tests/adapters/java/RecordsVectors.java on the classes of Kafka 4.4.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

from switchover.pipeline.records.commits import split
from switchover.pipeline.tables import COMMITS
from unit.pipeline.record_bytes import commit_key, commit_value, decoded, group_key, numbers, tags, varint

VECTORS = [line.split() for line in (Path(__file__).parents[1] / "golden" / "records.txt").read_text().splitlines()]
COMMIT_VECTORS = [vector[1:] for vector in VECTORS if vector[0] == "commit"]
VECTOR_NAMES = [f"version {version}, metadata {metadata}" for version, metadata, _ in COMMIT_VECTORS]
KEY = commit_key("g", "t", 3)


@pytest.mark.parametrize(("version", "metadata", "value"), COMMIT_VECTORS, ids=VECTOR_NAMES)
def test_what_kafka_encoded(version: str, metadata: str, value: str) -> None:
    length = int(metadata.removesuffix("+id"))
    assert decoded((KEY, bytes.fromhex(value))).commits.to_pylist() == [{
        "group": "g", "topic": "t", "partition": 3, "offset": 1 << 40 | length,
        "leader_epoch": 7 if int(version) >= 3 else -1, "commit_time": 1_700_000_000_000 + length, "record_time": 1000,
        "version": int(version), "topic_id": f"{1:016x}{length:016x}" if metadata.endswith("+id") else None,
        "log_partition": 7, "log_offset": 0,
    }]


def test_there_is_a_vector_of_every_version() -> None:
    assert Counter(version for version, *_ in COMMIT_VECTORS) == {"0": 5, "1": 5, "2": 5, "3": 5, "4": 10}


def test_a_commit_that_a_real_cluster_of_41_wrote() -> None:
    """Told in an issue of franz-go (1105)."""
    row = decoded((KEY, bytes.fromhex("0004000000000021d4a8ffffffff010000019964f2d83600"))).commits.to_pylist()[0]
    assert (row["offset"], row["leader_epoch"], row["commit_time"]) == (2217128, -1, 1758335260726)


@pytest.mark.parametrize(("version", "metadata", "value"), COMMIT_VECTORS, ids=VECTOR_NAMES)
def test_a_value_that_ends_early_is_bad(version: str, metadata: str, value: str) -> None:
    whole = bytes.fromhex(value)
    records = [(KEY, whole[:length]) for length in range(len(whole))]
    result = decoded(*records, (KEY, whole))
    assert result.counts == {"bad value": len(whole)}
    assert result.commits["log_offset"].to_pylist() == [len(whole)]


def test_a_key_that_ends_early_is_bad() -> None:
    whole, value = commit_key("gröup", "topic", 1), commit_value(3, 1, 2)
    result = decoded(*[(whole[:length], value) for length in range(len(whole))], (whole, value))
    assert result.counts == {"bad key": len(whole)}
    assert result.commits.num_rows == 1


def test_a_tombstone_is_a_row_without_an_offset() -> None:
    result = decoded((KEY, commit_value(3, 5, 6, epoch=1)), (KEY, None))
    assert result.counts == {"tombstone": 1}
    assert result.commits.to_pylist()[1] == {
        "group": "g", "topic": "t", "partition": 3, "offset": None, "leader_epoch": None, "commit_time": None,
        "record_time": 1001, "version": None, "topic_id": None, "log_partition": 7, "log_offset": 1}


def test_records_of_other_types_are_handed_on_or_counted() -> None:
    value = commit_value(3, 1, 2)
    result = decoded(*[(group_key(kind, "g"), value) for kind in range(2, 26)], (KEY, value), (group_key(-1, "g"), value))
    assert [kind + 2 for kind in result.groups] == [2, 3, 5, 6, 7, 8]
    assert result.counts == {f"type {kind}": 1 for kind in (-1, 4, *range(9, 26))}
    assert result.commits["log_offset"].to_pylist() == [24]


def test_both_types_of_commits_are_read() -> None:
    value = commit_value(0, 1, 2)
    assert decoded(*[(commit_key("g", "t", 0, kind), value) for kind in (0, 1)]).commits.num_rows == 2


def test_versions_that_nobody_knows_are_counted_by_number() -> None:
    value = commit_value(3, 1, 2)[2:]
    versions = (5, 5, -1, 32767)
    result = decoded(*[(KEY, version.to_bytes(2, signed=True) + value) for version in versions])
    assert result.counts == {f"unknown commit version {version}": times for version, times in Counter(versions).items()}
    assert result.commits.num_rows == 0


@pytest.mark.parametrize("value", [
    commit_value(4, 1, 2, tagged=[(9, b"x" * 200)]), commit_value(4, 1, 2, tagged=[(0, bytes(16)), (1, b""), (200, b"y")]),
    commit_value(3, 1, 2) + b"more", commit_value(4, 1, 2) + b"more",
], ids=["unknown tag", "three tags", "more bytes", "more bytes after tags"])
def test_what_a_newer_kafka_might_add_is_passed_over(value: bytes) -> None:
    assert decoded((KEY, value)).commits["offset"].to_pylist() == [1]


def test_the_id_of_a_topic_is_read_wherever_it_stands_and_nothing_else_for_one() -> None:
    """The second is of a commit of Kafka 4.4 for a topic that its broker described under that id."""
    first, second = bytes(range(16)), bytes.fromhex("5ed38598d1cf4187a720ff454db6a372")
    tagged = [[(0, first)], [(9, b"x" * 200), (0, second), (10, b"y")], [(0, second)], [(0, bytes(16))], [(0, b"short")],
              [(1, first)], []]
    result = decoded(*[(KEY, commit_value(4, 1, 2, tagged=each)) for each in tagged], (KEY, commit_value(3, 1, 2)))
    assert result.commits["topic_id"].to_pylist() == [first.hex(), second.hex(), second.hex(), *[None] * 5]


@pytest.mark.parametrize("value", [
    commit_value(4, 1, 2)[:-1] + varint(2**32 - 1), commit_value(4, 1, 2)[:-1] + b"\xff" * 9,
    commit_value(4, 1, 2)[:-1] + tags(*[(tag, b"") for tag in range(1000)]),
    commit_value(4, 1, 2)[:-1] + varint(1) + varint(0) + varint(2**31 - 1),
    commit_value(4, 1, 2)[:14] + varint(0) + bytes(9), commit_value(4, 1, 2)[:14] + varint(2**31 - 1) + bytes(9),
    commit_value(4, 1, 2)[:14] + varint(65_537) + bytes(65_536 + 9),
    commit_value(3, 1, 2)[:14] + b"\xff\xff" + bytes(8), b"", b"\0",
], ids=["many tags", "endless number", "a thousand tags", "a huge tag", "null metadata", "huge metadata",
        "64 KiB of metadata", "negative length", "nothing", "half a version"])
def test_hostile_values_are_bad(value: bytes) -> None:
    result = decoded((KEY, commit_value(3, 7, 8)), (KEY, value), (KEY, commit_value(4, 9, 10)))
    assert result.counts == {"bad value": 1}
    assert result.commits["offset"].to_pylist() == [7, 9]


@pytest.mark.parametrize("key", [
    None, b"", b"\0", b"\0\1", b"\0\1\x7f\xff", b"\0\1\xff\xff\0\1t\0\0\0\0", b"\0\1\0\1g\x80\0",
])
def test_hostile_keys_are_bad(key: bytes | None) -> None:
    value = commit_value(3, 7, 8)
    result = decoded((KEY, value), (key, value), (key, None), (KEY, value))
    assert result.counts == {"bad key": 2}
    assert result.commits["log_offset"].to_pylist() == [0, 3]


@pytest.mark.parametrize("name", ["a\nb", "\0", "\u202egnp.exe", "x" * 32767, "", "日本-ü"],
                         ids=["newline", "NUL", "bidi", "longest", "empty", "not ASCII"])
def test_names_come_out_as_they_are(name: str) -> None:
    row = decoded((commit_key(name, name, 1), commit_value(3, 1, 2))).commits.to_pylist()[0]
    assert (row["group"], row["topic"]) == (name, name)


def test_names_that_are_not_utf8_are_readable() -> None:
    value = commit_value(3, 1, 2)
    rows = decoded((commit_key(b"a\xff\xfeb", "t", 1), value), (commit_key("fine", b"\xed\xa0\x80", 1), value)).commits
    rows.validate(full=True)
    assert rows["group"].to_pylist() == ["a\ufffd\ufffdb", "fine"]
    assert rows["topic"].to_pylist() == ["t", "\ufffd" * 3]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_nothing_at_all(kind: pa.DataType) -> None:
    empty = split(pa.array([], kind), pa.array([], kind), numbers(0), numbers(0), 0)
    assert (empty.commits.num_rows, len(empty.groups), empty.counts) == (0, 0, Counter())
    assert empty.commits.schema == COMMITS
    nulls = split(pa.nulls(3, kind), pa.nulls(3, kind), numbers(3), numbers(3), 0)
    assert (nulls.commits.num_rows, nulls.counts) == (0, {"bad key": 3})


INT32, INT64 = some.integers(-2**31, 2**31 - 1), some.integers(-2**63, 2**63 - 1)
NAME = some.text(some.characters(exclude_categories=["Cs"]), max_size=8)
Row = dict[str, Any]
Record = tuple[bytes | None, bytes | None]


@some.composite
def commit(draw: some.DrawFn) -> tuple[Row, Record]:
    """What is to come out, and what goes in."""
    group, topic, partition = draw(NAME), draw(NAME), draw(INT32)
    version, offset, time, epoch = draw(some.integers(0, 4)), draw(INT64), draw(INT64), draw(INT32)
    tagged = draw(some.lists(some.tuples(some.integers(0, 300), some.binary(max_size=20)), max_size=3))
    if topic_id := draw(some.none() | some.binary(min_size=16, max_size=16).filter(any)):
        tagged = [(0, topic_id), *((tag, data) for tag, data in tagged if tag)]
    value = commit_value(version, offset, time, epoch=epoch, metadata=draw(some.binary(max_size=200)), tagged=tagged)
    told = [data.hex() for tag, data in tagged if version == 4 and tag == 0 and len(data) == 16 and any(data)]
    row = {"group": group, "topic": topic, "partition": partition, "offset": offset, "commit_time": time,
           "leader_epoch": epoch if version >= 3 else -1, "version": version, "topic_id": told[-1] if told else None}
    return row, (commit_key(group, topic, partition), value)


def anything() -> some.SearchStrategy[list[Record]]:
    key = some.one_of(some.none(), some.binary(max_size=30), some.just(KEY))
    value = some.one_of(some.none(), some.binary(max_size=40), some.binary(max_size=30).map(lambda rest: b"\0\4" + rest))
    return some.lists(some.one_of(commit().map(lambda both: both[1]), some.tuples(key, value)), max_size=12)


@given(some.lists(commit(), max_size=12))
def test_commits_are_read_as_they_were_written(commits: list[tuple[Row, Record]]) -> None:
    result = decoded(*[record for _, record in commits])
    assert not result.counts
    assert result.commits.to_pylist() == [
        row | {"record_time": 1000 + i, "log_partition": 7, "log_offset": i} for i, (row, _) in enumerate(commits)]


@given(anything(), some.data(), some.sampled_from([pa.binary(), pa.large_binary()]))
def test_a_slice_says_the_same_as_its_records_alone(records: list[Record], data: some.DataObject, kind: pa.DataType) -> None:
    begin = data.draw(some.integers(0, len(records)))
    end = data.draw(some.integers(begin, len(records)))
    keys, values = (pa.array([record[column] for record in records], kind)[begin:end] for column in (0, 1))
    part = split(keys, values, numbers(end - begin, 1000), numbers(end - begin), 7)
    alone = decoded(*records[begin:end])
    assert part.counts == alone.counts
    assert np.array_equal(part.groups, alone.groups)
    assert part.commits.equals(alone.commits)


@given(anything())
def test_every_record_is_a_row_or_counted_or_a_groups(records: list[Record]) -> None:
    result = decoded(*records)
    result.commits.validate(full=True)
    assert result.commits.num_rows + len(result.groups) + result.counts.total() - result.counts["tombstone"] == len(records)
