"""ZooKeeper's part of a capture: the tree below `/consumers` as it is now, and what the transaction logs say of it."""

import asyncio
import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from switchover.answers.errors import Refused, Unreachable
from switchover.coordination.layout import CONSUMERS
from switchover.network.credentials import Access
from switchover.pipeline.capture.facts import now
from switchover.pipeline.capture.transactions import Damaged, Log, Operation, Transaction
from switchover.pipeline.config import Config, ZooKeeper, properties
from switchover.pipeline.outcome import BadConfig, JobFailed, Progress
from switchover.pipeline.store import File
from switchover.pipeline.tables import TRANSACTIONS, ZNODES
from switchover.zookeeper.client.legacy_groups import ConsumerTree

INPUT = "zxid"
"""The key in a manifest's inputs: the last zxid that was filed."""
SESSIONS = ("createSession", "closeSession")
ROWS = 500_000
"""Transactions that are held in memory before they are written."""

Write = Callable[[str, pa.Table], File]


def capture_zookeeper(config: Config, inputs: Mapping[str, Any], write: Write,
                      progress: Progress) -> tuple[dict[str, Any], "Counter[str]", list[str]]:
    """File the tree and the transactions after those of the last manifest (`inputs`).

    Returns the inputs for the next capture (with holes, if there are), counts, and notes. Raises JobFailed.
    """
    settings = config.zookeeper
    assert settings is not None
    write("znodes", _tree(settings))
    if not settings.transaction_logs:
        return {}, Counter(), []
    return _transactions(settings, inputs.get(INPUT), write, progress)


def _tree(settings: ZooKeeper) -> pa.Table:
    at = now()

    async def read() -> pa.Table:
        tree = ConsumerTree(Access(settings.connect, properties(settings.command_config)))
        try:
            return pa.Table.from_pylist([{
                "path": path, "data": data, "version": stat.version, "czxid": stat.czxid, "mzxid": stat.mzxid,
                "ctime": stat.ctime, "mtime": stat.mtime, "session": stat.ephemeralOwner, "time": at,
            } for path, data, stat in await tree.read()], ZNODES)
        finally:
            await tree.close()

    try:
        return asyncio.run(read())
    except (Refused, Unreachable) as error:
        raise JobFailed(str(error)) from None


def _transactions(settings: ZooKeeper, last: int | None, write: Write,
                  progress: Progress) -> tuple[dict[str, Any], "Counter[str]", list[str]]:
    """Every zxid after `last` once, whichever server's file has it."""
    after = -1 if last is None else last
    logs = [Server(directory, after, progress) for directory in settings.transaction_logs]
    notes, holes = list[str](), list[dict[str, Any]]()
    rows: list[Operation] = []
    newest, seen = last, -1
    for zxid, operations in heapq.merge(*(each.transactions() for each in logs), key=lambda each: each[0]):
        seen = max(seen, zxid)
        if newest is not None and zxid <= newest:
            continue
        if newest is not None and _after(zxid, newest):
            notes.append(f"no log holds what lies between the transactions {newest:#x} and {zxid:#x}: it was purged, or "
                         "only other servers' logs have it; archive the logs")
            holes.append({"zxid": True, "from": newest + 1, "to": zxid})
        newest = zxid
        rows += _relevant(operations, settings.connect)
        if len(rows) >= ROWS:
            write("transactions", _table(rows))
            rows.clear()
    write("transactions", _table(rows))         # be it empty: an audit asks for the captures that read the logs
    if seen < after:
        notes.append(f"the logs end at transaction {max(seen, 0):#x}, before {after:#x} that was captured: their server "
                     "lags behind, or it is another ZooKeeper, which needs another name of `cluster`")
        holes.append({"zxid": True, "from": after + 1, "to": None})
    for each in logs:
        notes += each.notes
        # Where another file goes on, what lacks is noted above.
        holes += [{"file": name, "from": reached + 1, "to": None} for name, reached in each.damaged
                  if newest is None or reached == newest]
    counts = sum((each.counts for each in logs), Counter[str]())
    return {INPUT: newest, **({"holes": holes} if holes else {})}, counts, notes


@dataclass
class Server:
    """One server's log files, one after the other: only one is in memory at a time."""

    directory: Path
    after: int
    progress: Progress
    counts: "Counter[str]" = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    damaged: list[tuple[str, int]] = field(default_factory=list)
    """The name of a file, and the last zxid before the damage."""

    def transactions(self) -> Iterator[Transaction]:
        """Of the files that may hold something after `after`; a damaged one up to its damage."""
        reached = self.after
        for path in _files(self.directory, self.after):
            log, before = Log(_content(path), self.after), reached
            try:
                for each in log.transactions():
                    reached = max(reached, each[0])
                    yield each
            except Damaged as error:
                self.notes.append(f"{path} is damaged {error}; it is read up to there")
                self.damaged.append((path.name, reached))
            self.counts.update(log.counts)
            if reached != before:
                self.progress.say(f"{path.name}: up to zxid {reached:#x}")


def _after(zxid: int, last: int) -> bool:
    """Whether zxids lie between. The first of a new epoch (the upper half) follows the last of the one before."""
    if zxid >> 32 != last >> 32:
        return zxid >> 32 != (last >> 32) + 1 or zxid & 0xFFFFFFFF > 1
    return zxid > last + 1


def _files(directory: Path, after: int) -> list[Path]:
    """Log files that may hold something newer than `after`, and one of before: a file's name has its first zxid."""
    if not directory.is_dir():
        raise BadConfig(f"zookeeper.transactionLogs: {directory} is no directory; name the servers' `version-2`")
    try:
        named = sorted((int(path.name[4:], 16), path) for path in directory.glob("log.*"))
    except ValueError:
        raise BadConfig(f"{directory} holds a log file without a number of ZooKeeper's") from None
    keep = max((index for index, (begin, _) in enumerate(named) if begin <= after), default=0)
    return [path for _, path in named[keep:]]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise JobFailed(f"cannot read {path}: {error.strerror}") from None


def _relevant(operations: tuple[Operation, ...], connect: str) -> Iterator[Operation]:
    """The rows below `/consumers`, with the chroot taken off; and of each session's begin and end one row at least."""
    chroot = connect.partition("/")[2].strip("/")
    below = f"/{chroot}{CONSUMERS}/" if chroot else f"{CONSUMERS}/"
    ours = [replace(each, path=each.path[len(below) - len(CONSUMERS) - 1:]) for each in operations
            if each.path is not None and each.path.startswith(below)]
    yield from ours
    if not ours and operations and operations[0].op in SESSIONS:
        yield replace(operations[0], path=None)


def _table(rows: list[Operation]) -> pa.Table:
    return pa.table({name: [getattr(row, name) for row in rows] for name in TRANSACTIONS.names}, schema=TRANSACTIONS)
