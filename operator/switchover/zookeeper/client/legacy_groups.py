"""Reads what legacy consumers store below `/consumers` (docs/facts/coordination.md#znodes): groups, or every node."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

from switchover.coordination.layout import CONSUMERS, Layout
from switchover.coordination.mode import parsed
from switchover.zookeeper.client.session import ZooKeeperSession
from switchover.zookeeper.client.znode_slices import Call, List, Read, Slices
from switchover.zookeeper.nodes import IdleGroups, ZooKeeperGroup

READS = 20_000              # nodes of offsets in one sweep: about ten seconds
TOGETHER = 10               # groups whose offsets are read together: by so many a sweep may go beyond READS


class GroupReader:
    """Takes what `Slices` take."""

    def __init__(self, call: Call, read: Read, list_children: List) -> None:
        self._slices = partial(Slices, call, read, list_children)

    async def live(self) -> dict[str, ZooKeeperGroup]:
        """The groups with members: one read for each group there ever was, and two more for each of these."""
        slices = self._slices()
        members = await _children(slices, [group.ids for group in await _groups(slices)])
        groups = [Layout(name) for name in members]
        enabled = await _children(slices, [group.migration_ids for group in groups])
        paths = [group.mode for group in groups]
        modes = {_group(path): mode for path, mode in await slices.nodes(paths, lambda data, _: parsed(data))}
        return {name: ZooKeeperGroup(found, enabled.get(name, frozenset()), modes.get(name))
                for name, found in members.items()}

    async def idle(self) -> IdleGroups:
        """The groups without members, by their newest commit. Ends with the group whose reads go beyond READS."""
        slices = self._slices()
        groups = await _groups(slices)
        members = await _children(slices, [group.ids for group in groups])
        left = [group for group in groups if group.group not in members]
        commits: dict[str, float] = {}
        slices.reads = 0
        while left and slices.reads < READS:
            part, left = left[:TOGETHER], left[TOGETHER:]
            topics = await slices.children([group.offsets for group in part])
            for path, mtime in await slices.nodes(await slices.children(topics), lambda _, stat: stat.mtime):
                commits[_group(path)] = max(commits.get(_group(path), 0.0), mtime / 1000)
        return IdleGroups(commits, len(left))


async def _groups(slices: Slices) -> list[Layout]:
    return [Layout(name) for name in sorted(_group(path) for path in await slices.children([CONSUMERS]))]


async def _children(slices: Slices, directories: Sequence[str]) -> dict[str, frozenset[str]]:
    """Names of the nodes in a directory of each group, of the groups that have some."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in await slices.children(directories):
        found[_group(path)].add(path.rpartition("/")[2])
    return {name: frozenset(children) for name, children in found.items()}


def _group(path: str) -> str:
    return path.split("/")[2]


Stated = tuple[str, bytes | None, Any]
"""A path without the chroot, its data, and kazoo's ZnodeStat."""


class ConsumerTree(ZooKeeperSession):
    """Every node below `/consumers`, for the pipeline's captures. Read only. Raises Refused and Unreachable."""

    async def read(self) -> Sequence[Stated]:
        """Level by level, in slices, so that ZooKeeper answers others in between. A node that goes meanwhile is left out."""
        slices = Slices(self._call, self._read, self._children)
        found: list[Stated] = []
        level = await slices.children([CONSUMERS])
        while level:
            nodes = await slices.nodes(level, lambda *node: node)
            found += [(path, data, stat) for path, (data, stat) in nodes]
            level = await slices.children([path for path, (_, stat) in nodes if stat.numChildren])
        return found
