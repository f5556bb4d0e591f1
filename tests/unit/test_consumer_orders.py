"""A whole MigrationConsumer, its threads and the application's in many orders, while others come, servers go away and the
mode goes there and back: nothing is lost, nothing has two consumers, every call returns.

An order is a seed. One that fails is run again with fewer turns taken from it, and told event by event.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place

from interleaving.scheduler import Scheduler, Task
from samples import SAMPLE
from switchover.consumer import sessions
from switchover.consumer.migration_consumer import MigrationConsumer, Unreachable
from switchover.coordination.mode import Mode
from switchover.shared.partition import TopicPartition
from unit.consumer_judge import ME
from unit.consumer_world import TOPIC, Other, made_up

PASSES = 100
"""A virtual second, at most, of each thread."""
CALL = 60.0
"""Virtual seconds in which each call returns."""
OFTEN = 0.02, 0.15, 0.4
"""How likely a thread loses its turn where it could; an order has one of these."""
EXPECTED = {KafkaError._STATE, KafkaError._ASSIGNMENT_LOST, KafkaError._TRANSPORT, KafkaError._TIMED_OUT,
            KafkaError.ILLEGAL_GENERATION}
TROUBLES: dict[str, Sequence[str]] = {
    "others come and go": ("comes",),
    "two streams, a thread each": ("comes",),
    "sessions end": ("comes", "blinks", "ends", "freezes"),
    "Kafka goes away": ("comes", "is away", "puts out"),
    "there and back": ("comes", "rebalances", "kafka", "zookeeper"),
    "the application stands still": ("comes", "blinks"),
    "it closes at any moment": ("comes", "blinks", "ends", "rebalances", "kafka"),
    "it commits earlier offsets": ("comes", "kafka", "rebalances"),
    "a callback raises": ("comes", "rebalances", "kafka"),
}


class Clumsy(Exception):
    """Of a callback."""


class Story:
    """One order of one story."""

    def __init__(self, name: str, seed: int, turns: float = math.inf) -> None:
        self.name, self._dice = name, random.Random(f"{name} {seed}")
        order, self._turns = random.Random(seed), turns
        often = order.choice(OFTEN)

        def choose(scheduler: Scheduler, able: Sequence[Task]) -> Task:
            self._turns -= 1
            if scheduler.current in able and (self._turns < 0 or order.random() > often):
                return scheduler.current
            return order.choice(able)

        self._scheduler = Scheduler(choose)
        self._began = self._scheduler.now
        self._over = False
        self._automatic = self._dice.random() < 0.5
        mode = self._dice.choice([*Mode])
        with made_up(self._scheduler, mode) as (self._servers, self._threads):
            self.failures = self._scheduler.run(self._lived)
        self._judged()

    @property
    def told(self) -> str:
        return "\n".join([*self.failures, "", *self._servers.judge.story[-80:]])

    def _judged(self) -> None:
        seconds = self._scheduler.now - self._began + 1
        self.failures += self._servers.judge.broken
        self.failures += [f"{each.name} made {each.waits} passes in {seconds:.0f} s"
                          for each in self._scheduler.tasks if each.waits > PASSES * seconds]

    # --- the application ----------------------------------------------------------------------------------------------

    def _lived(self) -> None:
        self._consumer = MigrationConsumer({
            "group.id": "g", "consumer.id": "me", "zookeeper.connect": "zookeeper", "bootstrap.servers": "kafka",
            "enable.auto.commit": self._automatic, "auto.commit.interval.ms": 300, "auto.offset.reset": "earliest",
            "max.poll.interval.ms": 3000 if self.name == "the application stands still" else 300_000})
        two = self.name == "two streams, a thread each"
        streams = 2 if two or self.name == "a callback raises" else 1
        self._consumer.subscribe([TOPIC], streams=streams, on_revoke=self._revoked, on_lost=self._lost)
        beside = self._threads.Thread(lambda: self._takes_until_it_is_over(self._consumer.streams[1]), "second stream")
        trouble = self._threads.Thread(self._trouble, "trouble")
        if two:
            beside.start()
        trouble.start()
        self._takes_until_it_is_over(
            self._consumer.streams[0] if two else self._consumer,
            self._scheduler.now + self._dice.uniform(0, 6) if self.name == "it closes at any moment" else math.inf)
        if two:
            beside.join()
        self._call(lambda: self._consumer.close(30.0))
        self._scheduler.sleep(10.0)
        left = [each.name for each in self._scheduler.tasks if each.name.startswith("switchover") and not each.done]
        assert left == [], "it is closed, and its threads live on"

    def _takes_until_it_is_over(self, source: Any, until: float = math.inf) -> None:
        while not self._over and self._scheduler.now < until:
            for message in self._call(lambda: source.consume(3, 0.1)) or ():
                partition = TopicPartition(message.topic(), message.partition())
                self._servers.judge.handed(partition, message.offset(), ME)
            if self.name == "the application stands still" and self._dice.random() < 0.03:
                self._servers.judge.says("the application stands still")
                self._scheduler.sleep(self._dice.uniform(1, 8))
            if self.name == "it commits earlier offsets" and self._dice.random() < 0.1:
                self._goes_back()
            elif self._dice.random() < 0.4:
                self._commit()

    def _goes_back(self) -> None:
        for each in self._consumer.assignment()[:1]:
            partition = TopicPartition(each.topic, each.partition)
            (at,) = self._consumer.position([each])
            if at.offset > 0:
                back = self._dice.randrange(at.offset)
                self._servers.judge.goes_back(partition, back)
                self._commit([Place(*partition, back)])

    def _commit(self, offsets: Sequence[Place] | None = None) -> None:
        answer = self._call(lambda: self._consumer.commit(offsets=offsets, asynchronous=self._dice.random() < 0.2))
        if answer:
            self._servers.judge.answered({TopicPartition(each.topic, each.partition): each.offset for each in answer})

    def _call(self, do: Callable[[], Any]) -> Any:
        """Of the consumer: it returns in time, and raises nothing but what it may."""
        began = self._scheduler.now
        try:
            return do()
        except KafkaException as problem:
            if problem.args[0].code() not in EXPECTED:
                raise
        except (Unreachable, Clumsy) as problem:
            self._servers.judge.says(f"{type(problem).__name__}: {problem}")
        finally:
            assert self._scheduler.now - began <= CALL, "a call took too long"
        return None

    def _revoked(self, _: MigrationConsumer, places: list[Place]) -> None:
        self._servers.judge.says(f"on_revoke {[each.partition for each in places]}")
        if self.name == "a callback raises" and self._dice.random() < 0.5:
            self._servers.judge.left([TopicPartition(each.topic, each.partition) for each in places])
            raise Clumsy("in on_revoke")
        if not self._automatic:
            self._commit()

    def _lost(self, _: MigrationConsumer, places: list[Place]) -> None:
        self._servers.judge.says(f"on_lost {[each.partition for each in places]}")
        self._servers.judge.left([TopicPartition(each.topic, each.partition) for each in places])

    # --- what happens to it -------------------------------------------------------------------------------------------

    def _trouble(self) -> None:
        wait, dice, servers = self._scheduler.sleep, self._dice, self._servers
        for _ in range(3):
            wait(dice.uniform(0.2, 1.5))
            what = dice.choice(TROUBLES[self.name])
            servers.judge.says(what)
            if what == "comes":
                Other(servers).comes(dice.uniform(0.5, 2.0))
            elif what == "blinks":
                servers.kazoo.suspend()
                wait(dice.uniform(0.1, 3.0))
                servers.kazoo.connect()
            elif what == "ends":
                servers.zookeeper_answers = False
                wait(dice.uniform(0.0, 4.0))
                servers.kazoo.suspend()
                wait(7.0)
                servers.ends(servers.kazoo.client_id[0])
                servers.zookeeper_comes()
            elif what == "freezes":                                     # all of the process, as when its machine does
                self._scheduler.now += dice.uniform(7.0, 20.0)
                servers.ends(servers.kazoo.client_id[0])
                Other(servers).comes(0.5)
                servers.kazoo.suspend()
                servers.kazoo.connect()
            elif what == "is away":
                servers.kafka_answers = False
                wait(dice.uniform(0.1, 4.0))
                servers.kafka_answers = True
            elif what == "puts out":
                servers.group.puts_out()
            elif what == "rebalances":
                servers.group.rebalances()
            else:
                servers.follows(Mode(what))
        wait(1.0)
        self._over = True


def shortest(name: str, seed: int) -> Story:
    """The same failure, with as few turns taken as there need be."""
    good, bad = 0, 1
    while not Story(name, seed, bad).failures and bad < 1_000_000:
        good, bad = bad, bad * 2
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if Story(name, seed, middle).failures else (middle, bad)
    return Story(name, seed, bad)


def check(name: str, seeds: Sequence[int]) -> None:
    for seed in seeds:
        if Story(name, seed).failures:
            pytest.fail(f"{name}, seed {seed}\n{shortest(name, seed).told}")


@pytest.mark.parametrize("name", TROUBLES)
def test_nothing_is_lost_and_every_call_returns(name: str) -> None:
    check(name, range(SAMPLE * 20, SAMPLE * 20 + 20))


def test_a_lease_that_always_holds_is_seen() -> None:
    """Else nothing is proved by these orders."""
    with mock.patch.object(sessions.Lease, "holds", return_value=True):
        broken = [each for seed in range(20) for each in Story("sessions end", seed).failures]
    assert any(each.startswith("Z2, Z8") for each in broken)


@pytest.mark.long
@pytest.mark.parametrize("name", TROUBLES)
def test_the_same_in_many_more_orders(name: str) -> None:
    check(name, range(1_000_000, 1_002_250))
