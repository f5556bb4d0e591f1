"""One Kafka cluster asked by many migrations: what is the same for all of them is asked once.

Describing every group of a cluster for each of its migrations would be their number squared. What each wants to know of its
own group is asked together by the adapter below (batching.py).
"""

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from switchover.answers.ask import Answers
from switchover.kafka.group import BrokerGroups, Group, OffsetsTopic, Readiness
from switchover.kafka.ports import Cluster, Groups
from switchover.lag.window import Asked, GroupOffsets, Sweep
from switchover.network.addresses import Address

T = TypeVar("T")
CLUSTER_SECONDS, LOAD_SECONDS = 10.0, 25.0
"""How old an answer may be: less than who asks keeps it (groups/observe), so that an age is never more than doubled."""
SLOW_SECONDS = 60.0
"""How old one may be while a new one is slow to come. Beyond that it is waited for, and Unknown where it does not come."""


class SharedOffsets:
    """`lag.window.GroupOffsets`, of which no migration closes what another one uses."""

    def __init__(self, offsets: GroupOffsets) -> None:
        self._offsets = offsets

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        return await self._offsets.sweep(asked)

    async def close(self) -> None:
        """Connections that nobody uses any more close by themselves."""


class SharedGroups:
    """`ports.Groups`, of which no migration closes what another one uses."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._answers = Answers()

    async def cluster(self) -> Cluster:
        return await self._asked("cluster", self._groups.cluster, CLUSTER_SECONDS)

    async def broker(self, broker: Address, broker_id: int) -> BrokerGroups:
        return await self._asked((broker, broker_id), lambda: self._groups.broker(broker, broker_id), CLUSTER_SECONDS)

    async def coordinated(self) -> Mapping[int, int]:
        return await self._asked("coordinated", self._groups.coordinated, LOAD_SECONDS)

    async def offsets_topic(self) -> OffsetsTopic:
        return await self._asked("topic", self._groups.offsets_topic, CLUSTER_SECONDS)

    async def _asked(self, key: Hashable, ask: Callable[[], Awaitable[T]], seconds: float) -> T:
        return (await self._answers.get(key, ask, seconds, at_most=SLOW_SECONDS)).value

    async def describe(self, group: str) -> Group:
        return await self._groups.describe(group)

    async def readiness(self, group: str, topics: Iterable[str]) -> Readiness:
        return await self._groups.readiness(group, topics)

    async def all_support(self, group: str, strategy: str) -> bool:
        return await self._groups.all_support(group, strategy)

    async def coordinators(self, group: str) -> frozenset[int]:
        return await self._groups.coordinators(group)

    async def partitions(self, topics: Iterable[str]) -> Mapping[str, int]:
        return await self._groups.partitions(topics)

    async def close(self) -> None:
        """Connections that nobody uses any more close by themselves."""
