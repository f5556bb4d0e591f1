"""Which pass comes next, when more are due than may go on at once."""

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count

AT_ONCE = 16
"""Passes that go on at a time. What they read is in memory together, and the loop computes for one at a time anyway."""
TURN_SECONDS = 5.0
"""How long a pass keeps its turn. One that takes longer waits for somebody's answer: it goes on, and others begin."""
LEAD_SECONDS = 30.0
"""How much longer than a migration in which something moves one waits in which nothing does."""


class Turns:
    """Turns for the passes of all migrations of an operator. `waited` is told for how many seconds each has waited."""

    def __init__(self, waited: Callable[[float], None] = lambda _: None, at_once: int = AT_ONCE) -> None:
        self._waited = waited
        self._free = at_once
        self._numbers = count()
        self._queue: list[tuple[float, int, asyncio.Future[None]]] = []
        self._given_at = float("inf")
        self.running = 0

    @property
    def waiting(self) -> int:
        """How many passes are due and have no turn."""
        return sum(not turn.done() for _, _, turn in self._queue)

    def silence(self, now: float) -> float:
        """Seconds for which no turn was given although one is waited for; 0 where none is."""
        return max(0.0, now - self._given_at) if self.waiting else 0.0

    @asynccontextmanager
    async def turn(self, *, moving: bool) -> AsyncIterator[None]:
        """Wait for a turn: first whoever is moving, and nobody for ever."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._take(began - (LEAD_SECONDS if moving else 0.0), loop)
        self._waited(loop.time() - began)
        given_back = False

        def give_back() -> None:
            nonlocal given_back
            if not given_back:
                given_back = True
                self._give()

        late = loop.call_later(TURN_SECONDS, give_back)
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            late.cancel()
            give_back()

    async def _take(self, rank: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._free > 0:
            self._free -= 1
            self._given_at = loop.time()
            return
        turn: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._queue, (rank, next(self._numbers), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():      # given, and nobody is there to take it
                self._give()
            raise

    def _give(self) -> None:
        while self._queue:
            _, _, turn = heapq.heappop(self._queue)
            if not turn.done():
                self._given_at = asyncio.get_running_loop().time()
                turn.set_result(None)
                return
        self._free += 1
