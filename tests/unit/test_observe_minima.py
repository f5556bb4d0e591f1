"""Which broker is asked for min.insync.replicas, and of which topics."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fakes.views import whole_view
from switchover.answers.ask import SPARED_SECONDS
from switchover.answers.errors import Refused, Unreachable
from switchover.answers.observed import Known, Observed, Unknown
from switchover.cluster.observe.observer import MINIMA_SECONDS, Observer, _without_zookeeper
from switchover.kafka.node import NodeAnswer, Partition, WholeView
from switchover.network.addresses import Address
from unit.kraft_gates import all_kraft, to_b
from unit.pictures import value

ONE, TWO, THREE = (Address(f"kafka-{number}", 9092) for number in range(3))
ADDRESSES = {1: ONE, 2: TWO, 3: THREE}


class Kafka:
    """Tells 2 for every topic; remembers who was asked for how many."""

    def __init__(self) -> None:
        self.asked: list[tuple[Address, list[str]]] = []
        self.refuses = self.hangs = False
        self.at = 100.0

    def now(self) -> float:
        return self.at

    async def min_insync_replicas(self, broker: Address, topics: Iterable[str]) -> Mapping[str, int]:
        self.asked.append((broker, sorted(topics)))
        if self.refuses:
            raise Refused("not you")
        if self.hangs:
            self.at += 5
            raise Unreachable("no complete answer within 5 s")
        return dict.fromkeys(topics, 2)


def knows(*topics: str) -> WholeView:
    return whole_view("cluster", 1, ADDRESSES, [Partition(topic, 0, 1, (1,), (1,)) for topic in topics])


def observing() -> tuple[Observer, Kafka]:
    kafka: Any = Kafka()
    observer = Observer("shop", kafka, kafka, kafka, kafka)
    observer._brokers_client = kafka
    return observer, kafka


async def test_one_that_knows_the_most_topics_is_asked_for_those_of_all() -> None:
    observer, kafka = observing()
    views = {1: knows("a"), 2: knows("a", "b")}
    assert await observer._min_insync(ADDRESSES, views, set()) == Known({"a": 2, "b": 2}, 100.0)
    views = {2: knows("a"), 3: knows("a", "b", "c")}
    found = await observer._min_insync(ADDRESSES | {3: None}, views, set())
    assert found == Known({"a": 2}, 100.0), "nobody tells where broker 3 is"
    assert kafka.asked == [(TWO, ["a", "b"]), (TWO, ["a"])]


async def test_it_is_asked_anew_after_a_while_and_where_topics_come() -> None:
    observer, kafka = observing()
    for seconds, topics, asked in ((0.0, ["a"], 1), (1.0, ["a"], 1), (1.0, ["a", "b"], 2), (MINIMA_SECONDS, ["a", "b"], 3)):
        kafka.at += seconds
        await observer._min_insync(ADDRESSES, {1: knows(*topics), 2: knows(), 3: knows()}, set())
        assert len(kafka.asked) == asked


async def test_what_nobody_tells_is_unknown_and_no_topics_have_no_minimum() -> None:
    observer, kafka = observing()
    assert await observer._min_insync(ADDRESSES, {}, set()) == Unknown(
        "no broker has answered which topics there are")
    assert await observer._min_insync(ADDRESSES, dict.fromkeys(ADDRESSES, knows()), set()) == Known({}, 100.0)
    assert not kafka.asked
    kafka.refuses = True
    found = await observer._min_insync(ADDRESSES, dict.fromkeys(ADDRESSES, knows("a")), set())
    assert isinstance(found, Unknown)
    assert found.refused


async def test_a_broker_that_has_lost_zookeeper_is_not_asked() -> None:
    """Each question would hold one of its threads until ZooKeeper is back, and clients would have none left."""
    observer, kafka = observing()
    views = {1: knows("a", "b"), 2: knows("a"), 3: knows("a")}
    await observer._min_insync(ADDRESSES, views, {1, 3})
    assert [broker for broker, _ in kafka.asked] == [TWO]
    found = await observer._min_insync(ADDRESSES, views, {1, 2, 3})
    assert isinstance(found, Unknown)
    assert "brokers 1, 2, 3 have no session with ZooKeeper (/brokers/ids)" in found.why
    assert len(kafka.asked) == 1


def test_a_broker_has_lost_zookeeper_where_it_needs_it_and_is_not_registered() -> None:
    on_zookeeper, on_kraft = value(to_b().facts.answers[1]), value(all_kraft().facts.answers[1])
    answers: dict[int, Observed[NodeAnswer]] = {
        1: Known(on_zookeeper, 0), 2: Known(on_kraft, 0), 3: Unknown("no answer"), 4: Known(on_zookeeper, 0)}
    state = value(to_b().facts.zookeeper)
    assert _without_zookeeper(answers, Known(replace(state, brokers={1: {}}), 0)) == {3, 4}
    assert _without_zookeeper(answers, Unknown("ZooKeeper does not answer")) == {1, 3, 4}


async def test_a_broker_that_lets_it_wait_is_spared_for_longer_and_longer() -> None:
    observer, kafka = observing()
    kafka.hangs = True
    views = dict.fromkeys(ADDRESSES, knows("a"))
    while kafka.at < 3700:
        kafka.at += 3
        await observer._min_insync(ADDRESSES, views, set())
    assert [broker for broker, _ in kafka.asked] == [ONE] * 7, "in an hour"
    kafka.hangs = False
    kafka.at += 64 * SPARED_SECONDS
    assert isinstance(await observer._min_insync(ADDRESSES, views, set()), Known)
