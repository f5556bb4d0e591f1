"""Which brokers are asked for all partitions: each of them where that is not too much, else some that others stand for."""

from collections.abc import Collection, Mapping

from switchover.answers.clock import Clock
from switchover.answers.observed import Known, Observed
from switchover.cluster.observe.each_node import ask_each
from switchover.kafka.node import BrokerView, WholeView
from switchover.kafka.ports import KafkaNodes
from switchover.network.addresses import Address

LEAST = 3
"""Brokers that are asked for all partitions, however many there are: one may have a view of its own that is old."""
MOST_PARTITIONS = 600_000
"""What all brokers together tell in a pass, but for those (docs/measurements.md#the-largest-cluster)."""


class Views:
    """Keeps from pass to pass how many partitions there are."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._partitions = MOST_PARTITIONS

    async def look(self, client: KafkaNodes, brokers: Mapping[int, Address | None],
                   moving: Collection[int]) -> dict[int, Observed[BrokerView]]:
        """What each broker tells. Those that are `moving` stand for nobody. Never raises."""
        asked = whole(brokers, moving, self._partitions)

        async def ask(address: Address, broker_id: int) -> BrokerView:
            return await (client.metadata if broker_id in asked else client.known_brokers)(address)

        found = await ask_each(brokers, ask, self._clock)
        told = [view.value.size for view in found.values()
                if isinstance(view, Known) and isinstance(view.value, WholeView)]
        self._partitions = max(told, default=self._partitions)
        return found


def whole(brokers: Collection[int], moving: Collection[int], partitions: int) -> frozenset[int]:
    """Those of the brokers that are asked for all partitions, of which there are so many."""
    count = max(LEAST, MOST_PARTITIONS // max(1, partitions))
    if count >= len(brokers):
        return frozenset(brokers)
    others = sorted({*brokers} - {*moving}) or sorted(brokers)
    return frozenset(others[place * len(others) // count] for place in range(count))
