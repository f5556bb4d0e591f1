"""ZooKeeper's transaction logs: every kind of transaction, and every way in which a file can be broken."""

import struct
import zlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchover.pipeline.capture.transactions import Damaged, Log, Operation

SESSION, TIME = 0x100012345, 1_700_000_000_000


def text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">i", len(encoded)) + encoded


def data(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


ACL = struct.pack(">ii", 1, 31) + text("world") + text("anyone")


def create(path: str, value: bytes | None = b"", *, ephemeral: bool = False) -> tuple[int, bytes]:
    return 1, text(path) + data(value) + ACL + bytes([ephemeral]) + struct.pack(">i", 3)


def set_data(path: str, value: bytes, version: int) -> tuple[int, bytes]:
    return 5, text(path) + data(value) + struct.pack(">i", version)


def delete(path: str) -> tuple[int, bytes]:
    return 2, text(path)


def close(*paths: str) -> tuple[int, bytes]:
    return -11, struct.pack(">i", len(paths)) + b"".join(map(text, paths))


def multi(*parts: tuple[int, bytes]) -> tuple[int, bytes]:
    return 14, struct.pack(">i", len(parts)) + b"".join(struct.pack(">i", kind) + data(body) for kind, body in parts)


def log(*transactions: tuple[int, bytes], zeros: int = 64) -> bytes:
    content = b"ZKLG" + struct.pack(">iq", 2, 0)
    for zxid, (kind, body) in enumerate(transactions, 1):
        whole = struct.pack(">qiqqi", SESSION, zxid, zxid, TIME + zxid, kind) + body
        content += struct.pack(">qi", zlib.adler32(whole), len(whole)) + whole + b"B"
    return content + b"\0" * zeros


def read(content: bytes) -> tuple[list[Operation], Log]:
    read_ = Log(content)
    return [row for _, rows in read_.transactions() for row in rows], read_


def until_damage(content: bytes) -> tuple[list[Operation], Damaged | None]:
    found: list[Operation] = []
    try:
        for _, rows in Log(content).transactions():
            found.extend(rows)
    except Damaged as damage:
        return found, damage
    return found, None


def brief(operations: Sequence[Operation]) -> list[tuple[int, int, str, str | None]]:
    return [(each.zxid, each.index, each.op, each.path) for each in operations]


def test_what_an_old_consumer_does_is_read_in_order() -> None:
    found, _ = read(log(
        (-10, struct.pack(">i", 6000)), create("/consumers/g/owners/t/0", b"g_host-0", ephemeral=True),
        set_data("/consumers/g/offsets/t/0", b"42", 7), delete("/consumers/g/owners/t/0"),
        close("/consumers/g/ids/a", "/x")))
    assert brief(found) == [
        (1, 0, "createSession", None), (2, 0, "create", "/consumers/g/owners/t/0"),
        (3, 0, "setData", "/consumers/g/offsets/t/0"), (4, 0, "delete", "/consumers/g/owners/t/0"),
        (5, 0, "closeSession", "/consumers/g/ids/a"), (5, 1, "closeSession", "/x")]
    assert (found[1].data, found[1].ephemeral, found[1].session, found[1].time) == (b"g_host-0", True, SESSION, TIME + 2)
    assert (found[2].data, found[2].version) == (b"42", 7)


def test_the_parts_of_a_multi_have_their_own_index() -> None:
    found, _ = read(log(multi(create("/a"), (13, text("/a") + struct.pack(">i", 1)), delete("/b"))))
    assert brief(found) == [(1, 0, "create", "/a"), (1, 2, "delete", "/b")]


def test_nothing_of_a_multi_that_failed_is_read_though_its_first_parts_are_listed() -> None:
    error = (-1, struct.pack(">i", -103))
    found, log_ = read(log(multi(create("/a"), error, error), create("/b")))
    assert brief(found) == [(2, 0, "create", "/b")]
    assert log_.counts == {"multi that failed": 1}


def test_of_what_was_read_before_only_the_zxid_is_given() -> None:
    read_ = Log(log(create("/a"), (7, text("/a")), (7, text("/a")), create("/b")), after=2)
    assert [(zxid, brief(rows)) for zxid, rows in read_.transactions()] == [
        (1, []), (2, []), (3, []), (4, [(4, 0, "create", "/b")])]
    assert read_.counts == {"setACL": 1}


def test_a_session_that_lists_no_paths_is_one_row() -> None:
    digest = struct.pack(">iq", 2, 0x123456789)
    found, _ = read(log((-11, b""), (-11, digest)))
    assert brief(found) == [(1, 0, "closeSession", None), (2, 0, "closeSession", None)]


def test_a_digest_behind_the_record_is_passed_over() -> None:
    kind, body = set_data("/a", b"1", 2)
    found, _ = read(log((kind, body + struct.pack(">iq", 2, 99))))
    assert brief(found) == [(1, 0, "setData", "/a")]


def test_kinds_without_a_row_are_counted() -> None:
    found, log_ = read(log((7, text("/a")), (-1, struct.pack(">i", -101)), (4242, b"")))
    assert found == []
    assert log_.counts == {"setACL": 1, "error": 1, "transaction of type 4242": 1}


def test_a_file_that_is_only_allocated_is_empty() -> None:
    assert read(b"\0" * 1000) == ([], Log(b"\0" * 1000))


def test_another_file_is_refused() -> None:
    with pytest.raises(Damaged, match="no transaction log"):
        read(b"ZKSN" + b"\1" * 100)


@pytest.mark.parametrize("position", [30, 60])
def test_a_changed_byte_is_damage_and_what_comes_before_is_read(position: int) -> None:
    content = bytearray(log(create("/a"), create("/b"), create("/c")))
    first = len(log(create("/a"), zeros=0))
    content[first + position] ^= 1
    found, damage = until_damage(bytes(content))
    assert brief(found) == [(1, 0, "create", "/a")]
    assert damage is not None
    assert (damage.position, "wrong checksum" in str(damage)) == (first, True)


def test_a_length_of_two_gigabytes_is_damage_and_not_memory() -> None:
    content = log(create("/a"), zeros=0) + struct.pack(">qi", 1, -(2**31)) + b"x" * 50
    with pytest.raises(Damaged, match="-2147483648 bytes"):
        read(content)
    found, _ = read(log(create("/a"), zeros=0) + struct.pack(">qi", 1, 2**31 - 1) + b"x" * 50)
    assert len(found) == 1


def test_a_live_file_cut_anywhere_gives_the_transactions_before_the_cut() -> None:
    parts = [create("/consumers/a"), set_data("/consumers/a", b"1", 1), close("/consumers/a")]
    whole = log(*parts, zeros=0)
    ends = [len(log(*parts[:count], zeros=0)) for count in range(len(parts) + 1)]
    for cut in range(16, len(whole) + 1):
        for rest in (b"", b"\0" * 40):
            found, _ = read(whole[:cut] + rest)
            assert len(found) == sum(cut >= end for end in ends[1:]), cut


@given(st.binary(max_size=300))
def test_junk_behind_the_header_never_crashes(junk: bytes) -> None:
    _, damage = until_damage(b"ZKLG" + struct.pack(">iq", 2, 0) + junk)
    assert damage is None or damage.position >= 16


@given(st.lists(st.tuples(st.integers(-20, 30), st.binary(max_size=60)), max_size=5))
def test_junk_in_valid_frames_never_crashes(transactions: list[tuple[int, bytes]]) -> None:
    _, damage = until_damage(log(*transactions))
    assert damage is None or "cannot be read" in str(damage)
