"""One question to the outside world: its answer, or why there is none."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from switchover.core.observed import Known, Observed, Unknown
from switchover.ports import Clock, Fenced, Malformed, Refused, Unreachable

T = TypeVar("T")


async def known(reading: Awaitable[T], seconds: float, clock: Clock) -> Observed[T]:
    """The answer with the time of asking; every error of the ports, and a time limit, become Unknown."""
    at = clock.now()
    try:
        async with asyncio.timeout(seconds):
            return Known(await reading, at)
    except Refused as error:
        return Unknown(str(error), refused=True, malformed=isinstance(error, Malformed))
    except (Unreachable, Fenced) as error:
        return Unknown(str(error))
    except TimeoutError:
        return Unknown(f"no answer within {seconds:.0f} s")
