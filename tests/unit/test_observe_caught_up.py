"""Which replicas out of sync are seen to have caught up: their leader's end of a look before, and their own of this one."""

from collections.abc import Iterable, Mapping
from typing import Any

from fakes.views import whole_view
from switchover.answers.errors import Unreachable
from switchover.answers.observed import Known, Observed, Unknown
from switchover.cluster.facts import CaughtUp
from switchover.cluster.observe.brokers import PARTITIONS, CaughtUpWatch
from switchover.kafka.node import BrokerView, Partition
from switchover.network.addresses import Address
from switchover.shared.partition import TopicPartition

ADDRESSES = {number: Address(f"kafka-{number}", 9092) for number in (1, 2, 3)}
IN_SYNC = Partition("orders", 0, 1, (1, 2, 3), (1, 2, 3))
ONE_OUT = Partition("orders", 0, 1, (1, 2, 3), (1, 3))


class World:
    """Three brokers; `ends` is where the log of orders-0 ends on each, None for one that does not answer."""

    def __init__(self) -> None:
        self.ends: dict[int, int | None] = {1: 100, 2: 0, 3: 100}
        self.asked: list[tuple[str, int]] = []
        self.at = 50.0
        client: Any = self
        self.client, self.watch = client, CaughtUpWatch(self)

    def now(self) -> float:
        return self.at

    async def log_ends(self, broker: Address, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        named = list(partitions)
        self.asked.append((broker.host, len(named)))
        end = self.ends[int(broker.host[-1])]
        if end is None:
            raise Unreachable("no answer")
        return dict.fromkeys(named, end)

    async def look(self, partitions: tuple[Partition, ...], *others: tuple[int, Observed[BrokerView]]) -> Any:
        whole = whole_view("cluster", 1, ADDRESSES, partitions)
        views: dict[int, Observed[BrokerView]] = {number: Known(whole, self.at) for number in ADDRESSES}
        self.at += 1
        return await self.watch.look(self.client, ADDRESSES, views | dict(others))


def found(since: float, follower: int = 2) -> tuple[CaughtUp, ...]:
    return (CaughtUp("orders", 0, 1, follower, since),)


async def test_nobody_is_asked_while_all_is_in_sync() -> None:
    world = World()
    assert await world.look((IN_SYNC,)) == Known((), 51.0)
    assert world.asked == []


async def test_one_that_reaches_where_its_leader_was_has_caught_up_since_then() -> None:
    world = World()
    for ends, told in (({2: 0}, ()), ({2: 99}, ()), ({1: 120, 2: 100}, found(53)), ({1: 140, 2: 121}, found(53)),
                       ({1: 160, 2: 139}, ()), ({2: 160}, found(56))):
        world.ends |= ends
        assert (await world.look((ONE_OUT,))).value == told, ends
    assert {host for host, _ in world.asked} == {"kafka-1", "kafka-2"}, "the other is in sync"


async def test_a_look_without_an_answer_breaks_the_row() -> None:
    world = World()
    world.ends[2] = 100
    await world.look((ONE_OUT,))
    assert (await world.look((ONE_OUT,))).value == found(52)
    world.ends[2] = None
    assert (await world.look((ONE_OUT,))).value == ()
    world.ends[2] = 100
    assert (await world.look((ONE_OUT,))).value == found(54)


async def test_what_one_says_that_does_not_lead_counts_nothing() -> None:
    world = World()
    world.ends[2] = 100
    behind = (1, Unknown("it restarts"))
    await world.look((ONE_OUT,), behind)
    assert (await world.look((ONE_OUT,), behind)).value == ()
    assert world.asked == []


async def test_others_say_it_of_a_leader_that_was_not_asked_for_partitions() -> None:
    world = World()
    world.ends[2] = 100
    briefly = (1, Known(BrokerView("cluster", 1, ADDRESSES), 1.0))
    await world.look((ONE_OUT,), briefly)
    assert await world.look((ONE_OUT,), briefly) == Known(found(52), 52)


async def test_of_a_leader_with_many_partitions_some_are_asked_about() -> None:
    world = World()
    await world.look(tuple(ONE_OUT.__class__("orders", index, 1, (1, 2, 3), (1, 3)) for index in range(PARTITIONS + 50)))
    assert world.asked == [("kafka-1", PARTITIONS), ("kafka-2", PARTITIONS)]
