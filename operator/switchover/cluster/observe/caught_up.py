"""Which replicas out of sync have all that their leader has, asked of both while there are any."""

from collections import defaultdict
from collections.abc import Mapping

from switchover.answers.clock import Clock
from switchover.answers.observed import NOT_ASKED, Known, Observed
from switchover.cluster.facts import CaughtUp, whole_of
from switchover.cluster.observe.each_node import ask_each
from switchover.kafka.node import BrokerView, Partition
from switchover.kafka.ports import KafkaNodes
from switchover.network.addresses import Address
from switchover.shared.partition import TopicPartition

PARTITIONS = 100
"""Of each leader that are asked about: a leader that takes nobody back does so with none of them."""


class CaughtUpWatch:
    """Keeps from look to look where leaders' logs ended."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends: Mapping[tuple[int, TopicPartition], int] = {}
        self._seen: Mapping[tuple[int, int, TopicPartition], float] = {}

    def forget(self) -> Observed[tuple[CaughtUp, ...]]:
        """Nobody asks any more."""
        self._ends, self._seen = {}, {}
        return NOT_ASKED

    async def look(self, client: KafkaNodes, brokers: Mapping[int, Address | None],
                   views: Mapping[int, Observed[BrokerView]]) -> Observed[tuple[CaughtUp, ...]]:
        """As each leader itself sees its partitions, where it is asked: a broker that has just started believes that all is
        in sync. What a replica has is compared with what its leader had a look ago, since records come meanwhile."""
        lagging = _out_of_sync(views)
        asked: dict[int, set[TopicPartition]] = defaultdict(set)
        for leader, partitions in lagging.items():
            for each in partitions:
                for broker_id in {leader, *each.replicas} - {*each.isr} | {leader}:
                    asked[broker_id].add(TopicPartition(each.topic, each.index))
        told = await self._ends_at(client, {broker_id: brokers.get(broker_id) for broker_id in asked}, asked)
        now, seen = self._clock.now(), {}
        for leader, partitions in lagging.items():
            for each in partitions:
                named = TopicPartition(each.topic, each.index)
                before = self._ends.get((leader, named))
                for follower in sorted({*each.replicas} - {*each.isr}):
                    if before is not None and told.get((follower, named), -1) >= before:
                        seen[leader, follower, named] = self._seen.get((leader, follower, named), now)
        self._seen = seen
        self._ends = {key: end for key, end in told.items() if key[0] in lagging}
        return Known(tuple(
            CaughtUp(*named, leader, follower, since) for (leader, follower, named), since in seen.items()), now)

    async def _ends_at(self, client: KafkaNodes, brokers: Mapping[int, Address | None],
                       asked: Mapping[int, set[TopicPartition]]) -> dict[tuple[int, TopicPartition], int]:
        answers = await ask_each(brokers, lambda address, broker_id: client.log_ends(address, sorted(asked[broker_id])),
                                 self._clock)
        return {(broker_id, each): end for broker_id, answer in answers.items() if isinstance(answer, Known)
                for each, end in answer.value.items()}


def _out_of_sync(views: Mapping[int, Observed[BrokerView]]) -> dict[int, list[Partition]]:
    """The first partitions of each leader of which it calls a replica out of sync; others do where it was not asked for
    partitions."""
    found: dict[int, dict[tuple[str, int], Partition]] = defaultdict(dict)
    whole = whole_of(views)
    by_others = {broker_id for broker_id, view in views.items() if isinstance(view, Known)} - whole.keys()
    for broker_id, view in whole.items():
        for each in view.lagging:
            if each.leader == broker_id or each.leader in by_others:
                found[each.leader].setdefault((each.topic, each.index), each)
    return {leader: [each for _, each in sorted(partitions.items())[:PARTITIONS]] for leader, partitions in found.items()}
