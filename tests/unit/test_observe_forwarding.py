"""Since when a broker has passed nothing on to the controller."""

from typing import Any

from switchover.answers.errors import Refused, Unreachable
from switchover.answers.observed import NOT_ASKED, Known, Unknown
from switchover.cluster.observe.brokers import EVERY_SECONDS, ForwardingWatch
from switchover.kafka.node import NodeAnswer
from switchover.network.addresses import Address

HERE = Known(NodeAnswer({}, False, 1, 21), 100.0)
ADDRESSES = {1: Address("kafka-1", 9092), 2: Address("kafka-2", 9092), 3: None}


class World:
    """`errors` is what a broker answers with where it is to ask the controller; when `silent`, broker 2 answers nothing."""

    def __init__(self) -> None:
        self.errors: dict[str, Exception] = {}
        self.at, self.asked, self.silent = 100.0, 0, False
        self.client: Any = self
        self.watch = ForwardingWatch(self)

    def now(self) -> float:
        return self.at

    async def ask_controller(self, broker: Address) -> None:
        self.asked += 1
        if (error := self.errors.get(broker.host)) is not None:
            raise error

    async def look(self, at: float) -> Any:
        self.at = at
        answers = {1: HERE, 2: Unknown("no answer") if self.silent else HERE, 3: Unknown("nobody tells its address")}
        found = await self.watch.look(self.client, ADDRESSES, answers)
        assert isinstance(found, Known)
        return found.value


async def test_it_is_told_since_the_first_question_without_an_answer() -> None:
    world = World()
    assert await world.look(100) == {}
    world.errors["kafka-2"] = Unreachable("no complete answer within 3 s")
    assert await world.look(110) == await world.look(130) == {2: 110}
    del world.errors["kafka-2"]
    assert await world.look(140) == {}


async def test_one_that_answers_nothing_at_all_is_another_matter() -> None:
    world = World()
    world.errors["kafka-2"] = Unreachable("nobody answers")
    world.silent = True
    assert await world.look(100) == await world.look(130) == {}
    world.silent = False
    assert await world.look(140) == {2: 140}, "it has just come back"


async def test_an_answer_that_refuses_us_came_from_the_controller() -> None:
    world = World()
    world.errors["kafka-1"] = Refused("the user may not ask the controller")
    assert await world.look(100) == {}


async def test_it_is_asked_now_and_then_and_forgotten_when_nobody_wants_it() -> None:
    world = World()
    await world.look(100)
    await world.look(100 + EVERY_SECONDS - 1)
    assert world.asked == 2
    world.errors["kafka-2"] = Unreachable("no complete answer within 3 s")
    await world.look(120)
    assert world.watch.forget() is NOT_ASKED
    assert await world.look(200) == {2: 200}
