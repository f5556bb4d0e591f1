"""All topics and the work that is pending, slice by slice: there is a node for each topic."""

from collections.abc import Sequence

from switchover.answers.memory import Held
from switchover.zookeeper.client import znodes
from switchover.zookeeper.client.znode_slices import Call, List, Read, Slices, slices
from switchover.zookeeper.nodes import ZooKeeperTopic, ZooKeeperTopics

TOPICS, DELETES, REASSIGNED = "/brokers/topics", "/admin/delete_topics", "/admin/reassign_partitions"

Parsed = list[tuple[str, ZooKeeperTopic | None, bool, str]]
"""By path: the topic, whether it is being moved, and why it cannot be read."""


class TopicReader:
    """Reads by way of `Slices`, which are given the same."""

    def __init__(self, call: Call, read: Read, list_children: List, room: Held) -> None:
        self._read = read
        self._room = room                                       # for the newest answer
        self._size = 0
        self._slices = Slices(call, read, list_children)

    def close(self) -> None:
        """The answer is not needed any more."""
        self._room.give_back()

    async def topics(self) -> ZooKeeperTopics:
        """Malformed nodes are named in the answer, not raised."""
        self._size = 0
        paths = [*sorted(await self._slices.children([TOPICS])), REASSIGNED]
        deletes = await self._slices.children([DELETES])
        found = [each for part in slices(paths) for each in await self._slices.ask(self._parse, part)]
        self._room.resize(self._size, TOPICS)
        return ZooKeeperTopics(
            {_name(path): topic for path, topic, _, _ in found if topic is not None},
            tuple(sorted(map(_name, deletes))), any(moving for _, _, moving, _ in found),
            tuple(f"{path}: {why}" for path, _, _, why in found if why))

    def _parse(self, deadline: float, paths: Sequence[str]) -> Parsed:
        found: Parsed = []
        for path, (data, _) in self._read(deadline, paths):
            self._size += len(data or b"")
            try:
                found.append((path, *((None, znodes.reassigning(data)) if path == REASSIGNED else znodes.topic(data)), ""))
            except ValueError as error:
                found.append((path, None, False, str(error)))
        if self._size > self._room.size:
            self._room.resize(self._size, TOPICS)
        return found


def _name(path: str) -> str:
    return path.rpartition("/")[2]
