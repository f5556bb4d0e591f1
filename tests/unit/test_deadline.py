"""What is worked out for one object ends at its deadline, and the loop of the others goes on meanwhile."""

import asyncio
import contextlib
import threading
import time
from hashlib import pbkdf2_hmac

import pytest

from patience import slowness
from switchover.engine.calls import TooMuchWork
from switchover.process.deadline import Deadline


def spin(seconds: float) -> str:
    """Take so much of the processor."""
    begun = time.thread_time()
    while time.thread_time() - begun < seconds:
        pass
    return "done"


def for_ever() -> None:
    """As a loop over too many would. What holds every error holds no deadline."""
    while True:
        with contextlib.suppress(Exception):
            sum(range(100))


async def lateness(seconds: float, until: asyncio.Task) -> float:
    """By how much the loop is late at most, looking so often."""
    worst, loop = 0.0, asyncio.get_running_loop()
    while not until.done():
        begun = loop.time()
        await asyncio.sleep(seconds)
        worst = max(worst, loop.time() - begun - seconds)
    return worst


def threads() -> list[threading.Thread]:
    """In which something is worked out."""
    return [each for each in threading.enumerate() if each.name.endswith("(_run)")]


async def test_what_is_worked_out_is_returned_and_what_it_raises_is_raised():
    deadline = Deadline()
    assert await deadline("one", lambda: 7) == 7
    with pytest.raises(KeyError, match="nobody"):
        await deadline("one", lambda: {}["nobody"])


async def test_work_without_end_is_ended_and_its_place_is_told():
    with pytest.raises(TooMuchWork, match=r"Interrupted in process/deadline.py:\d+ \(_run\)"):
        await Deadline(0.05, 0.1)("one", for_ever)
    for thread in threads():
        thread.join(10)
        assert not thread.is_alive()


async def test_the_loop_and_other_objects_go_on_beside_it():
    deadline = Deadline(0.2, 1.0)
    hostile = asyncio.create_task(deadline("hostile", for_ever))
    late = asyncio.create_task(lateness(0.02, hostile))
    await asyncio.sleep(0.5)
    begun, served = time.monotonic(), 0
    while not hostile.done():
        assert await deadline(f"other {served}", lambda: spin(0.001)) == "done"
        served += 1
    assert served >= 10, f"{served} others in {time.monotonic() - begun:.1f} s"
    with pytest.raises(TooMuchWork):
        await hostile
    assert await late < 0.25 * slowness()


async def test_what_is_heavy_goes_one_at_a_time_and_ends_all_the_same():
    deadline, at_once, most = Deadline(0.05, 5.0), 0, 0

    def heavy() -> str:
        nonlocal at_once, most
        at_once, most = at_once + 1, max(most, at_once + 1)
        try:
            return spin(0.2)
        finally:
            at_once -= 1

    with pytest.raises(TooMuchWork):
        await Deadline(0.05, 0.1)("one", heavy)
    for each in "abc":
        assert await deadline(each, heavy) == "done"
    most = 0
    assert await asyncio.gather(*(deadline(each, heavy) for each in "abc")) == ["done"] * 3
    assert most == 1


async def test_what_became_light_waits_for_nothing_heavy():
    deadline = Deadline(0.1, 3.0)
    assert await deadline("mended", lambda: spin(0.2)) == "done"
    assert await deadline("mended", lambda: spin(0.0)) == "done"
    hostile = asyncio.create_task(deadline("hostile", for_ever))
    await asyncio.sleep(0.5)
    assert await deadline("mended", lambda: 1) == 1
    assert not hostile.done()
    hostile.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hostile


async def test_nobody_waits_for_what_python_cannot_interrupt(monkeypatch):
    monkeypatch.setattr("switchover.process.deadline.LAST_SECONDS", 0.05)
    with pytest.raises(TooMuchWork, match="where it cannot be interrupted"):
        await Deadline(0.05, 0.1)("one", lambda: pbkdf2_hmac("sha256", b"", b"", 8_000_000))
    left = threads()
    assert any(thread.is_alive() for thread in left), "it was waited for to its end"
    for thread in left:
        thread.join()
