"""Bytes of a peer, whatever they are: an entity, or Unreadable. Nothing is allocated by a length that is not there."""

import importlib
import io
import random
import struct
import tracemalloc
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args, get_origin
from uuid import UUID

import pytest
from kio.schema.describe_quorum.v1 import DescribeQuorumResponse
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v13 import FetchResponse
from kio.schema.list_offsets.v7 import ListOffsetsResponse
from kio.schema.metadata.v9 import MetadataResponse
from kio.schema.response_header.v1 import ResponseHeader
from kio.serial import entity_writer
from kio.static.primitive import i8, i32, i32Timedelta

import switchover.kafka.client
from switchover.answers import memory
from switchover.kafka.client import bounds, consumer_protocol
from switchover.kafka.client.bounds import Unreadable

HUGE = [bytes.fromhex(each) for each in ("7fffffff", "7fff", "ffffffff0f", "ffffffff", "80808080808001", "8000", "fe")]
"""Lengths and counts that are not there."""
FUZZED = [300, pytest.param(300_000, marks=pytest.mark.long)]
"""Frames for each entity; together more than 6,000 in every run."""


def entities() -> list[type[Any]]:
    """Everything of kio's schema that an adapter reads: what it imports by the name of an answer, and members' own bytes."""
    found: set[type[Any]] = {ResponseHeader}
    for path in Path(switchover.kafka.client.__file__).parent.glob("*.py"):
        module = importlib.import_module(f"switchover.kafka.client.{path.stem}")
        found |= {each for each in vars(module).values()
                  if isinstance(each, type) and each.__module__.startswith("kio.schema") and is_dataclass(each)
                  and each.__name__.endswith(("Response", "Subscription", "Assignment"))}
        found |= {each.ApiVersionsResponse for name, each in vars(module).items() if hasattr(each, "ApiVersionsResponse")}
    return sorted(found, key=lambda each: (each.__module__, each.__name__))


def sample(kind: Any, count: int) -> Any:
    """Some value of a field's type; so many of a list."""
    if type(None) in get_args(kind) and count == 0:
        return None
    if get_origin(kind) is tuple:
        return tuple(sample(get_args(kind)[0], count) for _ in range(count))
    if get_args(kind):
        return sample(next(each for each in get_args(kind) if each is not type(None)), count)
    if is_dataclass(kind):
        values = {each.name: sample(each.type, count) for each in fields(kind)}
        return kind(**values)           # type: ignore[operator]
    if kind is ErrorCode:
        return ErrorCode.none
    if issubclass(kind, timedelta):
        return kind.parse(timedelta(milliseconds=5))
    if issubclass(kind, datetime):
        return kind.parse(datetime(2026, 11, 25, tzinfo=UTC))
    if issubclass(kind, UUID):
        return UUID(int=7)
    return kind("ä" if issubclass(kind, str) else b"\1\2" if issubclass(kind, bytes) else 1)


def encoded(entity: Any) -> bytes:
    with io.BytesIO() as buffer:
        entity_writer(type(entity))(buffer, entity)
        return buffer.getvalue()


def test_all_that_the_operator_reads_is_here() -> None:
    names = {each.__name__ for each in entities()}
    assert {"MetadataResponse", "FetchResponse", "SaslHandshakeResponse", "JoinGroupResponse", "ApiVersionsResponse",
            "ConsumerProtocolSubscription", "ConsumerProtocolAssignment", "ResponseHeader"} <= names
    assert len(entities()) >= 22


@pytest.mark.parametrize("kind", entities(), ids=lambda each: f"{each.__module__.removeprefix('kio.schema.')}")
@pytest.mark.parametrize("count", [0, 1, 3])
def test_what_was_written_is_read(kind: type[Any], count: int) -> None:
    written = sample(kind, count)
    data = encoded(written)
    assert bounds.read(kind, b"before" + data + b"behind", 6) == (written, 6 + len(data))


