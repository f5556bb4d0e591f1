"""The offsets of a group that may commit to ZooKeeper, to Kafka or to both: where a member that reads both goes on."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from switchover.answers.clock import Clock
from switchover.groups.facts import Stored, StoreSample
from switchover.lag.samples import NONE
from switchover.lag.window import Asked, GroupOffsets, Offsets, Sweep
from switchover.shared.partition import TopicPartition
from switchover.zookeeper.ports import ZooKeeperGroups


class BothStores:
    """`GroupOffsets` of one group in two stores. `last` is what the last sweep found in each."""

    def __init__(self, kafka: GroupOffsets, zookeeper: ZooKeeperGroups, clock: Clock) -> None:
        self._kafka = kafka
        self._zookeeper = zookeeper
        self._clock = clock
        self.last: StoreSample | None = None

    async def sweep(self, asked: Mapping[str, Asked]) -> Sweep:
        """A sweep of the one group, with the greater one of both commits, but none beyond the end that was read before."""
        (group,) = asked
        at = self._clock.now()
        sweep = await self._kafka.sweep(asked)
        committed = await self._zookeeper.offsets(group)
        reading = sweep.readings[group]
        self.last = StoreSample(at, {
            each: Stored(committed.get(each), None if told.committed == NONE else told.committed, told.start, told.end)
            for each, told in reading.offsets.items()})
        return replace(sweep, readings={group: replace(reading, offsets=dict(_merged(reading.offsets, committed)))})

    async def close(self) -> None:
        """Both are closed by whoever opened them."""


def _merged(kafka: Mapping[TopicPartition, Offsets],
            zookeeper: Mapping[TopicPartition, int]) -> Iterator[tuple[TopicPartition, Offsets]]:
    for each, told in kafka.items():
        yield each, told._replace(committed=max(told.committed, min(zookeeper.get(each, NONE), told.end)))
