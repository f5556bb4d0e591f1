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

    async def get(self, read: Callable[[], Awaitable[T]]) -> Observed[T]:
        """The reading that is kept, or a new one."""
        if not isinstance(self._value, Known) or self._clock.now() - self._value.at >= self._seconds:
            self._value = await known(read(), READ_SECONDS, self._clock)
        return self._value
