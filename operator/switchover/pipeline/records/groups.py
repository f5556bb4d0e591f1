"""Group and member records of `__consumer_offsets`: who owned what, read value after value, for they are few.

A key is an int16 type, then the group and, of types 5, 7 and 8, the member (int16 length and UTF-8). A value is an int16
version and the fields of the type's schema (GroupMetadataValue and ConsumerGroup…Value of Kafka 3.9 to 4.4).
"""

import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa

from switchover.pipeline.tables import OWNERSHIP

Item = TypeVar("Item")

LONGEST_STRING: Final = 0x7FFF


class Malformed(ValueError):
    """The bytes end too early, or say what cannot be."""


class Reader:
    """Big-endian numbers; strings, bytes and arrays with a length before them.

    `compact` is the encoding of flexible versions: lengths are variable-length numbers, plus one, and tagged fields end
    every structure. Else lengths are int16 for strings, int32 for the rest. Every method raises Malformed.
    """

    def __init__(self, data: bytes, *, compact: bool = False) -> None:
        self.compact = compact
        self._data = data
        self._position = 0

    def int8(self) -> int:
        return self._number(">b", 1)

    def int16(self) -> int:
        return self._number(">h", 2)

    def int32(self) -> int:
        return self._number(">i", 4)

    def int64(self) -> int:
        return self._number(">q", 8)

    def uuid(self) -> str:
        """As 32 hex digits."""
        return self._take(16).hex()

    def varint(self) -> int:
        """An unsigned number of 32 bits, seven in each byte, the lowest first."""
        number = 0
        for shift in range(0, 35, 7):
            byte = self._take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise Malformed("a variable-length number of more than five bytes")

    def string(self) -> str:
        """What is not UTF-8 in it becomes U+FFFD, as in Java."""
        return _there(self.nullable_string())

    def nullable_string(self) -> str | None:
        length = self.varint() - 1 if self.compact else self.int16()
        if length > LONGEST_STRING:
            raise Malformed(f"a string of {length} bytes")
        return None if length < 0 else self._take(length).decode(errors="replace")

    def blob(self) -> bytes:
        length = self._count()
        return self._take(_there(length))

    def array(self, item: Callable[[], Item]) -> list[Item]:
        return [item() for _ in range(_there(self._count()))]

    def tags(self) -> None:
        """Pass over the tagged fields that end a structure, if this encoding has them."""
        for _ in range(self.varint() if self.compact else 0):
            self.varint()
            self._take(self.varint())

    def _count(self) -> int | None:
        count = self.varint() - 1 if self.compact else self.int32()
        return None if count < 0 else count

    def _number(self, kind: str, size: int) -> int:
        number: int = struct.unpack(kind, self._take(size))[0]
        return number

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise Malformed(f"{len(self._data)} bytes where {end} were announced")
        taken = self._data[self._position:end]
        self._position = end
        return taken


def _there(value: Item | None) -> Item:
    if value is None:
        raise Malformed("null where a value must be")
    return value


Row = dict[str, Any]
"""Columns of OWNERSHIP; those that are missing are null."""

CONSUMER: Final = "consumer"
"""The protocol type whose members' subscriptions and assignments have the layout that we know; Connect has its own."""


def decode(keys: Sequence[bytes], values: Sequence[bytes | None], times: Sequence[int], log_offsets: Sequence[int],
           log_partition: int) -> tuple[pa.Table, Counter[str]]:
    """Rows of `tables.OWNERSHIP`, in the order of the records, from records of the types `commits.GROUP_TYPES`.

    The counts: `tombstone`, which are rows; without a row `bad key`, `bad value` and `unknown NAME version N`; and
    `bad subscription` and `bad assignment` of members whose row has null for it. Whatever the bytes are, nothing is raised.
    """
    rows: list[Row] = []
    counts: Counter[str] = Counter()
    for key, value, time, log_offset in zip(keys, values, times, log_offsets, strict=True):
        place = {"time": time, "log_partition": log_partition, "log_offset": log_offset}
        rows += [place | row for row in _record(key, value, counts)]
    return pa.Table.from_pylist(rows, schema=OWNERSHIP), counts


class _Kind(NamedTuple):
    """A type of record; the versions of its value are 0 to `newest`, flexible ones begin at `flexible`."""

    name: str
    of_member: bool
    newest: int
    flexible: int
    read: Callable[[Reader, int, Counter[str]], list[Row]]
    """The rows of a value, from after its version on."""


