"""Kopf and our handlers in virtual time: hours pass in a moment, and the process can be killed at any write."""

import asyncio
from collections.abc import Callable, Coroutine
from math import ceil
from typing import Any, TypeVar

import async_solipsism

from fakes.api_server import FakeApi
from fakes.incarnation import Incarnation

T = TypeVar("T")
EPOCH = 1_790_000_000.0
RESTART_SECONDS = 7.0                  # from the end of a process to the start of the next
LOOK_SECONDS = 0.25                    # how often a life is looked at
BURIAL_SECONDS = 0.1


class VirtualLoop(async_solipsism.EventLoop):
    """The loop refuses signal handlers on the main thread; Kopf's start would die of it, and nobody would notice."""

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> None:
        """No signal ever comes."""

    def remove_signal_handler(self, sig: int) -> bool:
        return False


class Timeline:
    """The world's time: it goes on while the operator is dead."""

    def __init__(self) -> None:
        self._base = EPOCH
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def began(self) -> float:
        """When the process that lives began."""
        return self._base

    def now(self) -> float:
        return self._base + (self._loop.time() if self._loop is not None else 0.0)

    def wait(self, seconds: float) -> None:
        """Let time pass while no process runs."""
        self._base += seconds

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """A process starts; its loop counts from 0."""
        self._loop = loop

    def as_if_it_ended(self) -> "Timeline":
        """As it is once the process that lives has ended at the next look, or at this one."""
        assert self._loop is not None
        ended, looks = Timeline(), self._loop.time() / LOOK_SECONDS
        ended._base = self._base + ceil(looks) * LOOK_SECONDS + 2 * BURIAL_SECONDS + RESTART_SECONDS
        return ended

    def end(self) -> None:
        """The process is gone; some time passes until the next."""
        self._base = self.now() + RESTART_SECONDS
        self._loop = None


class TimeIsUp(AssertionError):
    """The world did not get where it should within its time."""


def in_virtual_time(coroutine: Coroutine[Any, Any, T]) -> T:
    """What it returns, on a loop of its own."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


def live(
    timeline: Timeline,
    api: FakeApi,
    incarnation: Incarnation,
    operator: Callable[[], Coroutine[Any, Any, None]],
    until: Callable[[], bool],
    limit: float,
    kill_when: Callable[[], bool] = lambda: False,
) -> bool:
    """Run the operator until something is so; True. Or until `kill_when` holds right after one of its writes; False.

    Raises TimeIsUp after `limit` virtual seconds, and whatever the operator dies of.
    """
    loop = VirtualLoop()
    timeline.begin(loop)

    def after_write() -> None:
        incarnation.killed = incarnation.killed or kill_when()

    api.after_write = after_write
    async def watch_over() -> bool:
        task = asyncio.create_task(operator())
        deadline = loop.time() + limit
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if incarnation.killed:
                return False
            if task.done():
                raise AssertionError("the operator ended by itself") from task.exception()
            if until():
                return True
            if loop.time() > deadline:
                raise TimeIsUp(f"after {limit:.0f} s of virtual time; {len(api.writes)} writes")

    try:
        return loop.run_until_complete(watch_over())
    finally:
        incarnation.killed = True
        _bury(loop)
        timeline.end()


def _bury(loop: VirtualLoop) -> None:
    """End what is left of a dead process. It can reach nothing: every call of its incarnation waits for ever."""
    for _ in range(2):
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            task.cancel()
        loop.call_later(BURIAL_SECONDS, loop.stop)      # not `asyncio.wait`: Kopf cancels every task it did not start
        loop.run_forever()
    loop.close()
