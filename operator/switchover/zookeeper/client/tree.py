"""Reads the metadata in the ZooKeeper tree, slice by slice, so that other questions are answered in between.

Every node is read each time, for ZooKeeper does not say which of many were written. Only one that was is parsed again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from switchover.answers.errors import Refused
from switchover.answers.memory import Held
from switchover.metadata.cluster import ClusterMetadata
from switchover.metadata.parity import TreeReading
from switchover.metadata.tree import (
    ACL_ROOTS,
    CLIENTS,
    FEATURE,
    PRODUCER_IDS,
    ROOTS,
    Entries,
    TreeParser,
    assembled,
    state_path,
)
from switchover.zookeeper.client import znodes
from switchover.zookeeper.client.znode_slices import Call, List, Read, Slices, slices

MIGRATION = "/migration"


class TreeReader:
    """Reads by way of `Slices`, which are given the same."""

    def __init__(self, call: Call, read: Read, list_children: List, room: Held) -> None:
        self._read = read
        self._room = room                                       # for what is remembered
        self._slices = Slices(call, read, list_children)
        self._parser = TreeParser(None)
        self._secret: str | None = None
        self._parsed: dict[str, tuple[int, int, Entries]] = {}  # path -> the transaction that wrote it, bytes, what it says

    def close(self) -> None:
        """Remember nothing."""
        self._parsed = {}
        self._room.give_back()

    async def read(self, secret: str | None, *, states: bool = False) -> TreeReading:
        """The whole tree, with the versions of the partitions' states when asked for; one reading at a time.

        Raises Refused when a node may not be read.
        """
        if secret != self._secret:
            self.close()
            self._parser, self._secret = TreeParser(secret), secret
        self._slices.reads = 0
        offset = await self._offset()
        children = self._slices.children
        paths = [PRODUCER_IDS, FEATURE, *await children(ROOTS)]
        paths += await children(await children(ACL_ROOTS))
        users = await self._take(paths)
        clients = await children([f"{user}/{CLIENTS}" for user in users])
        await self._take(clients)
        seen = {*paths, *clients}
        self._parsed = {path: item for path, item in self._parsed.items() if path in seen}
        self._room.resize(sum(size for _, size, _ in self._parsed.values()))
        metadata = await asyncio.to_thread(assembled, [entries for _, _, entries in self._parsed.values()])
        if states:
            metadata = replace(metadata, epochs=await self._epochs(metadata))
        return TreeReading(offset, metadata, self._slices.reads)

    async def _epochs(self, metadata: ClusterMetadata) -> Mapping[tuple[str, int], int]:
        found: dict[tuple[str, int], int] = {}
        for part in slices([(name, index) for name, topic in metadata.topics.items() for index in topic.partitions]):
            keys = {state_path(*key): key for key in part}
            versions = await self._slices.nodes([*keys], lambda _, stat: stat.version)
            found |= {keys[path]: version for path, version in versions}
        return found

    async def _offset(self) -> int:
        found = await self._slices.nodes([MIGRATION], lambda *node: node)
        if not found:
            return -1
        data, stat = found[0][1]
        try:
            return znodes.migration(data, stat.version, stat.mtime).offset
        except ValueError as error:
            raise Refused(f"{MIGRATION} in ZooKeeper is not what Kafka writes: {error}") from error

    async def _take(self, paths: Sequence[str]) -> list[str]:
        """Parse what was written since it was read last; the paths of nodes that have children of their own."""
        parents: list[str] = []
        for part in slices(paths):
            parents += await self._slices.ask(self._parse, part)
        return [path for path in parents if path.startswith("/config/users/")]

    def _parse(self, deadline: float, paths: Sequence[str]) -> list[str]:
        missing, parents = set(paths), []
        for path, (data, stat) in self._read(deadline, paths):
            missing.discard(path)
            if stat.numChildren:
                parents.append(path)
            known = self._parsed.get(path)
            if known is None or known[0] != stat.mzxid:
                size = len(data or b"")
                self._room.resize(self._room.size + size, path)
                self._parsed[path] = stat.mzxid, size, self._parser.entries(path, data)
        for path in missing:                                    # gone since it was listed
            self._parsed.pop(path, None)
        return parents