@pytest.mark.parametrize("frames", FUZZED)
@pytest.mark.parametrize("kind", entities(), ids=lambda each: f"{each.__module__.removeprefix('kio.schema.')}")
def test_whatever_comes_is_an_entity_or_unreadable(kind: type[Any], frames: int) -> None:
    """Cut off, with lengths that are not there, with bytes changed, and of noise alone."""
    chosen = random.Random(kind.__module__)
    whole = encoded(sample(kind, 2))
    refused = 0
    for _ in range(frames):
        data = bytearray(whole if chosen.random() < 0.8 else chosen.randbytes(chosen.randrange(40)))
        for _ in range(chosen.randrange(3)):
            at = chosen.randrange(len(data) + 1)
            new = chosen.choice([*HUGE, chosen.randbytes(1), b""])
            data[at:at + chosen.choice([0, len(new), 4])] = new
        frame = bytes(data[:chosen.randrange(len(data) + 1)] if chosen.random() < 0.3 else data)
        try:
            bounds.read(kind, frame)
        except Unreadable:
            refused += 1
    assert refused > frames / 10, "nothing was wrong with any of them: nothing is proved"


@pytest.mark.parametrize("kind", entities(), ids=lambda each: f"{each.__module__.removeprefix('kio.schema.')}")
def test_every_prefix_is_unreadable(kind: type[Any]) -> None:
    data = encoded(sample(kind, 1))
    for end in range(len(data)):
        with pytest.raises(Unreadable):
            bounds.read(kind, data[:end])


@pytest.mark.parametrize(("kind", "data", "words"), [
    (MetadataResponse, "00000000 ffffffff0f", "brokers at byte 4 has 4294967294 elements, and 0 bytes are left"),
    (MetadataResponse, "00000000 00", "brokers at byte 4 has -1 elements"),
    (DescribeQuorumResponse, "0000 02 0261 ffffffff0f", "partitions at byte 5 has 4294967294 elements"),
    (ListOffsetsResponse, "00000000 8080808010", "more than 32 bits"),
    (ListOffsetsResponse, "00000000 808080808001", "more than 32 bits"),
])
def test_lengths_that_are_not_there(kind: type[Any], data: str, words: str) -> None:
    """Each of these, and the two below, aborted the process or came out as another exception."""
    with pytest.raises(Unreadable, match=words):
        bounds.read(kind, bytes.fromhex(data))


@pytest.mark.parametrize("read", [consumer_protocol.subscription, consumer_protocol.assignment])
def test_what_a_member_of_the_group_may_send(read: Any) -> None:
    with pytest.raises(consumer_protocol.Malformed, match="2147483647 elements"):
        read(bytes.fromhex("0000 7fffffff"))


def test_tagged_fields_that_nobody_knows_are_passed_over() -> None:
    """KIP-482: a later Kafka may add one. Here in the header, at the end, in a list, beside one that is known."""
    header = ResponseHeader(correlation_id=i32(7))
    assert bounds.read(ResponseHeader, bytes.fromhex("00000007 01 05 02 abcd")) == (header, 9)
    empty = ListOffsetsResponse(throttle_time=i32Timedelta.parse(timedelta()), topics=())
    assert bounds.read(ListOffsetsResponse, bytes.fromhex("00000000 01 01 01 03 616263")) == (empty, 11)
    topic = "02 61 01" + "02 02 01 ff 03 00"                    # named a, no partitions, two tagged fields
    read, _ = bounds.read(ListOffsetsResponse, bytes.fromhex(f"00000000 02 {topic} 01 07 00"))
    assert [each.name for each in read.topics] == ["a"]
    partition = struct.pack(">ihqqq", 1, 0, 5, 4, 3) + bytes.fromhex("00 ffffffff 00")      # no transactions, no records
    known = bytes.fromhex("02 0d") + struct.pack(">qi", 9, 2) + b"\0"                       # tag 2: the snapshot to fetch
    frame = bytes.fromhex("00000000 0000 00000000 02") + bytes(16) + b"\2" + partition + b"\3" + bytes.fromhex(
        "00 0d ffffffff ffffffffffffffff 00".replace(" ", "")) + known + bytes.fromhex("1f 01 aa") + b"\0\0"
    fetched, end = bounds.read(FetchResponse, frame)
    assert (fetched.responses[0].partitions[0].snapshot_id.end_offset, end) == (9, len(frame))


