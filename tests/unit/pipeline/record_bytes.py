"""Records of `__consumer_offsets` as bytes: an encoder of the tests' own, to read back."""

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from switchover.pipeline.records.commits import Decoded, Ints, split


def text(value: str | bytes | None) -> bytes:
    if value is None:
        return b"\xff\xff"
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">h", len(data)) + data


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def blob(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def array(*items: bytes) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def tags(*fields: tuple[int, bytes]) -> bytes:
    return varint(len(fields)) + b"".join(varint(tag) + varint(len(data)) + data for tag, data in fields)


def commit_key(group: str | bytes, topic: str | bytes, partition: int, kind: int = 1) -> bytes:
    return struct.pack(">h", kind) + text(group) + text(topic) + struct.pack(">i", partition)


def commit_value(version: int, offset: int, time: int, *, epoch: int = -1, metadata: bytes = b"",
                 tagged: Sequence[tuple[int, bytes]] = ()) -> bytes:
    head = struct.pack(">hq", version, offset) + (struct.pack(">i", epoch) if version >= 3 else b"")
    about = varint(len(metadata) + 1) + metadata if version >= 4 else text(metadata)
    expiry = bytes(8) if version == 1 else b""
    return head + about + struct.pack(">q", time) + expiry + (tags(*tagged) if version >= 4 else b"")


def group_key(kind: int, *names: str | bytes) -> bytes:
    return struct.pack(">h", kind) + b"".join(text(name) for name in names)


def numbers(size: int, first: int = 0) -> Ints:
    return np.arange(first, first + size, dtype=np.int64)


def decoded(*records: tuple[bytes | None, bytes | None]) -> Decoded:
    """By `split`; record i has offset i and time 1000 + i, and lies in partition 7 of the log."""
    size = len(records)
    return split(pa.array([key for key, _ in records], pa.binary()), pa.array([value for _, value in records], pa.binary()),
                 numbers(size, 1000), numbers(size), 7)