def _record(key: bytes, value: bytes | None, counts: Counter[str]) -> list[Row]:
    try:
        reader = Reader(key)
        kind = _KINDS[reader.int16()]
        of: Row = {"record": kind.name, "group": reader.string(), "member": reader.string() if kind.of_member else None}
    except (Malformed, KeyError):
        counts["bad key"] += 1
        return []
    if value is None:
        counts["tombstone"] += 1
        return [of | {"tombstone": True}]
    try:
        version = Reader(value).int16()
        if not 0 <= version <= kind.newest:
            counts[f"unknown {kind.name} version {version}"] += 1
            return []
        reader = Reader(value, compact=version >= kind.flexible)
        reader.int16()
        return [of | {"tombstone": False} | row for row in kind.read(reader, version, counts)]
    except Malformed:
        counts["bad value"] += 1
        return []


def _classic_group(reader: Reader, version: int, counts: Counter[str]) -> list[Row]:
    protocol_type = reader.string()
    group: Row = {"protocol_type": protocol_type, "epoch": reader.int32(), "protocol": reader.nullable_string()}
    leader = reader.nullable_string()
    if version >= 2 and (since := reader.int64()) >= 0:         # -1: none
        group["time"] = since
    members = reader.array(lambda: _classic_member(reader, version))
    reader.tags()
    known = protocol_type == CONSUMER
    return [group | {"leader": leader}, *(group | _classic_member_row(member, known, counts) for member in members)]


def _classic_member(reader: Reader, version: int) -> Row:
    member: Row = {"member": reader.string()}
    if version >= 3:
        member["instance"] = reader.nullable_string()
    member |= {"client_id": reader.string(), "client_host": reader.string()}
    if version >= 1:
        reader.int32()                                          # rebalance time limit
    reader.int32()                                              # session time limit
    member |= {"topics": reader.blob(), "assigned": reader.blob()}
    reader.tags()
    return member


def _classic_member_row(member: Row, known: bool, counts: Counter[str]) -> Row:
    """With what its two blobs say in the consumers' layout; null where the protocol is another's or they are malformed."""
    columns: Row = dict.fromkeys(_BLOBS)
    for column, (name, read) in _BLOBS.items() if known else ():
        try:
            columns[column] = read(member[column])
        except Malformed:
            counts[f"bad {name}"] += 1
    return member | columns


def _subscription(blob: bytes) -> list[str]:
    """Topics of a ConsumerProtocolSubscription; what later versions have after them does not matter here."""
    reader = Reader(blob)
    reader.int16()
    return reader.array(reader.string)


def _assignment(blob: bytes) -> list[Row]:
    """Partitions of a ConsumerProtocolAssignment; a member that the leader gave nothing may have no bytes at all."""
    if not blob:
        return []
    reader = Reader(blob)
    reader.int16()
    topics = reader.array(lambda: (reader.string(), reader.array(reader.int32)))
    return [{"topic": topic, "partition": partition} for topic, partitions in topics for partition in partitions]


_BLOBS: Final = {"topics": ("subscription", _subscription), "assigned": ("assignment", _assignment)}


def _epoch(reader: Reader, _version: int, _counts: Counter[str]) -> list[Row]:
    row = {"epoch": reader.int32()}
    reader.tags()                                               # a hash of the topics; of TargetEpoch, when it was made
    return [row]


def _member(reader: Reader, _version: int, _counts: Counter[str]) -> list[Row]:
    row: Row = {"instance": reader.nullable_string()}
    reader.nullable_string()                                    # rack
    row |= {"client_id": reader.string(), "client_host": reader.string(), "topics": reader.array(reader.string),
            "regex": reader.nullable_string() or None}           # brokers write an empty one where there is none
    reader.int32()                                              # rebalance time limit
    row["protocol"] = reader.nullable_string()
    reader.tags()                                               # what a member of the classic protocol supports
    return [row]


def _target(reader: Reader, _version: int, _counts: Counter[str]) -> list[Row]:
    row = {"assigned": _partitions(reader)}
    reader.tags()
    return [row]


def _current(reader: Reader, _version: int, _counts: Counter[str]) -> list[Row]:
    row = {"epoch": reader.int32(), "previous_epoch": reader.int32(), "state": reader.int8(),
           "assigned": _partitions(reader), "pending": _partitions(reader)}
    reader.tags()
    return [row]


def _partitions(reader: Reader) -> list[Row]:
    def topic() -> tuple[str, list[int]]:
        read = reader.uuid(), reader.array(reader.int32)
        reader.tags()
        return read

    return [{"topic_id": topic_id, "partition": partition}
            for topic_id, partitions in reader.array(topic) for partition in partitions]


_KINDS: Final[Mapping[int, _Kind]] = {
    2: _Kind("ClassicGroup", False, newest=4, flexible=4, read=_classic_group),
    3: _Kind("Epoch", False, newest=0, flexible=0, read=_epoch),
    5: _Kind("Member", True, newest=0, flexible=0, read=_member),
    6: _Kind("TargetEpoch", False, newest=0, flexible=0, read=_epoch),
    7: _Kind("Target", True, newest=0, flexible=0, read=_target),
    8: _Kind("Current", True, newest=0, flexible=0, read=_current),
}
