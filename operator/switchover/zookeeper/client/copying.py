"""Reads the tree that a rehearsal works on out of ZooKeeper, and writes it into a replica's (docs/rehearsal.md)."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from kazoo.exceptions import (
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.protocol.serialization import Create
from kazoo.security import OPEN_ACL_UNSAFE

from switchover.answers import memory
from switchover.answers.errors import Refused
from switchover.network.credentials import Access
from switchover.zookeeper.client import znodes
from switchover.zookeeper.client.session import ZooKeeperSession, left
from switchover.zookeeper.client.znode_slices import slices
from switchover.zookeeper.client.zookeeper import KazooZooKeeper
from switchover.zookeeper.ports import ReplicaNodes
from switchover.zookeeper.tree import COPIED, Tree, below, to_create

CREATES, BYTES = 400, 700_000
"""Of one transaction, which must fit into jute.maxbuffer's megabyte."""
NODE_BYTES = 600
"""Memory for each node of a tree that is read, masked and packed (docs/measurements.md), or its bytes twice."""

Found = Mapping[str, bytes | None]


class KazooTree(ZooKeeperSession):
    """All nodes of Kafka's metadata, read slice by slice: ZooKeeper has no more than one slice of requests before it.

    A tree for which this process has no room is refused as soon as so many nodes are known of.
    """

    async def export(self, chroot: str = "") -> Tree:
        """Every node of COPIED that may be read. Nothing is written.

        What goes while it is read is counted; below a node that may not be read nothing is asked for. The session ends with
        it: an open one would knock at a ZooKeeper that was stopped for good, until the network answers nobody any more.
        """
        try:
            with memory.ANSWERS.at_once(f"ZooKeeper at {self._named}", 0) as room:
                return await self._export(chroot, room)
        finally:
            await self._call(lambda _: self._disconnect())

    async def _export(self, chroot: str, room: memory.Held) -> Tree:
        nodes: dict[str, bytes | None] = {}
        denied: list[str] = []
        gone = size = 0
        level: Sequence[str] = COPIED
        while level:
            listed: list[str] = []
            following: list[str] = []
            for part in slices(level):
                found, hidden = await self._call(partial(self._data, chroot=chroot, paths=part))
                nodes |= found
                size += sum(max(NODE_BYTES, 2 * len(data or b"")) for data in found.values())
                self._make_way(room, size, len(nodes))
                denied += hidden
                gone += len(part) - len(found) - len(hidden)
                for path, data in found.items():
                    known = below(path, data)
                    following += known or ()
                    if known is None:
                        listed.append(path)
            for part in slices(listed):
                children, hidden = await self._call(partial(self._listed, chroot=chroot, paths=part))
                following += children
                denied += hidden
            level = following
            self._make_way(room, size + NODE_BYTES * len(level), len(nodes) + len(level))
        return Tree(nodes, tuple(sorted(denied)), gone)

    def _make_way(self, room: memory.Held, size: int, nodes: int) -> None:
        try:
            room.resize(size)
        except Refused:
            needed = memory.limit_for(memory.ANSWERS.held - room.size + size)
            raise Refused(
                f"ZooKeeper at {self._named} has {nodes:,} nodes of metadata or more, for which this operator has too "
                f"little memory; raise resources.limits.memory of its chart to {needed} or more, or set "
                "spec.rehearsal.enabled to false") from None

    async def listens(self) -> bool:
        """Whether a server takes connections yet: a session would wait for that with all of its patience."""
        for server in self._servers:
            try:
                _, writer = await asyncio.open_connection(server.host, server.port)
            except OSError:
                continue
            writer.close()
            return True
        return False

    async def load(self, chroot: str, nodes: Mapping[str, bytes | None]) -> None:
        """Create `chroot`, which must not exist, and all nodes below it. Raises Refused where it does exist."""
        if await self._call(partial(self._exists, path=chroot)):
            raise Refused(f"ZooKeeper at {self._named} has {chroot} already: it is no empty replica")
        todo = [(chroot, None), *((f"{chroot}{path}", data) for path, data in to_create(nodes))]
        start = 0
        while start < len(todo):
            size = count = 0
            while start + count < len(todo) and count < CREATES:
                path, data = todo[start + count]
                size += len(data or b"") + len(path)
                if count and size > BYTES:
                    break
                count += 1
            await self._call(partial(self._create, nodes=todo[start:start + count]))
            start += count

    async def replica_nodes(self, chroot: str) -> ReplicaNodes:
        """How far a controller has got."""
        found: ReplicaNodes = await self._call(partial(self._state, chroot=chroot))
        return found

    async def delete(self, chroot: str, path: str, version: int, controller_epoch: int) -> None:
        """By the code that a rollback uses."""
        zookeeper = KazooZooKeeper(Access(f"{self._named}{chroot}"), seconds=self._seconds)
        try:
            await zookeeper.delete(path, version, controller_epoch)
        finally:
            await zookeeper.close()

    # --- below: on the one thread ---------------------------------------------------------------------------------

    def _data(self, deadline: float, chroot: str, paths: Sequence[str]) -> tuple[Found, list[str]]:
        client = self._connected(deadline)
        asked = [(path, client.get_async(f"{chroot}{path}")) for path in paths]
        found: dict[str, bytes | None] = {}
        return found, self._taken(asked, lambda path, answer: found.__setitem__(path, answer[0]))

    def _listed(self, deadline: float, chroot: str, paths: Sequence[str]) -> tuple[list[str], list[str]]:
        client = self._connected(deadline)
        asked = [(path, client.get_children_async(f"{chroot}{path}")) for path in paths]
        found: list[str] = []
        return found, self._taken(asked, lambda path, names: found.extend(f"{path}/{name}" for name in sorted(names)))

    def _taken(self, asked: Sequence[tuple[str, Any]], take: Callable[[str, Any], None]) -> list[str]:
        """Take each answer; the paths of those that may not be read. Each has the time of a call."""
        denied = []
        for path, result in asked:
            try:
                take(path, result.get(timeout=self._seconds))
            except NoNodeError:
                continue
            except NoAuthError:
                denied.append(path)
        return denied

    def _exists(self, deadline: float, path: str) -> bool:
        return self._answer(deadline, path, self._connected(deadline).exists_async(path)) is not None

    def _create(self, deadline: float, nodes: Sequence[tuple[str, bytes | None]]) -> None:
        transaction = self._connected(deadline).transaction()
        for path, data in nodes:
            # Its own `create` refuses a node without data.
            transaction._add(Create(path, data, OPEN_ACL_UNSAFE, 0), None)
        for result in transaction.commit_async().get(timeout=left(deadline)):
            if isinstance(result, NodeExistsError):         # it was done, and the answer lost: nobody else writes there
                return
            if isinstance(result, KazooException) and not isinstance(result, (RolledBackError, RuntimeInconsistency)):
                raise result

    def _state(self, deadline: float, chroot: str) -> ReplicaNodes:
        client = self._connected(deadline)
        epoch, controller, migration = (
            self._answer(deadline, path, client.get_async(f"{chroot}{path}"))
            for path in ("/controller_epoch", "/controller", "/migration"))
        try:
            return ReplicaNodes(
                znodes.integer(epoch[0]) if epoch else None,
                controller and znodes.controller(controller[0], controller[1].ephemeralOwner, controller[1].version),
                migration and znodes.migration(migration[0], migration[1].version, migration[1].mtime))
        except ValueError as error:
            raise Refused(f"the replica's controller wrote what Kafka does not write: {error}") from error
