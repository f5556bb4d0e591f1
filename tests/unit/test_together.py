"""Questions of one kind are asked together."""

import asyncio
from collections.abc import Sequence

import pytest

from simulation.virtual_time import in_virtual_time
from switchover.answers.errors import Refused, Unreachable
from switchover.kafka.client.brokers import EVERY_SECONDS, Question, Together


class Asked:
    """Tells each name in upper case, `seconds` after it was asked; of `slow` after ten more. Keeps the batches."""

    def __init__(self):
        self.batches: list[list[str]] = []
        self.seconds = 0.0

    async def __call__(self, questions: Sequence[Question[str, str]]) -> None:
        self.batches.append([each.asked for each in questions])
        await asyncio.sleep(self.seconds)
        for each in questions:
            if each.asked == "refused":
                raise Refused("no")
            if each.asked not in ("slow", "forgotten"):
                each.tell(each.asked.upper())
        if any(each.asked == "slow" for each in questions):
            await asyncio.sleep(10)
            for each in questions:
                each.tell(f"late {each.asked}")


def test_who_comes_alone_does_not_wait_and_the_others_go_together():
    async def run():
        loop, asked = asyncio.get_running_loop(), Asked()
        together = Together(asked)
        assert (await together.get("a"), round(loop.time(), 3)) == ("A", 0)
        found = await asyncio.gather(*(together.get(name) for name in "bcdb"))
        assert (found, round(loop.time(), 3)) == (["B", "C", "D", "B"], EVERY_SECONDS)
        await asyncio.sleep(1)
        assert (await together.get("a"), round(loop.time(), 3)) == ("A", EVERY_SECONDS + 1)
        assert asked.batches == [["a"], ["b", "c", "d", "b"], ["a"]]
    in_virtual_time(run())


def test_an_answer_is_never_older_than_its_question():
    async def run():
        asked = Asked()
        asked.seconds = 3
        together = Together(asked)
        first = asyncio.create_task(together.get("a"))
        await asyncio.sleep(1)
        assert await together.get("a") == "A"
        assert await first == "A"
        assert asked.batches == [["a"], ["a"]], "the one that was under way is none for who came later"
    in_virtual_time(run())


def test_a_slow_answer_holds_up_nobody_else():
    async def run():
        loop, together = asyncio.get_running_loop(), Together(Asked())
        slow = asyncio.create_task(together.get("slow"))
        assert (await asyncio.gather(*(together.get(name) for name in "ab")), round(loop.time(), 3)) == (["A", "B"], 0)
        assert (await together.get("c"), round(loop.time(), 3)) == ("C", EVERY_SECONDS)
        assert (await slow, round(loop.time(), 3)) == ("late slow", 10)
    in_virtual_time(run())


def test_what_is_not_told_is_unreachable_and_an_error_is_told_to_who_has_no_answer_yet():
    async def run():
        together = Together(Asked())
        found = await asyncio.gather(*(together.get(name) for name in ("a", "refused", "b")), return_exceptions=True)
        assert (found[0], *map(type, found[1:])) == ("A", Refused, Refused)
        with pytest.raises(Unreachable, match="left it out"):
            await together.get("forgotten")
        gives_up = asyncio.create_task(together.get("slow"))
        stays = asyncio.create_task(together.get("slow"))
        await asyncio.sleep(1)
        gives_up.cancel()
        assert await stays == "late slow"
        waiting = asyncio.create_task(together.get("slow"))
        await asyncio.sleep(1)
        for task in together._asking:
            task.cancel()                               # as Kopf does with every task, when a watch ends
        with pytest.raises(Unreachable, match="cancelled"):
            await waiting
    in_virtual_time(run())
