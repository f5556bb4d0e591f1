"""ZooKeeper's part of a capture: the tree below `/consumers` as it is now, and what the transaction logs tell of it."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from switchover.adapters.consumer_tree import ConsumerTree
from switchover.pipeline.capture.client import properties
from switchover.pipeline.capture.facts import now
from switchover.pipeline.capture.transactions import Damaged, Log, Operation
from switchover.pipeline.config import Config, ZooKeeper
from switchover.pipeline.job import BadConfig, JobFailed
from switchover.pipeline.progress import Progress
from switchover.pipeline.store import File
from switchover.pipeline.tables import TRANSACTIONS, ZNODES
from switchover.ports import Access, Refused, Unreachable

INPUT = "zxid"
"""The key in a manifest's inputs: the last zxid that was filed."""
CONSUMERS = "/consumers"
SESSIONS = ("createSession", "closeSession")
ROWS = 500_000
"""Transactions that are kept in memory before they are written."""

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
    chroot = "/" + settings.connect.partition("/")[2].strip("/")
    prefix = "" if chroot == "/" else chroot
    counts, notes, holes = Counter[str](), list[str](), list[dict[str, Any]]()
    found: dict[tuple[int, int], Operation] = {}
    newest, oldest = last, None
    for directory in settings.transaction_logs:
        for path in _files(directory, last):
            log = Log(_content(path))
            first, before = True, newest
            try:
                for each in log.operations():
                    if first:
                        oldest = each.zxid if oldest is None else min(oldest, each.zxid)
                        first = False
                    newest = each.zxid if newest is None else max(newest, each.zxid)
                    if (last is None or each.zxid > last) and (row := _relevant(each, prefix)) is not None:
                        found.setdefault((row.zxid, row.index), row)
            except Damaged as error:
                notes.append(f"{path} is damaged {error}; it is read up to there")
                holes.append({"file": path.name, "from": newest if newest is not None else 0, "to": None})
            counts.update(log.counts)
            if newest != before:
                progress.say(f"{path.name}: up to zxid {newest:#x}")
    if last is not None and oldest is not None and _after(oldest, last):
        notes.append(f"transactions {last + 1:#x} to {oldest - 1:#x} were purged before they were read; archive the logs")
        holes.append({"zxid": True, "from": last + 1, "to": oldest})
    rows = [found[key] for key in sorted(found)]
    for start in range(0, len(rows), ROWS):
        write("transactions", _table(rows[start:start + ROWS]))
    return {INPUT: newest, **({"holes": holes} if holes else {})}, counts, notes


def _after(oldest: int, last: int) -> bool:
    """Whether zxids lie between. The first of a new epoch (the upper half) follows the last of the one before."""
    if oldest >> 32 != last >> 32:
        return oldest >> 32 != (last >> 32) + 1 or oldest & 0xFFFFFFFF > 1
    return oldest > last + 1


def _files(directory: Path, last: int | None) -> list[Path]:
    """Log files that may hold something newer than `last`: a file's name has its first zxid."""
    if not directory.is_dir():
        raise BadConfig(f"zookeeper.transactionLogs: {directory} is no directory; name the servers' `version-2`")
    try:
        named = sorted((int(path.name[4:], 16), path) for path in directory.glob("log.*"))
    except ValueError:
        raise BadConfig(f"{directory} holds a log file without a number of ZooKeeper's") from None
    begins = [begin for begin, _ in named]
    keep = 0 if last is None else max((index for index, begin in enumerate(begins) if begin <= last), default=0)
    return [path for _, path in named[keep:]]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise JobFailed(f"cannot read {path}: {error.strerror}") from None


def _relevant(each: Operation, prefix: str) -> Operation | None:
    """The row with the chroot taken off; None for what is not below `/consumers`, nor of a session."""
    if each.path is None:
        return each
    if each.path.startswith(f"{prefix}{CONSUMERS}/"):
        return Operation(each.zxid, each.index, each.time, each.session, each.op, each.path[len(prefix):], each.data,
                         each.version, each.ephemeral)
    if each.op in SESSIONS and each.index == 0:      # it ended a session whose nodes lie elsewhere
        return Operation(each.zxid, 0, each.time, each.session, each.op)
    return None


def _table(rows: list[Operation]) -> pa.Table:
    return pa.table({name: [getattr(row, name) for row in rows] for name in TRANSACTIONS.names}, schema=TRANSACTIONS)
