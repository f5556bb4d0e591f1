"""Readings that go on behind the passes."""

import asyncio
import time

import pytest

from fakes.clock import Clock
from switchover.answers import ask
from switchover.answers.ask import Background
from switchover.answers.errors import Unreachable
from switchover.answers.observed import Known, Unknown


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


def readings_within(seconds: int, takes: float, *, answers: bool, rests: int = 5) -> int:
    """How often it was read by somebody who asks every second."""
    clock = Clock(0.0)
    trees, background = Trees(clock, takes, answers), Background[str]("the tree is", 20.0, clock, rests=rests)

    async def asked() -> None:
        while clock.seconds < seconds:
            found = await background.newest(trees.tree)
            assert isinstance(found, Known if answers else Unknown)
            clock.seconds += 1

    asyncio.run(asked())
    return trees.read


def test_an_answer_is_good_for_its_seconds() -> None:
    assert readings_within(99, 1.0, answers=True) == 5
    assert readings_within(300, 20.0, answers=True) == 3


def test_one_without_an_answer_rests_as_long_as_it_took() -> None:
    assert readings_within(1000, 100.0, answers=False) == 5
    assert readings_within(10, 0.0, answers=False) == 10, "one that was refused at once costs nothing"


async def test_no_pass_waits_for_a_long_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "PATIENCE_SECONDS", 0.1)
    clock, goes_on = Clock(0.0), asyncio.Event()
    background = Background[int]("topics are", 0.0, clock, rests=1)

    async def read() -> int:
        await goes_on.wait()
        return round(clock.seconds)

    async def a_pass() -> object:
        clock.seconds += 1
        begun = time.monotonic()
        found = await background.newest(read)
        assert time.monotonic() - begun < ask.READ_SECONDS / 4
        return found.value if isinstance(found, Known) else found.why

    assert [await a_pass(), await a_pass()] == ["topics are being read"] * 2
    goes_on.set()
    assert await a_pass() == 3
    assert [await a_pass(), await a_pass(), await a_pass()] == [3, 5, 6], "it rests as long as it took, then is waited for"
    goes_on.clear()
    clock.seconds += 9
    assert [await a_pass(), await a_pass()] == [6, 6]


async def test_what_is_decided_upon_was_read_lately(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "PATIENCE_SECONDS", 0.1)
    clock, goes_on = Clock(0.0), asyncio.Event()
    background = Background[int]("topics are", 0.0, clock)

    async def read() -> int:
        begun = clock.seconds
        await goes_on.wait()
        clock.seconds += 10
        return round(begun)

    async def newest(fresh: bool) -> object:
        found = await background.newest(read, fresh=fresh)
        return found.value if isinstance(found, Known) else found.why

    goes_on.set()
    assert await newest(fresh=True) == 0
    clock.seconds += 20
    assert [await newest(fresh=True), await newest(fresh=False)] == [0, 0], "it took 10 s, and is 30 s old"
    clock.seconds += 1
    goes_on.clear()
    assert [await newest(fresh=False), await newest(fresh=True)] == [0, "topics are being read"]
    assert await newest(fresh=False) == 0, "it is shown meanwhile"
    goes_on.set()
    assert await newest(fresh=True) == 31
