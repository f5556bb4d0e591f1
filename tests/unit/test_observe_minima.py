"""Which broker is asked for min.insync.replicas, and of which topics."""

from collections.abc import Iterable, Mapping
from typing import Any

from switchover.cluster.observe.observer import MINIMA_SECONDS, Observer
from switchover.kafka.node import BrokerView, Partition
from switchover.outside.addresses import Address
from switchover.outside.errors import Refused
from switchover.outside.observed import Known, Observed, Unknown

ONE, TWO, THREE = (Address(f"kafka-{number}", 9092) for number in range(3))
ADDRESSES = {1: ONE, 2: TWO, 3: THREE}


class Kafka:
    """Tells 2 for every topic; remembers who was asked for how many."""

    def __init__(self) -> None:
        self.asked: list[tuple[Address, list[str]]] = []
        self.refuses = False
        self.at = 100.0

    def now(self) -> float:
        return self.at

    async def min_insync_replicas(self, broker: Address, topics: Iterable[str]) -> Mapping[str, int]:
        self.asked.append((broker, sorted(topics)))
        if self.refuses:
            raise Refused("not you")
        return dict.fromkeys(topics, 2)


def knows(*topics: str) -> Observed[BrokerView]:
    return Known(BrokerView("cluster", 1, ADDRESSES, tuple(Partition(topic, 0, 1, (1,), (1,)) for topic in topics)), 100.0)


def observing() -> tuple[Observer, Kafka]:
    kafka: Any = Kafka()
    observer = Observer("shop", kafka, kafka, kafka, kafka)
    observer._brokers_client = kafka
    return observer, kafka


async def test_one_that_knows_the_most_topics_is_asked_for_those_of_all() -> None:
    observer, kafka = observing()
    views = {1: knows("a"), 2: knows("a", "b"), 3: Unknown("no answer")}
    assert await observer._min_insync(ADDRESSES, views) == Known({"a": 2, "b": 2}, 100.0)
    views = {1: Unknown("it restarts"), 2: knows("a"), 3: knows("a", "b", "c")}
    found = await observer._min_insync(ADDRESSES | {3: None}, views)
    assert found == Known({"a": 2}, 100.0), "nobody tells where broker 3 is"
    assert kafka.asked == [(TWO, ["a", "b"]), (TWO, ["a"])]


async def test_it_is_asked_anew_after_a_while_and_where_topics_come() -> None:
    observer, kafka = observing()
    for seconds, topics, asked in ((0.0, ["a"], 1), (1.0, ["a"], 1), (1.0, ["a", "b"], 2), (MINIMA_SECONDS, ["a", "b"], 3)):
        kafka.at += seconds
        await observer._min_insync(ADDRESSES, {1: knows(*topics), 2: knows(), 3: knows()})
        assert len(kafka.asked) == asked


async def test_what_nobody_tells_is_unknown_and_no_topics_have_no_minimum() -> None:
    observer, kafka = observing()
    assert await observer._min_insync(ADDRESSES, dict.fromkeys(ADDRESSES, Unknown("no answer"))) == Unknown(
        "no broker tells which topics there are")
    assert await observer._min_insync(ADDRESSES, dict.fromkeys(ADDRESSES, knows())) == Known({}, 100.0)
    assert not kafka.asked
    kafka.refuses = True
    found = await observer._min_insync(ADDRESSES, dict.fromkeys(ADDRESSES, knows("a")))
    assert isinstance(found, Unknown)
    assert found.refused
