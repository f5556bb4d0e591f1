"""Topics, pending work and partitions' states, read slice by slice: there is a node for each."""

from collections.abc import AsyncIterator, Mapping, Sequence

from switchover.answers.errors import Refused
from switchover.answers.memory import Held
from switchover.metadata.tree import state_path
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


Listed = Mapping[str, tuple[tuple[str, int], tuple[int, ...]]]
"""By the path of its state, a partition and its replicas."""


class StateReader:
    """Reads by way of `Slices`, which are given the same."""

    def __init__(self, call: Call, read: Read, list_children: List) -> None:
        self._read = read
        self._slices = Slices(call, read, list_children)

    async def largest_epoch(self) -> int:
        """0 where there is no state. Refused names a node that is malformed."""
        largest = 0
        async for listed in self._listed(malformed=False):
            for part in slices([*listed]):
                largest = max(largest, await self._slices.ask(self._epoch, part))
        return largest

    async def missing(self) -> Mapping[tuple[str, int], tuple[int, ...]]:
        """The partitions of topics that can be read, and that have no state."""
        found: dict[tuple[str, int], tuple[int, ...]] = {}
        async for listed in self._listed(malformed=True):
            there = {path for path, _ in await self._slices.nodes([*listed], lambda *_: None)}
            found |= dict(each for path, each in listed.items() if path not in there)
        return found

    async def _listed(self, *, malformed: bool) -> AsyncIterator[Listed]:
        """The partitions, by a slice of topics; those of a `malformed` one may be left out."""
        for part in slices(await self._slices.children([TOPICS])):
            yield await self._slices.ask(
                lambda deadline, paths: self._assigned(deadline, paths, malformed=malformed), part)

    def _assigned(self, deadline: float, paths: Sequence[str], *, malformed: bool) -> Listed:
        found: dict[str, tuple[tuple[str, int], tuple[int, ...]]] = {}
        for path, (data, _) in self._read(deadline, paths):
            name = path.rpartition("/")[2]
            try:
                topic, _ = znodes.topic(data)
            except ValueError as error:
                if malformed:
                    continue
                raise _not_kafkas(path, error) from error
            found |= {state_path(name, index): ((name, index), replicas) for index, replicas in topic.assignment.items()}
        return found

    def _epoch(self, deadline: float, paths: Sequence[str]) -> int:
        largest = 0
        for path, (data, _) in self._read(deadline, paths):
            try:
                largest = max(largest, znodes.partition_epoch(data))
            except ValueError as error:
                raise _not_kafkas(path, error) from error
        return largest


def _not_kafkas(path: str, error: ValueError) -> Refused:
    return Refused(f"{path} in ZooKeeper is not what Kafka writes: {error}")
