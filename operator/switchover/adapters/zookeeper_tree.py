"""Reads the metadata in the ZooKeeper tree, slice by slice, so that other questions are answered in between.

A node is read every time, for nothing in ZooKeeper tells which of many nodes were written; but only one that was is parsed
again.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from switchover.adapters import znodes
from switchover.metadata.cluster import ClusterMetadata
from switchover.metadata.parity import TreeReading
from switchover.metadata.tree import (
    ACL_ROOTS,
    CLIENTS,
    PRODUCER_IDS,
    ROOTS,
    Entries,
    TreeParser,
    assembled,
    state_path,
)
from switchover.ports import Refused

SLICE = 250                 # nodes; about a tenth of a second
MIGRATION = "/migration"

T = TypeVar("T")
Node = tuple[bytes, Any]    # data and kazoo's ZnodeStat
Call = Callable[[Callable[[float], Any]], Awaitable[Any]]
Read = Callable[[float, Sequence[str]], Iterable[tuple[str, Node]]]
List = Callable[[float, Sequence[str]], Mapping[str, Sequence[str]]]


class TreeReader:
    """`call` runs a function of a deadline on ZooKeeper's thread; `read` and `list_children` are such functions."""

    def __init__(self, call: Call, read: Read, list_children: List) -> None:
        self._call = call
        self._read = read
        self._list = list_children
        self._parser = TreeParser(None)
        self._secret: str | None = None
        self._parsed: dict[str, tuple[int, Entries]] = {}       # path -> the transaction that wrote it, what it says
        self._reads = 0

    async def read(self, secret: str | None, *, states: bool = False) -> TreeReading:
        """The whole tree, with the versions of the partitions' states when asked for; one reading at a time.

        Raises Refused when a node may not be read.
        """
        if secret != self._secret:
            self._parser, self._secret, self._parsed = TreeParser(secret), secret, {}
        self._reads = 0
        offset = await self._offset()
        paths = [PRODUCER_IDS, *await self._children(ROOTS)]
        paths += await self._children(await self._children(ACL_ROOTS))
        users = await self._take(paths)
        clients = await self._children([f"{user}/{CLIENTS}" for user in users])
        await self._take(clients)
        seen = {*paths, *clients}
        self._parsed = {path: item for path, item in self._parsed.items() if path in seen}
        metadata = assembled(entries for _, entries in self._parsed.values())
        if states:
            metadata = replace(metadata, epochs=await self._epochs(metadata))
        return TreeReading(offset, metadata, self._reads)

    async def _epochs(self, metadata: ClusterMetadata) -> Mapping[tuple[str, int], int]:
        partitions = {state_path(name, index): (name, index)
                      for name, topic in metadata.topics.items() for index in topic.partitions}
        found: dict[tuple[str, int], int] = {}
        for part in _slices([*partitions]):
            found |= {partitions[path]: stat.version for path, (_, stat) in await self._nodes(part)}
        return found

    async def _offset(self) -> int:
        found = await self._nodes([MIGRATION])
        if not found:
            return -1
        data, stat = found[0][1]
        try:
            return znodes.migration(data, stat.version, stat.mtime).offset
        except ValueError as error:
            raise Refused(f"{MIGRATION} in ZooKeeper is not what Kafka writes: {error}") from error

    async def _children(self, paths: Sequence[str]) -> list[str]:
        found: list[str] = []
        for part in _slices(paths):
            listed = await self._ask(self._list, part)
            found += [f"{path}/{name}" for path, names in listed.items() for name in names]
        return found

    async def _take(self, paths: Sequence[str]) -> list[str]:
        """Parse what was written since it was read last; the paths of nodes that have children of their own."""
        parents: list[str] = []
        for part in _slices(paths):
            parents += await self._ask(self._parse, part)
        return [path for path in parents if path.startswith("/config/users/")]

    async def _nodes(self, paths: Sequence[str]) -> list[tuple[str, Node]]:
        return await self._ask(lambda deadline, paths: list(self._read(deadline, paths)), paths)

    async def _ask(self, question: Callable[[float, Sequence[str]], T], paths: Sequence[str]) -> T:
        answer: T = await self._call(lambda deadline: question(deadline, paths))
        self._reads += len(paths)
        return answer

    def _parse(self, deadline: float, paths: Sequence[str]) -> list[str]:
        missing, parents = set(paths), []
        for path, (data, stat) in self._read(deadline, paths):
            missing.discard(path)
            if stat.numChildren:
                parents.append(path)
            known = self._parsed.get(path)
            if known is None or known[0] != stat.mzxid:
                self._parsed[path] = stat.mzxid, self._parser.entries(path, data)
        for path in missing:                                    # gone since it was listed
            self._parsed.pop(path, None)
        return parents


def _slices(paths: Sequence[str]) -> Iterable[Sequence[str]]:
    return (paths[start:start + SLICE] for start in range(0, len(paths), SLICE))
