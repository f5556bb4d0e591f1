"""Which pass comes next, when more are due than may go on at once."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

AT_ONCE = 32
"""Passes of one lane that have a turn. What they read is in memory together, and the loop computes for one at a time; but a
pass waits for most of its time, up to a tenth of a second each until groups are described and swept together."""
MOST = 48
"""Passes of one lane that go on, with those that have had their turn for too long: while there are so many, none begins."""
TURN_SECONDS = 5.0
"""How long a pass keeps its turn. One that takes longer waits for somebody's answer: it goes on, and others begin."""

Ticket = asyncio.Future["Lane"]
"""Of who waits: it gets the lane that gives it a turn."""


class Lane:
    """Turns for passes of one sort. Whoever waits in the first queue goes before the second."""

    def __init__(self, at_once: int, most: int) -> None:
        self._free = at_once
        self._most = most
        self._first: deque[Ticket] = deque()
        self._second: deque[Ticket] = deque()
        self.given_at = float("inf")
        self.running = 0

    @property
    def waiting(self) -> int:
        """How many have no turn."""
        return sum(not turn.done() for queue in (self._first, self._second) for turn in queue)

    def enter(self, ticket: Ticket, *, first: bool) -> None:
        """Wait here for a turn, which is to be given back and ended."""
        (self._first if first else self._second).append(ticket)
        self._give()

    def leave(self, ticket: Ticket) -> None:
        """Wait here no more."""
        for queue in (self._first, self._second):
            with suppress(ValueError):
                queue.remove(ticket)

    def give_back(self) -> None:
        """Another one may begin, unless too many go on."""
        self._free += 1
        self._give()

    def end(self) -> None:
        """One that had a turn goes on no more."""
        self.running -= 1
        self._give()

    def _give(self) -> None:
        while self._free > 0 and self.running < self._most and (turn := self._next()) is not None:
            self._free -= 1
            self.running += 1
            self.given_at = asyncio.get_running_loop().time()
            turn.set_result(self)

    def _next(self) -> Ticket | None:
        for queue in (self._first, self._second):
            while queue:
                if not (turn := queue.popleft()).done():          # else cancelled
                    return turn
        return None


class Turns:
    """Turns for the passes of all migrations of an operator: what moves and what stands have lanes of their own, so that
    neither waits for the other. `waited` is called with the seconds that each has waited."""

    def __init__(self, waited: Callable[[float], None] = lambda _: None, at_once: int = AT_ONCE, most: int = MOST) -> None:
        self._waited = waited
        self._moving, self._standing = Lane(at_once, most), Lane(at_once, most)
        self._tickets: dict[str, Ticket] = {}

    @property
    def waiting(self) -> int:
        """How many passes are due and have no turn."""
        return self._moving.waiting + self._standing.waiting

    @property
    def running(self) -> int:
        """How many passes go on."""
        return self._moving.running + self._standing.running

    def silence(self, now: float) -> float:
        """Seconds for which no turn was given although one is waited for; 0 where none is."""
        return max((now - lane.given_at for lane in (self._moving, self._standing) if lane.waiting), default=0.0)

    def touch(self, uid: str) -> None:
        """Somebody has touched it: if it waits for its turn, it goes first."""
        if (ticket := self._tickets.get(uid)) is not None and not ticket.done():
            for lane in (self._moving, self._standing):
                lane.leave(ticket)
            self._moving.enter(ticket, first=True)

    @asynccontextmanager
    async def turn(self, uid: str, *, moving: bool, touched: bool = False) -> AsyncIterator[None]:
        """Wait for a turn. Whom somebody has just `touched` goes first of all that moves."""
        loop = asyncio.get_running_loop()
        began, ticket = loop.time(), loop.create_future()
        self._tickets[uid] = ticket
        (self._moving if moving or touched else self._standing).enter(ticket, first=touched)
        try:
            lane = await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled():      # given, and nobody is there to take it
                ticket.result().give_back()
                ticket.result().end()
            raise
        finally:
            if self._tickets.get(uid) is ticket:
                del self._tickets[uid]
        self._waited(loop.time() - began)
        given_back = False

        def give_back() -> None:
            nonlocal given_back
            if not given_back:
                given_back = True
                lane.give_back()

        late = loop.call_later(TURN_SECONDS, give_back)
        try:
            yield
        finally:
            late.cancel()
            lane.end()
            give_back()
