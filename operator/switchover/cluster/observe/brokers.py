"""Readings of every broker: how each is asked, its view of the cluster, who has caught up, and whether it forwards."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from switchover.answers.ask import READ_SECONDS, known
from switchover.answers.clock import Clock
from switchover.answers.observed import NOT_ASKED, Known, Observed, Unknown
from switchover.cluster.facts import CaughtUp, whole_of
from switchover.kafka.node import BrokerView, NodeAnswer, Partition, WholeView
from switchover.kafka.ports import KafkaNodes
from switchover.network.addresses import Address
from switchover.shared.partition import TopicPartition

T = TypeVar("T")


async def ask_each(nodes: Mapping[int, Address | None], ask: Callable[[Address, int], Awaitable[T]],
                   clock: Clock) -> dict[int, Observed[T]]:
    """By node.id, concurrently; None is an address that is not known. Never raises."""
    async def one(node_id: int, address: Address | None) -> Observed[T]:
        if address is None:
            return Unknown(f"no broker advertises the address of broker {node_id}")
        answer = await known(ask(address, node_id), READ_SECONDS, clock)
        if isinstance(answer, Known):
            return answer
        at = "" if str(address) in answer.why else f" at {address}"
        return replace(answer, why=f"node {node_id}{at}: {answer.why}")

    found = await asyncio.gather(*(one(node_id, address) for node_id, address in nodes.items()))
    return dict(zip(nodes, found, strict=True))


# --- views ----------------------------------------------------------------------------------------------------------------
# Which brokers are asked for all partitions: each of them where that is not too much, else some of them.

LEAST = 3
"""Brokers that are asked for all partitions, however many there are: one may have a view of its own that is old."""
MOST_PARTITIONS = 600_000
"""What all brokers together answer in a pass, but for those (docs/measurements.md#the-largest-cluster)."""


class Views:
    """Remembers from pass to pass how many partitions there are."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._partitions = MOST_PARTITIONS

    async def look(self, client: KafkaNodes, brokers: Mapping[int, Address | None],
                   moving: Collection[int]) -> dict[int, Observed[BrokerView]]:
        """What each broker answers; one that is `moving` is asked for all partitions only where all are. Never raises."""
        asked = whole(brokers, moving, self._partitions)

        async def ask(address: Address, broker_id: int) -> BrokerView:
            return await (client.metadata if broker_id in asked else client.known_brokers)(address)

        found = await ask_each(brokers, ask, self._clock)
        sizes = [view.value.size for view in found.values()
                 if isinstance(view, Known) and isinstance(view.value, WholeView)]
        self._partitions = max(sizes, default=self._partitions)
        return found


def whole(brokers: Collection[int], moving: Collection[int], partitions: int) -> frozenset[int]:
    """Those of the brokers that are asked for all partitions, of which there are so many."""
    count = max(LEAST, MOST_PARTITIONS // max(1, partitions))
    if count >= len(brokers):
        return frozenset(brokers)
    others = sorted({*brokers} - {*moving}) or sorted(brokers)
    return frozenset(others[place * len(others) // count] for place in range(count))


# --- caught up ------------------------------------------------------------------------------------------------------------
# Which replicas out of sync have all that their leader has, asked of both while there are any.

PARTITIONS = 100
"""Of each leader that are asked about: a leader that takes nobody back does so with none of them."""


class CaughtUpWatch:
    """Remembers from look to look where leaders' logs ended."""

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
        in sync. What a replica has is compared with what its leader had one look before, since records arrive meanwhile."""
        lagging = _out_of_sync(views)
        asked: dict[int, set[TopicPartition]] = defaultdict(set)
        for leader, partitions in lagging.items():
            for each in partitions:
                for broker_id in {leader, *each.replicas} - {*each.isr} | {leader}:
                    asked[broker_id].add(TopicPartition(each.topic, each.index))
        ends = await self._ends_at(client, {broker_id: brokers.get(broker_id) for broker_id in asked}, asked)
        now, seen = self._clock.now(), {}
        for leader, partitions in lagging.items():
            for each in partitions:
                named = TopicPartition(each.topic, each.index)
                before = self._ends.get((leader, named))
                for follower in sorted({*each.replicas} - {*each.isr}):
                    if before is not None and ends.get((follower, named), -1) >= before:
                        seen[leader, follower, named] = self._seen.get((leader, follower, named), now)
        self._seen = seen
        self._ends = {key: end for key, end in ends.items() if key[0] in lagging}
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


# --- forwarding -----------------------------------------------------------------------------------------------------------
# Which brokers forward requests to the controller: each is asked what only the controller can answer.

EVERY_SECONDS = 10.0
"""A broker that forwards nothing holds each question in its memory until it ends."""


class ForwardingWatch:
    """Remembers since when each broker has not."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: Known[Mapping[int, float]] | None = None

    def forget(self) -> Observed[Mapping[int, float]]:
        """Nobody asks any more."""
        self._last = None
        return NOT_ASKED

    async def look(self, client: KafkaNodes, brokers: Mapping[int, Address | None],
                   answers: Mapping[int, Observed[NodeAnswer]]) -> Observed[Mapping[int, float]]:
        """Broker -> since when, of those that answer at all. An answer that refuses us has come from the controller as
        well."""
        now, last = self._clock.now(), self._last
        if last is not None and now - last.at < EVERY_SECONDS:
            return last
        there = {broker_id: address for broker_id, address in brokers.items() if isinstance(answers.get(broker_id), Known)}
        forwarded = await ask_each(there, lambda address, _: client.ask_controller(address), self._clock)
        since = last.value if last is not None else {}
        self._last = Known({broker_id: since.get(broker_id, now) for broker_id, answer in forwarded.items()
                            if not isinstance(answer, Known) and not answer.refused}, now)
        return self._last
