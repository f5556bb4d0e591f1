"""Reads the consumer groups that old consumers keep below `/consumers` (zkcc.md 1)."""

from collections import defaultdict
from collections.abc import Iterable
from functools import partial

from switchover.adapters.znode_slices import Call, List, Read, Slices
from switchover.core.zookeeper_groups import IdleGroups, ZooKeeperGroup

CONSUMERS = "/consumers"
READS = 20_000              # nodes of offsets in one sweep: about ten seconds
TOGETHER = 10               # groups whose offsets are read together: by so many a sweep may go beyond READS


class GroupReader:
    """Takes what `Slices` take."""

    def __init__(self, call: Call, read: Read, list_children: List) -> None:
        self._slices = partial(Slices, call, read, list_children)

    async def live(self) -> dict[str, ZooKeeperGroup]:
        """The groups with members: one read for each group there ever was, and two more for each of these."""
        slices = self._slices()
        members = await _members(slices, await _groups(slices), "ids")
        enabled = await _members(slices, members, "migration/ids")
        modes = {_group(path): (data or b"").decode(errors="replace") for path, (data, _) in
                 await slices.nodes([f"{CONSUMERS}/{name}/migration/mode" for name in members])}
        return {name: ZooKeeperGroup(found, enabled.get(name, frozenset()), modes.get(name, ""))
                for name, found in members.items()}

    async def idle(self) -> IdleGroups:
        """The groups without members, by their newest commit. Ends with the group whose reads go beyond READS."""
        slices = self._slices()
        groups = await _groups(slices)
        members = await _members(slices, groups, "ids")
        left = [name for name in groups if name not in members]
        commits: dict[str, float] = {}
        slices.reads = 0
        while left and slices.reads < READS:
            part, left = left[:TOGETHER], left[TOGETHER:]
            topics = await slices.children([f"{CONSUMERS}/{name}/offsets" for name in part])
            for path, (_, stat) in await slices.nodes(await slices.children(topics)):
                commits[_group(path)] = max(commits.get(_group(path), 0.0), stat.mtime / 1000)
        return IdleGroups(commits, len(left))


async def _groups(slices: Slices) -> list[str]:
    return sorted(_group(path) for path in await slices.children([CONSUMERS]))


async def _members(slices: Slices, groups: Iterable[str], below: str) -> dict[str, frozenset[str]]:
    """Names of the nodes in each group's directory, of the groups that have some."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in await slices.children([f"{CONSUMERS}/{name}/{below}" for name in groups]):
        found[_group(path)].add(path.rpartition("/")[2])
    return {name: frozenset(members) for name, members in found.items()}


def _group(path: str) -> str:
    return path.split("/")[2]
