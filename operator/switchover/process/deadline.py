"""What is worked out for one object has a deadline, which no other object waits for.

It is worked out in a thread of its own, not on the loop. Past so many seconds of processor an exception is raised in that
thread: Python delivers it at the next line. What is worked out is pure, so it may end anywhere, and may be begun again.
"""

import asyncio
import contextlib
import ctypes
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from switchover.engine.calls import TooMuchWork
from switchover.runtime.defects import place_of

LIGHT_SECONDS = 0.25
"""Of processor. What takes longer is begun again, and goes on one at a time: many of it share the processor with nobody."""
MOST_SECONDS = 5.0
"""Of processor: more than the largest cluster's pass that was measured takes (docs/measurements.md)."""
LAST_SECONDS = 1.0
"""How long a thread that was interrupted is waited for."""

T = TypeVar("T")


class Interrupted(BaseException):
    """Raised in the thread. Nothing in it catches this."""


class Deadline:
    """`engine.calls.Worker`."""

    def __init__(self, light: float = LIGHT_SECONDS, most: float = MOST_SECONDS) -> None:
        self._light, self._most = light, most
        self._heavy: set[str] = set()
        self._one_at_a_time = asyncio.Semaphore()

    async def __call__(self, uid: str, work: Callable[[], T], /) -> T:
        if uid not in self._heavy:
            try:
                return (await _Thread(work).result(self._light)).value
            except TooMuchWork:
                self._heavy.add(uid)
        async with self._one_at_a_time:
            found = await _Thread(work).result(self._most)
        if found.seconds < self._light:
            self._heavy.discard(uid)
        return found.value


@dataclass(frozen=True, slots=True)
class _Found(Generic[T]):
    value: T
    seconds: float


@dataclass(slots=True)
class _Thread(Generic[T]):
    """One piece of work. `clock` is of the processor time that it takes."""

    work: Callable[[], T]
    clock: int | None = None
    ended: "asyncio.Future[_Found[T]]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    async def result(self, seconds: float) -> _Found[T]:
        """Raises TooMuchWork past so many seconds of processor, and what the work raises."""
        thread = threading.Thread(target=self._run, args=(self.ended.get_loop(),), daemon=True)
        thread.start()
        try:
            while not self.ended.done() and (left := seconds - self._spent()) > 0:
                await asyncio.wait({self.ended}, timeout=left)
        finally:
            if not self.ended.done() and thread.is_alive():     # also where nobody waits for it any more
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Interrupted))
        await asyncio.wait({self.ended}, timeout=LAST_SECONDS)
        if not self.ended.done():
            raise TooMuchWork("where it cannot be interrupted")
        return self.ended.result()

    def _spent(self) -> float:
        try:
            return time.clock_gettime(self.clock) if self.clock is not None else 0.0
        except OSError:                                        # the thread has ended
            return 0.0

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        end: Callable[[Any], None] = self.ended.set_exception
        found: Any
        try:
            self.clock = time.pthread_getcpuclockid(threading.get_ident())
            found = _Found(self.work(), time.thread_time())
            end = self.ended.set_result
        except Interrupted as interrupted:
            found = TooMuchWork(place_of(interrupted))
        except Exception as error:  # noqa: BLE001 - it is raised where the work is waited for
            found = error
        with contextlib.suppress(RuntimeError):                # the operator has ended
            loop.call_soon_threadsafe(self._end, end, found)

    def _end(self, end: Callable[[Any], None], found: Any) -> None:
        if not self.ended.done():                              # else nobody waits for it any more
            end(found)
