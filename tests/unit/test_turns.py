"""Turns for passes: so many at once, first what moves, nobody for ever, and none kept by one that hangs."""

import asyncio
from contextlib import suppress

from simulation.virtual_time import in_virtual_time
from switchover.process.handlers import SILENCE_SECONDS, Watch, why_dead
from switchover.process.turns import TURN_SECONDS, Turns


async def a_pass(turns, begun, name, seconds, *, moving=False, touched=False):
    async with turns.turn(str(name), moving=moving, touched=touched):
        begun.append((name, asyncio.get_running_loop().time()))
        await asyncio.sleep(seconds)


def test_so_many_go_on_at_once_and_every_wait_is_told():
    async def run():
        begun, waited = [], []
        turns = Turns(waited.append, at_once=2)
        passes = [asyncio.create_task(a_pass(turns, begun, name, 1.0)) for name in "abcd"]
        await asyncio.sleep(0.5)
        assert (turns.running, turns.waiting) == (2, 2)
        await asyncio.gather(*passes)
        assert begun == [("a", 0.0), ("b", 0.0), ("c", 1.0), ("d", 1.0)]
        assert waited == [0.0, 0.0, 1.0, 1.0]
        assert (turns.running, turns.waiting) == (0, 0)
    in_virtual_time(run())


def test_what_moves_and_what_stands_do_not_wait_for_each_other():
    async def run():
        begun = []
        turns = Turns(at_once=1)
        queue = [asyncio.create_task(a_pass(turns, begun, "stands", 1.0)) for _ in range(100)]
        queue += [asyncio.create_task(a_pass(turns, begun, "moves", 1.0, moving=True)) for _ in range(100)]
        await asyncio.sleep(49.5)
        assert [sum(name == each for name, _ in begun) for each in ("moves", "stands")] == [50, 50]
        await asyncio.gather(*queue)
    in_virtual_time(run())


def test_whom_somebody_has_touched_goes_before_all_that_moves():
    async def run():
        begun = []
        turns = Turns(at_once=1)
        queue = [asyncio.create_task(a_pass(turns, begun, "moves", 1.0, moving=True)) for _ in range(100)]
        await asyncio.sleep(10.5)
        await a_pass(turns, begun, "touched", 1.0, touched=True)
        assert begun[-1] == ("touched", 11.0)
        await asyncio.gather(*queue)
    in_virtual_time(run())


def test_who_waits_already_when_somebody_touches_it_goes_first_too():
    async def run():
        begun = []
        turns = Turns(at_once=1)
        waiting = [asyncio.create_task(a_pass(turns, begun, number, 1.0)) for number in range(100)]
        moving = [asyncio.create_task(a_pass(turns, begun, f"moves {number}", 1.0, moving=True)) for number in range(100)]
        await asyncio.sleep(10.5)
        turns.touch("90")
        turns.touch("nobody")
        turns.touch("1")
        await asyncio.gather(*waiting, *moving)
        assert (90, 11.0) in begun
        assert len(begun) == 200, "and each once"
        assert (turns.running, turns.waiting) == (0, 0)
    in_virtual_time(run())


def test_however_many_wait_for_answers_the_passes_that_go_on_are_bounded():
    async def run():
        begun = []
        turns = Turns(at_once=2, most=5)
        hanging = [asyncio.create_task(a_pass(turns, begun, number, 1000.0)) for number in range(9)]
        await asyncio.sleep(10 * TURN_SECONDS)
        assert (turns.running, turns.waiting, len(begun)) == (5, 4, 5)
        hanging[0].cancel()
        await asyncio.sleep(1)
        assert (turns.running, turns.waiting) == (5, 3)
        for each in hanging:
            each.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        assert (turns.running, turns.waiting) == (0, 0)
        await asyncio.gather(*(a_pass(turns, begun, each, 1.0) for each in "abc"))
        assert begun[-1][1] - begun[-2][1] == 1.0, "two at once again, no more and no fewer"
    in_virtual_time(run())


def test_a_pass_that_waits_for_an_answer_keeps_nobody_waiting():
    async def run():
        begun = []
        turns = Turns(at_once=1)
        hanging = asyncio.create_task(a_pass(turns, begun, "hangs", 1000.0))
        await asyncio.sleep(0)
        await a_pass(turns, begun, "next", 1.0)
        assert begun[1] == ("next", TURN_SECONDS)
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        await asyncio.gather(*(a_pass(turns, begun, each, 1.0) for each in "ab"))
        assert begun[3][1] - begun[2][1] == 1.0, "the turn that was given back early is not given back twice"
    in_virtual_time(run())


def test_one_that_is_cancelled_loses_no_turn():
    async def run():
        begun = []
        turns = Turns(at_once=1)
        first, second = (asyncio.create_task(a_pass(turns, begun, name, 1.0)) for name in "ab")
        await asyncio.sleep(0.5)
        second.cancel()
        with suppress(asyncio.CancelledError):
            await second
        await first
        await a_pass(turns, begun, "c", 1.0)
        assert begun == [("a", 0.0), ("c", 1.0)]
    in_virtual_time(run())


def test_the_probe_tells_busy_from_hanging():
    async def run():
        begun = []
        turns = Turns(at_once=1)
        watch = Watch([], turns)
        passes = [asyncio.create_task(a_pass(turns, begun, "busy", 4.0)) for _ in range(60)]
        await asyncio.sleep(2 * SILENCE_SECONDS - 1)
        assert turns.waiting == 0
        await asyncio.gather(*passes)
        passes = [asyncio.create_task(a_pass(turns, begun, "busy", 4.0)) for _ in range(90)]
        await asyncio.sleep(SILENCE_SECONDS + 10)
        assert turns.waiting > 50
        now = asyncio.get_running_loop().time()
        assert why_dead(watch, now) == "", "there is much to do, and it is done"
        assert why_dead(watch, now + SILENCE_SECONDS + 5) == (
            f"no pass has begun for 120 s, and {turns.waiting} are due")
        for each in passes:
            each.cancel()
        await asyncio.gather(*passes, return_exceptions=True)
    in_virtual_time(run())
