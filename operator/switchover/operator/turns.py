"""Which pass comes next, when more are due than may go on at once."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

AT_ONCE = 48
"""Passes that have a turn. What they read is in memory together, and the loop computes for one at a time; but a pass waits
for most of its time, up to a tenth of a second each until groups are described and swept together, and a hundred that move
want a hundred passes a second."""
TURN_SECONDS = 5.0
"""How long a pass keeps its turn. One that takes longer waits for somebody's answer: it goes on, and others begin."""
MOST = 128
"""Passes that go on, with those that have kept their turn for too long: while there are so many, no other begins."""
IN_A_ROW = 3
"""So many turns go to migrations that somebody has touched or in which something moves, then one to those in which nothing
does, where both wait: who moves waits for no queue, and nobody waits for ever."""


class Turns:
    """Turns for the passes of all migrations of an operator. `waited` is told for how many seconds each has waited."""

    def __init__(self, waited: Callable[[float], None] = lambda _: None, at_once: int = AT_ONCE, most: int = MOST) -> None:
        self._waited = waited
        self._free = at_once
        self._most = most
        self._touched: deque[asyncio.Future[None]] = deque()
        self._moving: deque[asyncio.Future[None]] = deque()
        self._standing: deque[asyncio.Future[None]] = deque()
        self._in_a_row = 0
        self._given_at = float("inf")
        self.running = 0

    @property
    def _queues(self) -> tuple[deque[asyncio.Future[None]], ...]:
        return self._touched, self._moving, self._standing

    @property
    def waiting(self) -> int:
        """How many passes are due and have no turn."""
        return sum(not turn.done() for queue in self._queues for turn in queue)

    def silence(self, now: float) -> float:
        """Seconds for which no turn was given although one is waited for; 0 where none is."""
        return max(0.0, now - self._given_at) if self.waiting else 0.0

    @asynccontextmanager
    async def turn(self, *, moving: bool, touched: bool = False) -> AsyncIterator[None]:
        """Wait for a turn: first whom somebody has just touched, then whoever is moving, and nobody for ever."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._take(self._touched if touched else self._moving if moving else self._standing, loop)
        self._waited(loop.time() - began)
        given_back = False

        def give_back() -> None:
            nonlocal given_back
            if not given_back:
                given_back = True
                self._free += 1
                self._give()

        late = loop.call_later(TURN_SECONDS, give_back)
        try:
            yield
        finally:
            self.running -= 1
            late.cancel()
            give_back()
            self._give()                                  # it may have been one of too many

    async def _take(self, queue: deque[asyncio.Future[None]], loop: asyncio.AbstractEventLoop) -> None:
        turn: asyncio.Future[None] = loop.create_future()
        queue.append(turn)
        self._give()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():      # given, and nobody is there to take it
                self.running -= 1
                self._free += 1
                self._give()
            raise

    def _give(self) -> None:
        while self._free > 0 and self.running < self._most and (turn := self._next()) is not None:
            self._free -= 1
            self.running += 1
            self._given_at = asyncio.get_running_loop().time()
            turn.set_result(None)

    def _next(self) -> asyncio.Future[None] | None:
        """Whose turn it is; None: nobody waits."""
        for queue in self._queues:
            while queue and queue[0].done():              # cancelled
                queue.popleft()
        first = self._touched or self._moving
        if self._standing and (not first or self._in_a_row >= IN_A_ROW):
            self._in_a_row = 0
            return self._standing.popleft()
        self._in_a_row += 1
        return first.popleft() if first else None
