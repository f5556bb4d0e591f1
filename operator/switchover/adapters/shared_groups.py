"""One Kafka cluster asked by many migrations (`ports.Groups`): what is the same for all of them is asked once.

Describing every group of a cluster for each of its migrations would be their number squared.
"""

from collections.abc import Iterable, Mapping

from switchover.ask import Answers
from switchover.core.groups.facts import BrokerGroups, Group, OffsetsTopic, Readiness
from switchover.core.kraft.facts import Address
from switchover.ports import Cluster, Groups

CLUSTER_SECONDS, LOAD_SECONDS = 10.0, 25.0
"""How old an answer may be: less than who asks keeps it (observe_group.py), so that an age is never more than doubled."""


class SharedGroups:
    """`ports.Groups`, of which no migration closes what another one uses."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._answers = Answers()

    async def cluster(self) -> Cluster:
        return (await self._answers.get("cluster", self._groups.cluster, CLUSTER_SECONDS)).value

    async def broker(self, broker: Address, broker_id: int) -> BrokerGroups:
        return (await self._answers.get(
            (broker, broker_id), lambda: self._groups.broker(broker, broker_id), CLUSTER_SECONDS)).value

    async def coordinated(self) -> Mapping[int, int]:
        return (await self._answers.get("coordinated", self._groups.coordinated, LOAD_SECONDS)).value

    async def offsets_topic(self) -> OffsetsTopic:
        return (await self._answers.get("topic", self._groups.offsets_topic, CLUSTER_SECONDS)).value

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
        """Nothing is open between two questions."""
