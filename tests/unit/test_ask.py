"""Readings that go on behind the passes."""

import asyncio

from fakes.clock import Clock
from switchover.outside.ask import Background
from switchover.outside.errors import Unreachable
from switchover.outside.observed import Known, Unknown


class Trees:
    """A reading of `takes` seconds, that has an answer or none."""

    def __init__(self, clock: Clock, takes: float, answers: bool) -> None:
        self._clock, self._takes, self._answers = clock, takes, answers
        self.read = 0

    async def tree(self) -> str:
        self.read += 1
        self._clock.seconds += self._takes
        if not self._answers:
            raise Unreachable("no answer")
        return "tree"


def readings_within(seconds: int, takes: float, *, answers: bool) -> int:
    """How often it was read by somebody who asks every second."""
    clock = Clock(0.0)
    trees, background = Trees(clock, takes, answers), Background[str]("the tree is", 20.0, clock)

    async def asked() -> None:
        while clock.seconds < seconds:
            found = await background.newest(trees.tree)
            assert isinstance(found, Known if answers else Unknown)
            clock.seconds += 1

    asyncio.run(asked())
    return trees.read


def test_an_answer_is_good_for_its_seconds() -> None:
    assert readings_within(99, 1.0, answers=True) == 5


def test_one_without_an_answer_rests_as_long_as_it_took() -> None:
    assert readings_within(1000, 100.0, answers=False) == 5
    assert readings_within(10, 0.0, answers=False) == 10, "one that was refused at once costs nothing"
