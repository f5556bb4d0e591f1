"""Reads every node below `/consumers`, where old consumers keep their groups (docs/facts/coordination.md#znodes), for
the pipeline's captures."""

from collections.abc import Sequence
from typing import Any

from switchover.coordination.layout import CONSUMERS
from switchover.zookeeper.client.session import ZooKeeperSession
from switchover.zookeeper.client.znode_slices import Slices

Stated = tuple[str, bytes | None, Any]
"""A path without the chroot, its data, and kazoo's ZnodeStat."""


class ConsumerTree(ZooKeeperSession):
    """Read only. Raises Refused and Unreachable."""

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
