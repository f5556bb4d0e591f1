"""ZooKeeper's transaction logs as rows: who created, changed and removed what, and which session ended.

A file `log.<zxid>` begins with magic "ZKLG", an int32 version (2) and an int64 database id. Then for each transaction an
int64 checksum (Adler-32 of what follows), an int32 length, so many bytes and an end byte "B"; zeros fill what is allocated
in advance (FileTxnLog). The bytes are a TxnHeader (session, cxid, zxid, time, type) and the operation's record (jute), from
3.6 on with a digest behind it. Run against TxnLogToolkit in tests/adapters/test_pipeline_zookeeper.py.
"""

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

MAGIC: Final = b"ZKLG"
HEADER_BYTES: Final = 16
CREATE, DELETE, SET_DATA, CREATE_CONTAINER, CREATE_2 = 1, 2, 5, 19, 15
DELETE_CONTAINER, CREATE_TTL, MULTI, CREATE_SESSION, CLOSE_SESSION, ERROR = 20, 21, 14, -10, -11, -1
_CREATES: Final = (CREATE, CREATE_2, CREATE_CONTAINER, CREATE_TTL)
_WITHOUT_ROW: Final = {7: "setACL", 13: "check", ERROR: "error", 16: "reconfig"}
_HEAD: Final = struct.Struct(">qiqqi")
LARGEST: Final = 64 << 20
"""No transaction is longer (jute.maxbuffer is 1 MiB by default): a larger length is damage."""


class Damaged(Exception):
    """The file cannot be read beyond `position`."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(f"at byte {position}: {why}")
        self.position = position


@dataclass(frozen=True, slots=True)
class Operation:
    """A row of `tables.TRANSACTIONS`; `path` is the server's own, with the chroot."""

    zxid: int
    index: int
    time: int
    session: int
    op: str
    path: str | None = None
    data: bytes | None = None
    version: int | None = None
    ephemeral: bool = False


Transaction = tuple[int, tuple[Operation, ...]]
"""A zxid and the operations that have a row: none for an error, say."""


@dataclass
class Log:
    """Reads one file. `counts` has what has no row. A live file may end in the middle of a transaction: that is its end.

    Of transactions up to the zxid `after` only the header is read: a live file is read again at each capture.
    """

    content: bytes
    after: int = -1
    counts: "Counter[str]" = field(default_factory=Counter)

    def transactions(self) -> Iterator[Transaction]:
        """In the order of the log, each zxid with a header. Raises Damaged."""
        content = self.content
        if not content.strip(b"\0"):
            return                                              # allocated, nothing written yet
        if len(content) < HEADER_BYTES or content[:4] != MAGIC:
            raise Damaged(0, "it is no transaction log of ZooKeeper")
        position, written = HEADER_BYTES, len(content.rstrip(b"\0"))
        while position < written and position + 12 <= len(content):
            checksum, length = struct.unpack_from(">qi", content, position)
            begin = position + 12
            end = begin + max(0, length)
            if why := self._defect(begin, length, checksum):
                if written <= end + 1:
                    return                                      # the last one: it is being written
                raise Damaged(position, why)
            yield self._transaction(content[begin:end], position)
            position = end + 1

    def _defect(self, begin: int, length: int, checksum: int) -> str:
        if not _HEAD.size <= length <= LARGEST:
            return f"a transaction of {length} bytes"
        if self.content[begin + length:begin + length + 1] != b"B":
            return "a transaction without its end"
        return "" if zlib.adler32(self.content[begin:begin + length]) == checksum else "a wrong checksum"

    def _transaction(self, body: bytes, position: int) -> Transaction:
        session, _, zxid, time, kind = _HEAD.unpack_from(body)
        if zxid <= self.after:
            return zxid, ()
        jute = Jute(body, _HEAD.size)
        found: list[Operation] = []
        try:
            if kind == MULTI:
                parts = [(jute.number(), jute.buffer() or b"") for _ in range(jute.count())]
                if any(inner == ERROR for inner, _ in parts):       # those before the error are listed, and were not done
                    self.counts["multi that failed"] += 1
                    return zxid, ()
                for index, (inner, record) in enumerate(parts):
                    found += self._operation(Jute(record, 0), inner, Operation(zxid, index, time, session, ""))
            else:
                found += self._operation(jute, kind, Operation(zxid, 0, time, session, ""))
        except (struct.error, IndexError, ValueError):
            raise Damaged(position, f"a transaction of type {kind} that cannot be read") from None
        return zxid, tuple(found)

    def _operation(self, jute: "Jute", kind: int, of: Operation) -> Iterator[Operation]:
        def row(op: str, path: str | None = None, data: bytes | None = None, version: int | None = None,
                ephemeral: bool = False, index: int = of.index) -> Operation:
            return Operation(of.zxid, index, of.time, of.session, op, path, data, version, ephemeral)

        if kind in _CREATES:
            path, data = jute.text(), jute.buffer()
            for _ in range(jute.count()):                       # ACL: permissions, scheme, id
                jute.number(), jute.text(), jute.text()
            ephemeral = bool(jute.byte()) if kind in (CREATE, CREATE_2) else False
            yield row("create", path, data, 0, ephemeral)
        elif kind in (DELETE, DELETE_CONTAINER):
            yield row("delete", jute.text())
        elif kind == SET_DATA:
            path, data = jute.text(), jute.buffer()
            yield row("setData", path, data, jute.number())
        elif kind == CREATE_SESSION:
            yield row("createSession")
        elif kind == CLOSE_SESSION:
            paths = _closed(jute)
            if not paths:
                yield row("closeSession")
            for index, path in enumerate(paths):
                yield row("closeSession", path, index=index)
        else:
            self.counts[_WITHOUT_ROW.get(kind, f"transaction of type {kind}")] += 1


def _closed(jute: "Jute") -> list[str]:
    """The paths that went with a session. Servers before 3.6, and later ones that are configured so, do not list them: what
    follows the header is then nothing, or the digest."""
    try:
        paths = [jute.text() for _ in range(jute.count())] if jute.left() else []
    except (struct.error, ValueError):
        return []
    return paths if all(path.startswith("/") for path in paths) else []


@dataclass
class Jute:
    """Reads ZooKeeper's serialization. Raises struct.error, IndexError or ValueError for what is not there."""

    content: bytes
    position: int

    def number(self) -> int:
        (value,) = struct.unpack_from(">i", self.content, self.position)
        self.position += 4
        return int(value)

    def byte(self) -> int:
        self.position += 1
        return self.content[self.position - 1]

    def count(self) -> int:
        """Of a vector; null is empty. Each item takes a byte at least."""
        count = self.number()
        if count > self.left():
            raise ValueError(f"a vector of {count}")
        return max(count, 0)

    def buffer(self) -> bytes | None:
        length = self.number()
        if length < 0:
            return None
        if length > self.left():
            raise ValueError(f"a buffer of {length} bytes")
        self.position += length
        return self.content[self.position - length:self.position]

    def text(self) -> str:
        return (self.buffer() or b"").decode("utf-8", "replace")

    def left(self) -> int:
        return len(self.content) - self.position
