"""One question to the outside world: its answer, or why there is none."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from switchover.core.observed import NOT_ASKED, Known, Observed, Unknown
from switchover.defects import place_of
from switchover.ports import Clock, Fenced, Malformed, Refused, Unreachable, Untold

T = TypeVar("T")
logger = logging.getLogger(__name__)
READ_SECONDS = 10.0
"""How long a reading may take that asks more than one node."""
LOOKING_SECONDS = 300.0
"""How old may be what takes requests of its own for each migration, where nothing is done upon it: names that are taken,
storage classes, dry runs of what has not changed."""
LARGEST_TREE_SECONDS = 300.0
"""How long the reading of a whole tree of ZooKeeper's may take."""
DEFECTS: set[str] = set()
"""Where an answer met an error that nobody expected; each place is logged once."""


async def known(reading: Awaitable[T], seconds: float, clock: Clock) -> Observed[T]:
    """The answer with the time of asking; every error becomes Unknown.

    One that nobody expected as well: an odd answer of one server is unknown for what it was asked, and nothing else is.
    """
    at = clock.now()
    try:
        async with asyncio.timeout(seconds):
            return Known(await reading, at)
    except Refused as error:
        return Unknown(str(error), refused=True, malformed=isinstance(error, Malformed))
    except (Unreachable, Fenced) as error:
        return Unknown(str(error), untold=isinstance(error, Untold))
    except TimeoutError:
        return Unknown(f"no answer within {seconds:.0f} s")
    except Exception as error:
        place = place_of(error)
        if place not in DEFECTS:
            DEFECTS.add(place)
            logger.error("a defect of this operator: %s", place, exc_info=error)
        return Unknown(f"the answer met a defect of this operator ({place}); see its log")


class Cached(Generic[T]):
    """A reading that is good for some seconds."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._value: Observed[T] = NOT_ASKED

    async def get(self, read: Callable[[], Awaitable[T]], seconds: float = 0.0) -> Observed[T]:
        """The reading that is kept, or a new one; `seconds` are for who is content with an older one."""
        good = max(self._seconds, seconds)
        if not isinstance(self._value, Known) or self._clock.now() - self._value.at >= good:
            self._value = await known(read(), READ_SECONDS, self._clock)
        return self._value


class Background(Generic[T]):
    """A reading that takes long where ZooKeeper has much: it goes on behind the passes and is good for `seconds`.

    One without an answer is repeated after as long again as it took: ZooKeeper is not read all the time for nothing.
    """

    def __init__(self, what: str, seconds: float, clock: Clock) -> None:
        self._being_read = Unknown(f"{what} being read")
        self._seconds = seconds
        self._clock = clock
        self._read: Observed[T] = self._being_read
        self._reading: asyncio.Task[Observed[T]] | None = None
        self._due = 0.0

    def forget(self) -> None:
        """End what is under way."""
        if self._reading is not None:
            self._reading.cancel()
        self._reading, self._read, self._due = None, self._being_read, 0.0

    async def newest(self, read: Callable[[], Awaitable[T]]) -> Observed[T]:
        """The newest reading; the first one is waited for a little."""
        if self._reading is None and self._clock.now() >= self._due:
            self._reading = asyncio.create_task(self._ask(read))
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=0 if isinstance(self._read, Known) else READ_SECONDS / 2)
            if self._reading.done():
                self._read, self._reading = self._reading.result(), None
        return self._read

    async def _ask(self, read: Callable[[], Awaitable[T]]) -> Observed[T]:
        begun = self._clock.now()
        found = await known(read(), LARGEST_TREE_SECONDS, self._clock)
        ended = self._clock.now()
        self._due = begun + self._seconds if isinstance(found, Known) else ended + (ended - begun)
        return found