@pytest.mark.parametrize("beside", ["", "1f 01 aa"], ids=["alone", "beside another that nobody knows"])
def test_what_nobody_knows_within_a_tagged_field_is_passed_over_too(beside: str) -> None:
    partition = struct.pack(">ihqqq", 1, 0, 5, 4, 3) + bytes.fromhex("00 ffffffff 00")
    snapshot = bytes.fromhex("02 11") + struct.pack(">qi", 9, 2) + bytes.fromhex("01 07 02 abcd")     # of 17 bytes, tag 2
    frame = (bytes.fromhex("00000000 0000 00000000 02") + bytes(16) + b"\2" + partition
             + (b"\2" if beside else b"\1") + snapshot + bytes.fromhex(beside) + b"\0\0")
    fetched, end = bounds.read(FetchResponse, frame)
    [found] = fetched.responses[0].partitions
    assert (found.snapshot_id.end_offset, found.snapshot_id.epoch, end) == (9, 2, len(frame))


def test_a_tagged_field_that_lies_about_its_length() -> None:
    partition = struct.pack(">ihqqq", 1, 0, 5, 4, 3) + bytes.fromhex("00 ffffffff 00")
    lying = b"\1" + bytes.fromhex("02 0e") + struct.pack(">qi", 9, 2) + b"\0\0"
    with pytest.raises(Unreadable, match="tagged field 2"):
        bounds.read(FetchResponse, bytes.fromhex("00000000 0000 00000000 02") + bytes(16) + b"\2" + partition + lying)


def shortest(kind: Any, count: int) -> Any:
    """So many elements of as few bytes as there can be, with the largest numbers: what takes most memory for its bytes."""
    if get_origin(kind) is tuple:
        return tuple(shortest(get_args(kind)[0], 0) for _ in range(count))
    if is_dataclass(kind):
        return kind(**{each.name: shortest(each.type, count) for each in fields(kind)})     # type: ignore[operator]
    if type(None) in get_args(kind):
        return shortest(next(each for each in get_args(kind) if each is not type(None)), count)
    if isinstance(kind, type) and issubclass(kind, str | bytes):
        return kind("" if issubclass(kind, str) else b"")
    if isinstance(kind, type) and issubclass(kind, int) and kind not in (bool, i8, ErrorCode):
        return kind(30_000)
    return sample(kind, 0)


@pytest.mark.parametrize("kind", entities(), ids=lambda each: f"{each.__module__.removeprefix('kio.schema.')}")
@pytest.mark.parametrize("make", [shortest, sample])
def test_it_takes_no_more_memory_than_was_added_up(kind: type[Any], make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 27 times its bytes. What is too large for the room is refused before anything is made of it."""
    data = encoded(make(kind, 3_000 if make is shortest else 12))
    bounds.read(kind, data)                # what is made once is made
    tracemalloc.start()
    try:
        read = bounds.read(kind, data)
        taken, highest = tracemalloc.get_traced_memory()
        assert read
    finally:
        tracemalloc.stop()
    monkeypatch.setattr(memory, "room", lambda: len(data))
    monkeypatch.setattr(memory, "FOR_SMALL", 0)
    with pytest.raises(bounds.TooLarge) as refused:
        bounds.read(kind, data)
    assert taken <= highest <= refused.value.bytes + 2_000


@pytest.mark.parametrize(("files", "limit", "room"), [
    ([], None, 2048), ([None, None], None, 2048), (["max\n"], None, 2048), (["9223372036854771712\n"], None, 2048),
    ([str(256 << 20)], 256, 96), ([None, str(1 << 30)], 1024, 864), ([str(100 << 20)], 100, 64),
    ([str(1 << 40)], 1 << 20, 2048), (["rubbish"], None, 2048),
])
def test_the_room_is_what_the_memory_limit_leaves(
        files: list[str | None], limit: int | None, room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In MiB."""
    paths = [tmp_path / str(number) for number, _ in enumerate(files)]
    for path, text in zip(paths, files, strict=True):
        if text is not None:
            path.write_text(text)
    monkeypatch.setattr(memory, "FILES", paths)
    assert memory.limit() == (None if limit is None else limit << 20)
    assert memory.room.__wrapped__() == room << 20


def test_nothing_is_set_aside_for_what_is_only_announced() -> None:
    """A megabyte of a list that announces as many elements as there are bytes."""
    frame = bytes(4) + b"\x80\x80\x40" + b"\0" * 1_000_000
    tracemalloc.start()
    try:
        with pytest.raises(Unreadable):
            bounds.read(MetadataResponse, frame)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(frame)
    finally:
        tracemalloc.stop()
