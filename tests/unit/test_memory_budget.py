"""One budget of bytes for what others send: threads and the event loop wait for it in turn, and nobody for ever."""

import asyncio
import threading
import time

import pytest

from switchover.answers import memory
from switchover.answers.errors import Refused, Unreachable
from switchover.answers.memory import MIB, SMALL, Budget


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "TURN_SECONDS", 0.3)


@pytest.fixture
def budget() -> Budget:
    return Budget(lambda: 10 * MIB)


async def test_what_there_is_no_room_for_is_refused_with_the_limit_that_has(budget: Budget) -> None:
    with pytest.raises(Refused, match=r"^b:1: an answer takes 11 MiB of memory, more than the operator has for one; give"
                                      r" the operator a limit of 171Mi \(resources\.limits\.memory\)$"):
        await budget.turn("b:1: an answer", 11 * MIB)
    assert budget.held == 0


async def test_who_finds_none_left_waits_for_it_and_is_named_when_it_was_too_long(budget: Budget) -> None:
    first = await budget.turn("a", 8 * MIB)
    with pytest.raises(Unreachable, match=r"^b takes 3\.0 MiB of memory, and 8\.0 MiB of the 10 MiB that the operator has"
                                          r" for all answers are in use; give the operator a limit of 171Mi or more \("):
        await budget.turn("b", 3 * MIB)
    waits = asyncio.create_task(budget.turn("b", 3 * MIB))
    await asyncio.sleep(0)
    first.give_back()
    first.give_back()
    with await waits:
        assert budget.held == 3 * MIB
    assert budget.held == 0


def test_a_thread_waits_as_the_event_loop_does(budget: Budget) -> None:
    first = budget.wait("a", 8 * MIB)
    with pytest.raises(Unreachable, match=r"^b takes"):
        budget.wait("b", 3 * MIB)
    threading.Timer(0.05, first.give_back).start()
    with budget.wait("b", 3 * MIB):
        assert budget.held == 3 * MIB


async def test_turns_come_one_after_the_other_but_who_asks_for_little_waits_behind_nobody(budget: Budget) -> None:
    first = await budget.turn("a", 9 * MIB)
    order: list[str] = []

    async def waits(name: str, size: int, have: int = 0) -> None:
        held = await budget.turn(name, size, have)
        order.append(name)
        await asyncio.sleep(0.01)
        held.give_back()

    tasks = []
    for name, size, have in (("large", 8 * MIB, 0), ("later", 2 * MIB, 0), ("small", SMALL, 0), ("begun", 2 * MIB, MIB)):
        tasks.append(asyncio.create_task(waits(name, size, have)))
        await asyncio.sleep(0)
    assert order == ["small"]
    first.give_back()
    await asyncio.gather(*tasks)
    assert order == ["small", "begun", "large", "later"]
    assert budget.held == 0


async def test_small_answers_find_room_when_floods_have_it_all(budget: Budget) -> None:
    await budget.turn("flood", 10 * MIB)
    small = [await budget.turn("honest", SMALL) for _ in range(memory.FOR_SMALL // SMALL)]
    with pytest.raises(Unreachable):
        await budget.turn("honest", SMALL)
    assert len(small) == 32


async def test_who_is_cancelled_while_it_waits_takes_nothing(budget: Budget) -> None:
    first = await budget.turn("a", 10 * MIB)
    for given_back in (False, True):
        waits = asyncio.create_task(budget.turn("b", 3 * MIB))
        await asyncio.sleep(0)
        if given_back:
            first.give_back()                           # it is granted, and cancelled before it hears of that
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        assert budget.held == (0 if given_back else 10 * MIB)


def test_of_what_is_held_for_long_nobody_takes_the_part_of_others(budget: Budget) -> None:
    """A quarter for each, a half for all; and he who has little is not refused because of them."""
    hogs = [budget.lasting(name) for name in ("a", "b", "c")]
    with pytest.raises(Refused, match=r"^x is more than there is memory for: 2\.6 MiB of a, 2\.6 MiB in all; give the"
                                      r" operator a limit of 171Mi"):
        hogs[0].resize(int(2.6 * MIB), "x")
    for each in hogs[:2]:
        each.resize(int(2.5 * MIB), "x")
    with pytest.raises(Refused, match=r"^x is more than there is memory for: 1\.0 MiB of c, 6\.0 MiB in all"):
        hogs[2].resize(MIB, "x")
    honest = budget.lasting("d")
    honest.resize(MIB // 10, "y")
    hogs[0].give_back()
    hogs[2].resize(MIB, "x")
    assert budget.held == int(2.5 * MIB) + MIB + MIB // 10


def test_no_byte_is_lost_between_many_threads(budget: Budget) -> None:
    def work(seed: int) -> None:
        for number in range(200):
            try:
                with budget.wait("t", (seed * number * 7919) % (4 * MIB)):
                    time.sleep(0)
            except Unreachable:
                pass

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert budget.held == 0
